"""Copies, and people with two folders, by invented embeddings."""

import numpy as np
import pytest

from facepairs.data.index import FaceIndex
from facepairs.evaluation.likeness import likeness_findings, tells_apart

COUNTS = {"Ann": 3, "Anne": 2, "Bo": 1, "Boo": 1, "Cy": 4, "Di": 1}
SAME = {"Anne": "Ann", "Boo": "Bo"}  # one person under two names
RNG = np.random.default_rng(0)


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def photos_of(face: np.ndarray, count: int, spread: float = 0.15) -> np.ndarray:
    """Return photos of a person: float32[count, 256]; two have about the score 1 - spread**2."""
    return unit(face + spread * unit(RNG.normal(size=(count, len(face)))))


def folder(counts: dict[str, int]) -> tuple[FaceIndex, np.ndarray]:
    listing = [f"{name}/{at}.jpg" for name, count in counts.items() for at in range(count)]
    faces = {name: unit(RNG.normal(size=256)) for name in counts}
    rows = [photos_of(faces[SAME.get(name, name)], count) for name, count in counts.items()]
    return FaceIndex.from_listing(listing), np.concatenate(rows)


def found(index: FaceIndex, rows: np.ndarray) -> list[tuple[str, tuple[str, ...], str]]:
    findings = likeness_findings(index, rows, None)
    return [(finding.kind, finding.paths, finding.text) for finding in findings]


def test_folders_of_one_person_are_proposed_with_photos_to_compare() -> None:
    index, rows = folder(COUNTS)
    assert tells_apart(index, rows)
    (first, second) = found(index, rows)
    assert first[0] == second[0] == "same_person"
    assert "Ann and Anne may be one person" in first[2]
    assert all(path in first[2] for path in first[1])
    assert [path.split("/")[0] for path in first[1]] == ["Ann", "Anne"]
    assert second[1] == ("Bo/0.jpg", "Boo/0.jpg")
    ann, anne = rows[:3], rows[3:5]
    likest = (int((ann @ anne.sum(axis=0)).argmax()), int((anne @ ann.sum(axis=0)).argmax()))
    assert first[1] == (f"Ann/{likest[0]}.jpg", f"Anne/{likest[1]}.jpg")


def test_copies_are_grouped_and_files_of_the_same_bytes_left_to_duplicates() -> None:
    index, rows = folder({"Cy": 5, "Di": 2, "Ed": 2})
    rows[[1, 3]] = photos_of(rows[0], 2, spread=0.05)  # saved anew
    rows[6] = rows[5]  # the same bytes
    assert [finding[:2] for finding in found(index, rows)] == [
        ("near_duplicate", ("Cy/0.jpg", "Cy/1.jpg", "Cy/3.jpg"))
    ]


def test_photos_in_a_wrong_folder_are_named_where_people_can_be_told_apart() -> None:
    index, rows = folder({"Ann": 3, "Bo": 3, "Cy": 3})
    rows[1] = unit(RNG.normal(size=256))
    (finding,) = likeness_findings(index, rows, None)
    assert (finding.kind, finding.severity) == ("mislabelled", "warning")
    assert finding.paths == ("Ann/1.jpg",)
    (finding,) = likeness_findings(index, np.repeat(rows[:1], 9, axis=0), None)
    assert (finding.kind, finding.paths) == ("labels_unchecked", ())


def test_photos_that_cannot_be_used_are_left_out() -> None:
    index, rows = folder({"Ann": 2, "Anne": 2, "Bo": 1, "Cy": 1})
    rows[[0, 3, 4]] = np.nan
    ((_, paths, _),) = found(index, rows)
    assert paths == ("Ann/1.jpg", "Anne/0.jpg")
    assert found(index, np.full_like(rows, np.nan)) == []


