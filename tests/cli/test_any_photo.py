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

from facepairs.data.index import FaceIndex

NOBODY = "Zzz_Nobody"


def as_json(*arguments: object, check: int = 0) -> dict[str, Any]:
    return dict(json.loads(in_process(*arguments, "--json", check=check).stdout))


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
    """All genuine pairs, and impostor pairs of every photo."""
    index, rows = FaceIndex.scan(scenes), []
    for person in range(len(index.people)):
        mine, other = index.images_of(person), index.images_of((person or len(index.people)) - 1)
        rows += [(index.name(a), index.name(b), 1) for a in mine for b in mine if a < b]
        rows += [(index.name(a), index.name(other[0]), 0) for a in mine]
    path = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    with open(path, "w", newline="") as handle:
        csv.writer(handle).writerows([("left", "right", "genuine"), *rows])
    return path


@pytest.fixture(scope="module")
def spoilt_pairs(pairs: Path) -> Path:
    """The same pairs, and two more with photos that show no face."""
    path = pairs.with_name("spoilt.csv")
    plain, noise = f"{NOBODY}/plain.png", f"{NOBODY}/noise.png"
    known = pairs.read_text().splitlines()[1].partition(",")[0]
    path.write_text(pairs.read_text() + f"{plain},{noise},1\n{noise},{known},0\n")
    return path


def scores_of(path: Path) -> dict[tuple[str, str], float]:
    with open(path, newline="") as handle:
        rows = [row for row in csv.DictReader(handle) if row["score"]]
    return {(row["left"], row["right"]): float(row["score"]) for row in rows}


def test_scenes_are_measured_and_verified_the_same(scenes, tmp_path):
    (summary,) = as_json("evaluate", "default", scenes, "--out", tmp_path / "scores.csv")["models"]
    about = summary["about"]
    assert (about["alignment"], about["photos_left_out"]) == ("landmarks-5", 0)
    assert summary["auc"]["value"] > 0.5
    scores = scores_of(tmp_path / "scores.csv")
    for pair in list(scores)[:: len(scores) // 5]:
        photos = [scenes / name for name in pair]
        verdict = json.loads(in_process("verify", *photos, "--json").stdout)
        assert verdict["score"] == pytest.approx(scores[pair], abs=1e-5)


def test_photos_without_a_face_are_refused_everywhere(spoilt, spoilt_pairs, tmp_path):
    out = tmp_path / "out"
    for command in (
        ("train", spoilt, "--out", out),
        ("cache", "build", spoilt, "--out", out, "--pair-count", 100),
        ("calibrate", "default", spoilt, "--out", out),
    ):
        error = as_json(*command, check=2)["error"]["message"]
        assert "plain.png" in error or "noise.png" in error, command
        assert "(--skip-bad)" in error or "(skip_bad)" in error
        assert not out.exists()
    report = as_json("data", "check", spoilt, check=1)
    assert "no_face" in {finding["kind"] for finding in report["findings"]}
    assert len(report["bad_images"]) == 2


def test_photos_without_a_face_are_left_out_and_counted(
    scenes, spoilt, pairs, spoilt_pairs, tmp_path
):
    results = []
    for root, listed, skip in ((scenes, pairs, ()), (spoilt, spoilt_pairs, ("--skip-bad",))):
        out, options = tmp_path / root.name, ("--pairs", listed)
        found = as_json("evaluate", "default", root, *options, "--out", out.with_suffix(".csv"))
        about = found["models"][0]["about"]
        calibrated = as_json("calibrate", "default", root, *skip, "--out", out)
        assert about["photos_left_out"] == calibrated["photos_left_out"] == 2 * len(skip)
        assert about["pairs_left_out"] == 2 * len(skip)
        results.append(scores_of(out.with_suffix(".csv")))
        (again,) = as_json("evaluate", out.with_suffix(".csv"))["models"]
        for name in ("acquisition", "auc", "verify_point"):
            assert again[name] == found["models"][0][name]
        points = {point["name"]: point for point in found["models"][0]["operating_points"]}
        for point in again["operating_points"]:
            assert point == points[point["name"]]
    assert results[0] == results[1]
    assert again["acquisition"]["reasons"] == {"no_face": 2}


def test_labels_of_people_who_look_alike_to_the_model_are_not_checked(faces, tmp_path):
    root = tmp_path / "photos"
    for person in sorted(faces.iterdir())[:8]:
        shutil.copytree(person, root / person.name)
    first, second = sorted(root.iterdir())[:2]
    next(first.iterdir()).rename(second / "zzz.jpg")  # drawn people do, so nothing is proved
    (finding,) = as_json("data", "check", root)["findings"]
    assert (finding["severity"], finding["kind"]) == ("note", "labels_unchecked")
