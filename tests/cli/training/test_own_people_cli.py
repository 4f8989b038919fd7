"""`train --init` and `calibrate` on one's own people."""

import json

import pytest
from processes.command_line import in_process

from facepairs.bundles.bundle import Bundle

pytestmark = pytest.mark.usefixtures("few_validation_pairs")


def test_calibrate_writes_a_bundle_that_verifies(run, many_faces, tmp_path):
    out, mine = tmp_path / "mine", tmp_path / "photos"
    mine.mkdir()
    for person in sorted(many_faces.iterdir())[:12]:
        (mine / person.name).symlink_to(person)
    done = in_process("calibrate", run.bundle, mine, "--out", out, "--json", check=0)
    summary = json.loads(done.stdout)
    assert summary["people"] == 12
    assert (summary["genuine_pairs"], summary["people_left_out"]) == (36, 0)
    old, new = Bundle.open(run.bundle), Bundle.open(out)
    assert new.read("network.onnx") == old.read("network.onnx")
    assert new.profile.balanced_threshold == summary["threshold"] != old.profile.balanced_threshold
    photos = sorted(next(many_faces.iterdir()).iterdir())
    scores = [
        json.loads(in_process("verify", *photos[:2], "--bundle", bundle, "--json").stdout)["score"]
        for bundle in (run.bundle, out)
    ]
    assert scores[0] == scores[1]
    done = in_process("evaluate", out, mine, check=2)
    assert "0 of 12 people" in done.stderr
