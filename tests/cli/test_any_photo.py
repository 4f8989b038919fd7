"""Photos as people have them, through the real commands: found, aligned, or refused by name."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn.scenes import write_scenes
from PIL import Image
from processes.command_line import in_process

from facepairs.bundles.bundle import Bundle
from facepairs.data.index import FaceIndex

pytestmark = pytest.mark.usefixtures("few_draws")

SETTINGS = """
model = "siamese-conv"
image_size = 64
epochs = 2
batch_size = 64
pairs_per_epoch = 64
calibration_share = 0.3
test_share = 0.25
"""
NOBODY = "Zzz_Nobody"
TIGHT = (65, 62, 185, 206)  # of a frame of 250 pixels: from the brows to the chin, ear to ear


def as_json(*arguments: object, check: int = 0) -> dict[str, Any]:
    return dict(json.loads(in_process(*arguments, "--json", check=check).stdout))


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "small.toml"
    path.write_text(SETTINGS)
    return path


@pytest.fixture(scope="module")
def faces(faces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 people with 3 photos each."""
    root = tmp_path_factory.mktemp("faces") / "faces"
    shutil.copytree(faces, root, ignore=shutil.ignore_patterns("*_0004.jpg"))
    return root


@pytest.fixture(scope="module")
def scenes(faces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 people: photos of all sizes, with the face at any scale, place and angle."""
    return write_scenes(faces, tmp_path_factory.mktemp("scenes") / "scenes", suffix=".png")


@pytest.fixture(scope="module")
def bundle(scenes: Path, settings: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    in_process("train", scenes, "--out", out, "--config", settings, check=0)
    return out / "bundle"


@pytest.fixture(scope="module")
def spoilt(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same photos, and two without a face of one more person: a plain colour, and noise."""
    root = tmp_path_factory.mktemp("spoilt") / "photos"
    shutil.copytree(scenes, root)
    (root / NOBODY).mkdir()
    Image.new("RGB", (250, 250), (90, 120, 160)).save(root / NOBODY / "plain.png")
    noise = np.random.default_rng(0).integers(0, 256, (250, 250, 3), np.uint8)
    Image.fromarray(noise).save(root / NOBODY / "noise.png")
    return root


@pytest.fixture(scope="module")
def pairs(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return list_pairs(scenes, tmp_path_factory.mktemp("pairs") / "pairs.csv")


@pytest.fixture(scope="module")
def spoilt_pairs(pairs: Path) -> Path:
    """The same pairs, and two more of which no photo shows a face."""
    path = pairs.with_name("spoilt.csv")
    plain, noise = f"{NOBODY}/plain.png", f"{NOBODY}/noise.png"
    path.write_text(pairs.read_text() + f"{plain},{noise},1\n{noise},{plain},1\n")
    return path


def list_pairs(root: Path, path: Path) -> Path:
    """List all genuine pairs, and impostor pairs of every photo."""
    index = FaceIndex.scan(root)
    rows = []
    for person in range(len(index.people)):
        mine, other = index.images_of(person), index.images_of((person or len(index.people)) - 1)
        rows += [(index.name(a), index.name(b), 1) for a in mine for b in mine if a < b]
        rows += [(index.name(a), index.name(other[0]), 0) for a in mine]
    with open(path, "w", newline="") as handle:
        csv.writer(handle).writerows([("left", "right", "genuine"), *rows])
    return path


def scores_of(path: Path) -> dict[tuple[str, str], float]:
    with open(path, newline="") as handle:
        return {(row["left"], row["right"]): float(row["score"]) for row in csv.DictReader(handle)}


def check_verdicts(bundle: Path, root: Path, scores: dict[tuple[str, str], float]) -> None:
    """Compare `verify` with the scores of `evaluate` on some pairs."""
    threshold = Bundle.open(bundle).threshold
    for left, right in list(scores)[:: len(scores) // 5]:
        pair = (root / left, root / right, "--bundle", bundle)
        verdict = json.loads(in_process("verify", *pair, "--json").stdout)
        score = scores[left, right]
        assert verdict["score"] == pytest.approx(score, abs=1e-5)
        if abs(score - threshold) > 1e-4:
            assert verdict["same"] is (score >= threshold)


@pytest.mark.slow
def test_what_is_trained_on_scenes_is_measured_and_verified_the_same(bundle, scenes, tmp_path):
    assert Bundle.open(bundle).alignment == "landmarks-5"
    scores = tmp_path / "scores.csv"
    summary = as_json("evaluate", bundle, scenes, "--out", scores)
    assert (summary["alignment"], summary["photos_left_out"]) == ("landmarks-5", 0)
    assert summary["auc"]["value"] > 0.6
    check_verdicts(bundle, scenes, scores_of(scores))


@pytest.mark.slow
def test_where_a_face_is_in_its_photo_hardly_matters(bundle, scenes, faces, pairs, tmp_path):
    """The photos from which the scenes were made give nearly the same scores and threshold."""
    both = []
    faces_pairs = list_pairs(faces, tmp_path / "pairs.csv")
    for root, listed, suffix in ((scenes, pairs, ".png"), (faces, faces_pairs, ".jpg")):
        out = tmp_path / f"{root.name}.csv"
        as_json("evaluate", bundle, root, "--pairs", listed, "--out", out)
        found = {tuple(name.removesuffix(suffix) for name in pair): score
                 for pair, score in scores_of(out).items()}  # fmt: skip
        both.append(found)
    assert both[0].keys() == both[1].keys()
    pair_scores = np.array([[one[pair] for pair in both[0]] for one in both])
    assert np.corrcoef(pair_scores)[0, 1] > 0.9
    thresholds = [
        as_json("calibrate", bundle, root, "--out", tmp_path / name)["threshold"]
        for name, root in (("a", scenes), ("b", faces))
    ]
    assert abs(thresholds[0] - thresholds[1]) < pair_scores.std()


def test_photos_without_a_face_are_refused_everywhere(spoilt, spoilt_pairs, settings, tmp_path):
    out = tmp_path / "out"
    commands = [
        ("train", spoilt, "--out", out, "--config", settings),
        ("cache", "build", spoilt, "--out", out, "--pair-count", 100),
        ("evaluate", "default", spoilt, "--pairs", spoilt_pairs),
        ("calibrate", "default", spoilt, "--out", out, "--pairs", spoilt_pairs),
    ]
    for command in commands:
        error = as_json(*command, check=2)["error"]["message"]
        assert "plain.png" in error or "noise.png" in error, command
        assert "face" in error
        assert "(--skip-bad)" in error or "(skip_bad)" in error
        assert not out.exists()
    shown = next(spoilt.glob("*/*_0001.png"))
    for photo in (spoilt / NOBODY).iterdir():
        for two in ((photo, shown), (shown, photo)):
            error = as_json("verify", *two, check=2)["error"]
            assert photo.name in error["message"]
    report = as_json("data", "check", spoilt, "--no-labels", check=1)
    assert {finding["kind"] for finding in report["findings"]} == {"no_face"}
    assert len(report["bad_images"]) == 2


def test_photos_without_a_face_are_left_out_and_counted_on_request(
    scenes, spoilt, pairs, spoilt_pairs, tmp_path
):
    results = []
    for root, listed, skip in ((scenes, pairs, ()), (spoilt, spoilt_pairs, ("--skip-bad",))):
        out, options = tmp_path / root.name, ("--pairs", listed, *skip)
        summary = as_json("evaluate", "default", root, *options, "--out", out.with_suffix(".csv"))
        calibrated = as_json("calibrate", "default", root, *options, "--out", out)
        assert summary["photos_left_out"] == calibrated["photos_left_out"] == 2 * len(skip)
        assert summary["pairs_left_out"] == 2 * len(skip)
        results.append((scores_of(out.with_suffix(".csv")), calibrated["threshold"]))
    assert results[0] == results[1]


@pytest.mark.slow
def test_a_training_leaves_photos_without_a_face_out_on_request(bundle, spoilt, settings, tmp_path):
    run = tmp_path / "run"
    words = ("train", spoilt, "--out", run, "--config", settings, "--skip-bad")
    assert "2 unusable files skipped" in in_process(*words, check=0).stderr
    assert Bundle.open(run / "bundle").threshold == Bundle.open(bundle).threshold


@pytest.mark.slow
def test_tight_gray_crops_are_trained_on_and_verified_the_same(faces, settings, tmp_path):
    tight = tmp_path / "tight"
    for face in faces.glob("*/*.jpg"):
        target = (tight / face.parent.name / face.name).with_suffix(".pgm")
        target.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(face) as opened:
            opened.convert("L").crop(TIGHT).resize((92, 112)).save(target)
    run, scores = tmp_path / "run", tmp_path / "scores.csv"
    report = json.loads(in_process("data", "check", tight, "--no-labels", "--json").stdout)
    refused = [path for found in report["findings"] for path in found["paths"]]
    assert {found["kind"] for found in report["findings"]} <= {"no_face"}
    assert len(refused) < 0.05 * report["counts"]["images"]
    for name in refused:
        (tight / name).unlink()
    in_process("train", tight, "--out", run, "--config", settings, check=0)
    as_json("evaluate", run / "bundle", tight, "--out", scores)
    check_verdicts(run / "bundle", tight, scores_of(scores))


@pytest.mark.slow
def test_the_most_prominent_face_of_a_group_photo_is_used(bundle, scenes, faces, pairs, tmp_path):
    groups = write_scenes(faces, tmp_path / "groups", others=2, suffix=".png")
    report = as_json("data", "check", groups, "--no-labels")
    (several,) = [found for found in report["findings"] if found["kind"] == "several_faces"]
    assert len(several["paths"]) > 60
    both = []
    for root in (scenes, groups):
        out = tmp_path / f"{root.name}.csv"
        as_json("evaluate", bundle, root, "--pairs", pairs, "--out", out)
        both.append(list(scores_of(out).values()))
    assert np.corrcoef(both)[0, 1] > 0.98


def test_labels_of_people_who_look_alike_to_the_model_are_not_checked(faces, tmp_path):
    root = tmp_path / "photos"
    for person in sorted(faces.iterdir())[:8]:
        shutil.copytree(person, root / person.name)
    first, second = sorted(root.iterdir())[:2]
    next(first.iterdir()).rename(second / "zzz.jpg")  # drawn people do, so nothing is proved
    (finding,) = as_json("data", "check", root)["findings"]
    assert (finding["severity"], finding["kind"]) == ("note", "labels_unchecked")
    assert "look alike to the included model" in finding["text"]


@pytest.mark.slow
def test_photos_that_exif_turns_are_the_same_photos(bundle, scenes, pairs, settings, tmp_path):
    turned, exif = tmp_path / "turned", Image.Exif()
    exif[0x0112] = 6  # the reader turns by 90 degrees clockwise
    for photo in scenes.glob("*/*.png"):
        target = turned / photo.relative_to(scenes)
        target.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(photo) as opened:
            opened.transpose(Image.Transpose.ROTATE_90).save(target, exif=exif, compress_level=1)
    for name, root in (("upright", scenes), ("turned", turned)):
        out = tmp_path / f"{name}.csv"
        as_json("evaluate", bundle, root, "--pairs", pairs, "--out", out)
    assert scores_of(tmp_path / "upright.csv") == scores_of(tmp_path / "turned.csv")
    assert as_json("data", "check", turned, "--no-labels")["findings"] == []
    run = tmp_path / "run"
    in_process("train", turned, "--out", run, "--config", settings, check=0)
    assert Bundle.open(run / "bundle").threshold == Bundle.open(bundle).threshold
