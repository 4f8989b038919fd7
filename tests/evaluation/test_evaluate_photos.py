"""Photos in an evaluation: aligned as the bundle says, left out where they cannot be used."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from drawn.photos import noise_photos, put
from drawn.scenes import canvas, write_scenes
from golden import assert_golden
from tiny.bundles import tiny_bundle

from facepairs.bundles.bundle import Bundle
from facepairs.errors import BadConfig, BadImage
from facepairs.evaluation.evaluate import Evaluation, evaluate
from facepairs.verification.verifier import Verifier

ALIGNED = {"alignment": "landmarks-5"}


@pytest.fixture(scope="module")
def scenes(few_faces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos of eight people, and one photo without a face and one that is damaged."""
    root = write_scenes(few_faces, tmp_path_factory.mktemp("strangers") / "scenes")
    first, second = sorted(root.iterdir())[:2]
    canvas(300, 300).save(first / "blank.png")
    (second / "broken.jpg").write_bytes(b"\xff\xd8\xff broken")
    return root


@pytest.fixture(scope="module")
def pairs(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All genuine pairs of each person and one impostor pair of each photo."""
    people = [sorted(person.iterdir()) for person in sorted(scenes.iterdir())]
    rows = [(a, b, 1) for photos in people for a in photos for b in photos if a < b]
    rows += [(a, people[at - 1][0], 0) for at, photos in enumerate(people) for a in photos]
    lines = [f"{a.relative_to(scenes)},{b.relative_to(scenes)},{same}" for a, b, same in rows]
    path = tmp_path_factory.mktemp("lists") / "pairs.csv"
    path.write_text("left,right,genuine\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[Bundle]:
    root = tmp_path_factory.mktemp("bundles")
    return [tiny_bundle(root / "aligned", **ALIGNED), tiny_bundle(root / "whole", "embedding")]


@pytest.fixture(scope="module")
def both(bundles: list[Bundle], scenes: Path, pairs: Path) -> Evaluation:
    words = [*(str(bundle.folder) for bundle in bundles), str(scenes)]
    return evaluate(words, pairs=pairs)


def test_the_pairs_of_an_official_list_are_measured_but_those_of_missing_photos(
    bundles: list[Bundle], tmp_path: Path
) -> None:
    names = ("Ada_B", "Bo", "Cy")
    pictures = iter(noise_photos(tmp_path / "noise", 9))
    for name in names:
        for number in range(1, 4):
            put(tmp_path / "lfw", f"{name}/{name}_{number:04}.jpg", next(pictures).read_bytes())
    rows = ["4", *(f"{name}\t1\t2" for name in names), "Bo\t2\t3"]
    rows += ["Ada_B\t1\tBo\t1", "Bo\t2\tCy\t2", "Cy\t3\tAda_B\t3", "Cy\t4\tBo\t1"]
    (tmp_path / "pairsDevTest.txt").write_text("\n".join(rows) + "\n")
    given = {"data": tmp_path / "lfw", "protocol": "view1", "lists": tmp_path}
    whole = bundles[1].folder
    result = evaluate(whole, **given)
    assert (result.summary.genuine_pairs, result.summary.impostor_pairs) == (4, 3)
    assert "left out: 1 pair of missing photos" in result.warnings
    assert repr(result) == "Evaluation of whole on 7 pairs"
    with pytest.raises(BadConfig, match="'view3' is unknown"):
        evaluate(whole, tmp_path / "lfw", protocol="view3")


def test_photos_that_leave_too_few_pairs_are_refused_by_name(
    bundles: list[Bundle], scenes: Path, tmp_path: Path
) -> None:
    first, second = sorted(scenes.iterdir())[:2]
    names = [path.relative_to(scenes) for path in (first / "blank.png", second / "broken.jpg")]
    (tmp_path / "pairs.csv").write_text(f"left,right,genuine\n{names[0]},{names[1]},0\n")
    with pytest.raises(BadImage, match=r"blank\.png: no face.*1 more photo.*too few pairs"):
        evaluate(bundles[0].folder, scenes, pairs=tmp_path / "pairs.csv")


def test_all_models_are_measured_on_the_pairs_that_all_can_use(both: Evaluation) -> None:
    listed = 6 * (6 + 4) + 2 * (10 + 5)
    left_out = 2 * (4 + 1)  # in each of two folders of five photos: with the others, and impostor
    for one in both.measurements:
        assert one.summary.about.photos_left_out == 2
        assert one.summary.about.pairs_left_out == left_out
        assert len(one.pairs) == listed - left_out
        assert not np.isnan(one.pairs.score).any()
        assert not {"blank.png", "broken.jpg"} & {
            Path(name).name for name in (*one.pairs.left, *one.pairs.right)
        }
    assert both.comparison is not None
    (warning,) = [line for line in both.warnings if "left out" in line]
    assert "10 pairs" in warning
    assert "blank.png" in warning or "broken.jpg" in warning
    assert both.result.to_json()["models"][0]["about"]["pairs_left_out"] == left_out


def test_every_figure_of_scored_photos(both: Evaluation) -> None:
    named = [
        msgspec.structs.replace(
            one,
            about=msgspec.structs.replace(
                one.about,
                name="",
                source="",
                scored_by=None,
                pairs="",
                network_sha256=None,
                manifest_sha256=None,
            ),
        )
        for one in both.result.models
    ]
    kept = Path(__file__).parent / "golden" / "photos.json"
    assert_golden(kept, [named, both.comparison], rel=0.01, least=0.01)


def test_each_model_has_its_own_failures(both: Evaluation) -> None:
    aligned, whole = (one.summary.acquisition for one in both.measurements)
    assert aligned is not None
    assert whole is not None
    assert aligned.reasons == {"no_face": 1, "unreadable": 1}
    assert whole.reasons == {"unreadable": 1}
    assert (aligned.fta.count, aligned.fta.of) == (2, 8 * 4 + 2)


def test_the_report_says_how_photos_were_taken(both: Evaluation) -> None:
    aligned, whole = (one.summary for one in both.measurements)
    assert (aligned.about.alignment, whole.about.alignment) == ("landmarks-5", "lfw-frame")
    tables = {table.key: table for table in both.tables()}
    first, second = (
        {row[0].text: row[1].text for row in tables[key].rows} for key in ("figures-1", "figures-2")
    )
    assert first["Photos"] == "faces aligned by five landmarks"
    assert second["Photos"] == "taken as they are"


def test_faces_are_factors_without_a_file(
    bundles: list[Bundle], scenes: Path, pairs: Path, tmp_path: Path
) -> None:
    out, (aligned, whole) = tmp_path / "scores.csv", (bundle.folder for bundle in bundles)
    result = evaluate(aligned, scenes, pairs=pairs, factors="faces", scores_out=out)
    factors, scored = result.summary.factors, result.measurements[0].pairs
    assert [factor.name for factor in factors] == [
        "face size, pixels",
        "sharpness",
        "yaw",
        "roll, degrees",
    ]
    names = sorted({*scored.left, *scored.right})
    samples = Verifier.load(aligned).read([scenes / name for name in names])
    faces = {name: sample.face for name, sample in zip(names, samples, strict=True)}
    both = [[faces[name] for name in pair] for pair in zip(*scored.sides, strict=True)]
    smaller = [min(round(face.side_px, 2) for face in two if face) for two in both]
    turned = [max(round(abs(face.yaw), 4) for face in two if face) for two in both]
    for row in factors[0].discarded:
        kept = np.array([value >= row.bound for value in smaller])
        assert row.errors.fnmr is not None
        assert row.errors.fnmr.of == int((kept & scored.genuine).sum())
    for row in factors[2].discarded:
        kept = np.array([value <= row.bound for value in turned])
        assert row.errors.fmr is not None
        assert row.errors.fmr.of == int((kept & ~scored.genuine).sum())
    assert evaluate(out, factors="faces").summary.factors == factors
    with pytest.raises(BadConfig) as caught:
        evaluate(whole, scenes, pairs=pairs, factors="faces")
    assert caught.value.arguments == ("factors",)
