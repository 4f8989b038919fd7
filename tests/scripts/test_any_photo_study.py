"""The study of ordinary photos, end to end on people who do not exist."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from processes.script_runner import ROOT, run_script
from tiny.bundles import tiny_bundle

from facepairs.data.synth.folder import write_synthetic_faces
from facepairs.faces.detector import find_faces

SCRIPT = "scripts/studies/any_photo.py"


@pytest.fixture(autouse=True)
def _siblings(monkeypatch):
    """Let the script import the modules beside it, as Python does when it runs the file."""
    monkeypatch.syspath_prepend(str((ROOT / SCRIPT).parent))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Four drawn people as View 1's test people, a bundle, and annotated photos."""
    root = tmp_path_factory.mktemp("world")
    write_synthetic_faces(root / "faces", people=4, photos=2, seed=4)
    people = sorted(folder.name for folder in (root / "faces").iterdir())
    lines = [str(len(people)), *(f"{name}\t2" for name in people)]
    (root / "peopleDevTest.txt").write_text("".join(f"{line}\n" for line in lines))
    calibration = {"scale": 20.0, "offset": -10.0}
    for name, alignment in (("bundle", "landmarks-5"), ("whole", "lfw-frame")):
        tiny_bundle(
            root / name, "embedding", alignment=alignment, threshold=0.5, calibration=calibration
        )
    annotate(root / "groups", sorted((root / "faces").glob("*/*.jpg"))[0])
    return root


def annotate(folder: Path, photo: Path) -> None:
    """Copy a photo beside one without a face; dlib's points are those that were detected."""
    folder.mkdir()
    (folder / "one.jpg").write_bytes(photo.read_bytes())
    Image.new("RGB", (250, 250), (90, 120, 90)).save(folder / "plain.jpg")
    points = np.zeros((68, 2))
    marks = find_faces(Image.open(photo))[0].landmarks
    points[36:42], points[42:48], points[30], points[48], points[54] = marks
    parts = "".join(f"<part x='{x:.0f}' y='{y:.0f}'/>" for x, y in points)
    text = f"<dataset><images><image file='one.jpg'><box>{parts}</box></image></images></dataset>"
    (folder / "testing_with_face_landmarks.xml").write_text(text)


def call(world, out, *more, bundle="bundle"):
    return run_script(
        SCRIPT, world / "faces", "--lists", world, "--bundle", world / bundle,
        "--changed", 1, "--out", out, *more,
    )  # fmt: skip


@pytest.mark.slow
def test_every_kind_of_picture_is_looked_at_and_an_interrupted_study_goes_on(world, tmp_path):
    done = call(world, tmp_path / "study", "--groups", world / "groups")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "study" / "result.json").read_text())
    found = result["detection"]
    assert {name: row["pictures"] for name, row in found.items() if "," not in name} == {
        "LFW's photo": 8, "scene": 8, "steep scene": 1, "turned 90": 1, "turned 180": 1,
        "turned 270": 1, "mouth and chin covered": 1, "eyes covered": 1,
    }  # fmt: skip
    assert found["scene"]["a_face_found"] >= 7
    scales = [row for name, row in found.items() if name.startswith("scene, scale")]
    assert sum(row["pictures"] for row in scales) == 8
    pairs = result["verification"]["scene, aligned by the truth"]
    assert (pairs["genuine_pairs"], pairs["impostor_pairs"]) == (4, 24)
    assert pairs["difference"] == pytest.approx(pairs["accuracy"] - pairs["direct"])
    assert result["groups"]["found"] == result["groups"]["faces"] == 1
    assert result["groups"]["median_mean_error"] < 0.03
    assert result["groups"]["photos"]["plain.jpg"]["other_faces"] == 0
    assert "| scene | 8 |" in done.stdout
    part = next((tmp_path / "study").glob("parts-*/*.msgpack"))
    written = part.stat().st_mtime_ns
    again = call(world, tmp_path / "study", "--groups", world / "groups")
    assert again.stdout == done.stdout
    assert part.stat().st_mtime_ns == written


def test_a_bundle_that_takes_whole_images_is_refused(world, tmp_path):
    done = call(world, tmp_path / "study", "--json", bundle="whole")
    assert done.returncode == 2
    assert "trained on aligned faces" in json.loads(done.stdout)["error"]["message"]