def test_three_folders_of_one_person_are_pairs_and_alike_people_in_a_chain_are_not_joined() -> None:
    index, rows = folder({"Ann": 3, "Anne": 2, "Cy": 1, "Di": 1, "Ed": 1, "Fay": 1})
    between = unit(rows[3:5].mean(axis=0) + 0.25 * unit(RNG.normal(size=256)))
    rows[5] = between  # near to Anne, further from Ann
    pairs = [sorted(path.split("/")[0] for path in paths) for _, paths, _ in found(index, rows)]
    assert ["Ann", "Anne"] in pairs
    assert all(len(pair) == 2 for pair in pairs)


def test_copies_are_groups_of_which_every_two_are_alike() -> None:
    index, rows = folder({"Cy": 4, "Di": 1})
    rows[1] = photos_of(rows[0], 1, spread=0.1)[0]  # .995 with the first
    rows[2] = unit(2 * rows[1] - rows[0])  # as near to the second, but not to the first
    kinds = [finding[:2] for finding in found(index, rows) if finding[0] == "near_duplicate"]
    assert kinds == [("near_duplicate", ("Cy/0.jpg", "Cy/1.jpg"))]


def test_people_with_few_photos_need_more_likeness() -> None:
    index, rows = folder({"Ann": 1, "Anne": 1, "Bo": 4, "Boo": 4, "Cy": 1})
    away = unit(RNG.normal(size=256))
    for begin, other, count in ((0, 1, 1), (2, 6, 4)):
        rows[other : other + count] = rows[begin]
        rows[begin : begin + count] = unit(rows[begin] + 0.31 * away)  # about .952
    assert [paths[0][:2] for _, paths, _ in found(index, rows)] == ["Bo"]


def at_cosine(cosine: float, width: int = 256) -> np.ndarray:
    """Return two unit vectors of that cosine."""
    rows = np.zeros((2, width))
    rows[:, 0], rows[1, 1] = (1, cosine), np.sqrt(1 - cosine**2)
    return rows.astype(np.float32)


@pytest.mark.parametrize(
    ("cosine", "copied"), [(0.9929, False), (0.9931, True), (0.999998, True), (0.9999999, False)]
)
def test_copies_are_as_alike_as_saved_anew_and_not_the_same_bytes(cosine, copied) -> None:
    index, rows = folder({"Cy": 2, "Di": 1, "Ed": 1})
    rows[:2] = at_cosine(cosine)
    assert [kind for kind, _, _ in found(index, rows)] == ["near_duplicate"] * copied


@pytest.mark.parametrize(("cosine", "told"), [(0.905, True), (0.915, False)])
def test_a_model_for_which_most_people_are_more_alike_tells_nobody_apart(cosine, told) -> None:
    index, rows = folder({f"P{number:02}": 1 for number in range(30)})
    rows[:] = np.sqrt(1 - cosine) * np.eye(30, 256, k=1)
    rows[:, 0] = np.sqrt(cosine)
    assert tells_apart(index, rows) is told
    assert [kind for kind, _, _ in found(index, rows)][:1] == ["labels_unchecked"] * (not told)


@pytest.mark.parametrize(
    ("photos", "wanted"),
    [(2, (0.8, 0, 0.952, 18)), (3, (0.908, 55, 0.95, 19)), (9, (0.9, 51, 0.946, 21))],
)
def test_heights_of_wrong_photos_and_of_folders_of_one_person(photos, wanted) -> None:
    """From which cosine on a photo fits its folder, and two folders are one person's."""
    cosines, limits = np.arange(0.8, 0.99, 0.002), list[float]()
    index, rows = folder({"Ann": photos, "Bo": photos, "Cy": 1, "Di": 1})
    for kind in ("mislabelled", "same_person"):
        said = []
        for cosine in cosines:
            changed = rows.copy()
            changed[:photos], changed[photos : 2 * photos] = at_cosine(cosine)
            if kind == "mislabelled":
                changed[0], changed[photos : 2 * photos] = at_cosine(cosine)[1], rows[photos]
            said.append(kind in {one for one, _, _ in found(index, changed)})
        limits += [round(float(cosines[np.diff(said).argmax()]), 3), sum(said)]
    assert tuple(limits) == wanted
