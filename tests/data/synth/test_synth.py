"""Synthetic faces: the same for a seed, valid in every range, and written whole or not at all."""

import math
import unicodedata
from dataclasses import astuple, fields
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from facepairs.data.index import FaceIndex
from facepairs.data.synth import faces
from facepairs.data.synth.canvas import Canvas
from facepairs.data.synth.drawing import draw
from facepairs.data.synth.faces import appearance, draw_face, name_of
from facepairs.data.synth.folder import write_synthetic_faces
from facepairs.data.synth.parameters import Identity, Shot
from facepairs.errors import BadConfig
from facepairs.photos.detector import find_faces
from facepairs.support.console import showing

SEEDS = st.integers(0, 2**63 - 1)
PEOPLE = st.integers(0, faces.MAX_PEOPLE - 1)
PHOTOS = st.integers(0, faces.MAX_PHOTOS - 1)
DIFFICULTIES = st.floats(0, 1)
GOLDEN_PEOPLE = (0, 1, 2, 3, 6, 7, 9, 14, 48)


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*.jpg"))}


def test_parameters_are_golden() -> None:
    # A data set is named by its seed alone: a change here changes the data sets of all users.
    (who, _), (_, shot) = appearance(42, 0, 0), appearance(42, 3, 5)
    assert (who.head_half_width, who.skin_tone) == (44.27184883141783, 0.8679398992779902)
    assert (who.glasses, who.asymmetry) == (-2.0304666222258154, 0.17476170561885707)
    assert (shot.yaw_deg, shot.brightness) == (3.6642748603357376, 1.0935639722765027)
    assert shot.jpeg_quality == 82.90569343208179
    assert [name_of(42, p) for p in range(3)] == [
        "Joreth_Ulvley",
        "Åsgen_Dallmark",
        "Quinis_Quarnik",
    ]


@given(SEEDS, PEOPLE, PHOTOS, DIFFICULTIES)
def test_parameters_are_within_their_ranges(
    seed: int, person: int, photo: int, difficulty: float
) -> None:
    # The photos of a difficult person are difficult too, beyond the ranges of others.
    for made in (*appearance(seed, person, photo), appearance(seed, person, photo, difficulty)[0]):
        for entry, value in zip(fields(made), astuple(made), strict=True):
            slack = 1e-9 * (abs(entry.metadata["high"]) + abs(entry.metadata["low"]))
            assert entry.metadata["low"] - slack <= value <= entry.metadata["high"] + slack


@given(SEEDS, PEOPLE, PHOTOS, DIFFICULTIES)
def test_eyes_and_mouth_lie_in_the_middle_112_pixels_as_in_lfw(
    seed: int, person: int, photo: int, difficulty: float
) -> None:
    face, shot = appearance(seed, person, photo, difficulty)
    canvas = Canvas(face, shot, Image.new("RGB", (250, 250)))
    eye = face.eye_distance + face.eye_half_width
    right = [(eye, face.eye_height), (face.mouth_half_width, face.mouth_height)]
    placed = canvas.project(right + [(-x, y) for x, y in right])
    assert (placed > 69).all()
    assert (placed < 181).all()


def distance(one: Identity, other: Identity) -> float:
    spans = [entry.metadata["high"] - entry.metadata["low"] for entry in fields(Identity)]
    return float(np.abs(np.subtract(astuple(one), astuple(other)) / spans).mean())


def test_difficult_people_differ_less_and_change_between_photos() -> None:
    people = range(40)
    looks = [[appearance(2, person, photo, 1.0)[0] for photo in range(2)] for person in people]
    strangers = np.mean([distance(looks[p][0], looks[p - 1][0]) for p in people])
    own = np.mean([distance(*photos) for photos in looks])
    easy = np.mean([distance(appearance(2, p, 0)[0], appearance(2, p + 1, 0)[0]) for p in people])
    assert 0 < own < strangers < easy


@pytest.mark.parametrize("difficulty", [0.0, 1.0])
def test_people_are_unrelated_unless_families_are_asked_for(difficulty: float) -> None:
    families = 10
    people = range(8 * families)

    def apart(step: int, asked: int) -> float:
        looks = [appearance(2, person, 0, difficulty, asked)[0] for person in people]
        return float(np.mean([distance(looks[p], looks[p - step]) for p in people]))

    assert apart(families, 0) == pytest.approx(apart(families + 1, 0), rel=0.02)
    assert apart(families, families) < 0.75 * apart(families + 1, families)


def test_families_are_listed_in_a_file_beside_the_photos(tmp_path: Path) -> None:
    write_synthetic_faces(tmp_path / "faces", 4, 1, 7, size_px=48, families=3)
    lines = (tmp_path / "faces" / "families.csv").read_text(encoding="utf-8").splitlines()
    names = [name_of(7, person) for person in range(4)]
    assert lines == ["person,family", *(f"{n},{f}" for n, f in zip(names, "1231", strict=True))]
    write_synthetic_faces(tmp_path / "unrelated", 4, 1, 7, size_px=48)
    assert not (tmp_path / "unrelated" / "families.csv").exists()


