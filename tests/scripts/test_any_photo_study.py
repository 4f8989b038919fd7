"""The study of ordinary photos, end to end on people who do not exist."""

import json

import pytest
from processes.script_runner import run_script
from tiny.bundles import tiny_bundle

from facepairs.data.synth.folder import write_synthetic_faces

SCRIPT = "scripts/studies/any_photo.py"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Four drawn people as View 1's test people, and a bundle."""
    root = tmp_path_factory.mktemp("world")
    write_synthetic_faces(root / "faces", people=4, photos=2, seed=4)
    people = sorted(folder.name for folder in (root / "faces").iterdir())
    lines = [str(len(people)), *(f"{name}\t2" for name in people)]
    (root / "peopleDevTest.txt").write_text("".join(f"{line}\n" for line in lines))
    calibration = {"scale": 20.0, "offset": -10.0}
    options = {"alignment": "landmarks-5", "threshold": 0.5, "calibration": calibration}
    tiny_bundle(root / "bundle", "embedding", **options)
    return root


@pytest.mark.slow
def test_every_kind_of_picture_is_looked_at(world, tmp_path):
    words = (world / "faces", "--lists", world, "--bundle", world / "bundle", "--changed", 1)
    done = run_script(SCRIPT, *words, "--out", tmp_path / "study")
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
    assert "| scene | 8 |" in done.stdout