def test_the_face_of_every_difficult_photo_is_found() -> None:
    for person, photo in product(range(8), range(2)):
        drawn = Image.fromarray(draw_face(3, person, photo, difficulty=1.0))
        assert len(find_faces(drawn)) == 1, (person, photo)


def test_names_are_unique_and_valid_folder_names() -> None:
    assert math.gcd(faces.NAME_STEP, faces.MAX_PEOPLE) == 1
    first, first_end, last, last_end = faces.NAME_PARTS
    for parts in ((first, first_end), (last, last_end)):
        assert len({a + b for a, b in product(*parts)}) == math.prod(map(len, parts))
    names = [name_of(9, person) for person in range(3_000)]
    assert len({name.casefold() for name in names}) == len(names)
    assert all(unicodedata.is_normalized("NFC", name) and name.count("_") == 1 for name in names)
    assert all(name.replace("_", "").isalpha() for name in names)
    assert 0 < sum(not name.isascii() for name in names) < len(names) / 5


def test_people_look_as_they_did() -> None:
    """`golden.png` shows them side by side, made by `golden()`: all features, easy and hard."""
    with Image.open(Path(__file__).with_name("golden.png")) as kept:
        changes = np.abs(np.asarray(kept, int) - golden())
    assert (changes > 1).mean() < 0.0002  # systems and versions of Pillow may round otherwise


def golden() -> npt.NDArray[np.uint8]:
    easy = [draw_face(42, person, 3, 100) for person in GOLDEN_PEOPLE]
    hard = [draw_face(42, person, 5, 100, difficulty=1.0, families=3) for person in (11, 12, 1)]
    faces = [*map(Image.fromarray, easy + hard), *map(at_ends, range(4))]
    return np.hstack([np.asarray(face.reduce(4)) for face in faces])


def at_ends(number: int) -> Image.Image:
    """Draw a face each of whose parameters is the lowest or the highest."""
    who, shot = (
        [entry.metadata["high" if place >> number & 1 else "low"] for place, entry in kinds]
        for kinds in (enumerate(fields(Identity)), enumerate(fields(Shot)))
    )
    blank = Image.new("RGB", (100, 100))
    return draw(Identity(*who), Shot(*shot), blank, np.full((40, 3), 0.5)).image


@pytest.mark.parametrize("size_px", [32, 101, 250])
def test_a_face_is_a_function_of_its_numbers(size_px: int) -> None:
    face = draw_face(5, 2, 1, size_px)
    assert face.shape == (size_px, size_px, 3)
    assert face.dtype == np.uint8
    assert face.std() > 10
    assert (face == draw_face(5, 2, 1, size_px)).all()
    for other in (draw_face(6, 2, 1, size_px), draw_face(5, 3, 1, size_px)):
        assert np.abs(face.astype(int) - other).mean() > 5
    assert np.abs(face.astype(int) - draw_face(5, 2, 2, size_px)).mean() > 5


@pytest.mark.parametrize("end_of_who", ["low", "high"])
@pytest.mark.parametrize("end_of_shot", ["low", "high"])
def test_faces_at_the_ends_of_every_range_can_be_drawn(end_of_who: str, end_of_shot: str) -> None:
    who = Identity(*(entry.metadata[end_of_who] for entry in fields(Identity)))
    shot = Shot(*(entry.metadata[end_of_shot] for entry in fields(Shot)))
    canvas = draw(who, shot, Image.new("RGB", (200, 200)), np.full((40, 3), 0.5))
    head = np.asarray(canvas.head_mask) > 0
    assert 0.1 < head.mean() < 0.5
    assert np.asarray(canvas.image)[head].std() > 10


def test_a_folder_has_the_layout_of_lfw(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    with showing(progress=lambda _: lambda *call: calls.append(call)):
        write_synthetic_faces(tmp_path / "faces", 3, 2, 7)
    index = FaceIndex.scan(tmp_path / "faces")
    assert list(index.people) == sorted(name_of(7, p) for p in range(3))
    assert index.image_counts.tolist() == [2, 2, 2]
    assert index.skipped == ()
    assert index.files[0] == f"{index.people[0]}_0001.jpg"
    assert calls == [(done, 6) for done in range(1, 7)]
    with Image.open(index.path(0)) as image:
        assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (250, 250))


def test_more_people_or_photos_leave_the_others_unchanged(tmp_path: Path) -> None:
    write_synthetic_faces(tmp_path / "few", 2, 2, 3, size_px=48)
    write_synthetic_faces(tmp_path / "many", 4, 5, 3, size_px=48)
    few, many = contents(tmp_path / "few"), contents(tmp_path / "many")
    assert len(many) == 20
    assert few.items() <= many.items()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("people", 0),
        ("people", faces.MAX_PEOPLE + 1),
        ("photos", 0),
        ("photos", faces.MAX_PHOTOS + 1),
        ("seed", -1),
        ("seed", 2**63),
        ("families", -1),
        ("families", 3),
    ],
)
def test_numbers_out_of_range_are_named(tmp_path: Path, name: str, value: int) -> None:
    numbers = {"people": 2, "photos": 2, "seed": 1} | {name: value}
    with pytest.raises(BadConfig, match=name):
        write_synthetic_faces(tmp_path / "faces", **numbers)
    assert list(tmp_path.iterdir()) == []
