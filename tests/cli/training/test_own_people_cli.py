"""`train --init` and `calibrate` on one's own people."""

import json

import pytest
from processes.command_line import in_process

from facepairs.bundles.bundle import Bundle

pytestmark = pytest.mark.usefixtures("few_draws", "few_validation_pairs")


def test_init_refuses_another_model_in_one_line(difference_run, faces, tmp_path):
    words = ("--init", difference_run.bundle, "--model", "siamese-conv", "--json")
    done = in_process("train", faces, "--out", tmp_path / "run", *words, check=2)
    assert json.loads(done.stdout)["error"]["kind"] == "config"
    assert not (tmp_path / "run").exists()


def some_of(many_faces, folder, people):
    """Make a folder with some of the people."""
    folder.mkdir()
    for person in sorted(many_faces.iterdir())[:people]:
        (folder / person.name).symlink_to(person)
    return folder


def test_calibrate_writes_a_bundle_that_verifies(run, many_faces, tmp_path):
    out, mine = tmp_path / "mine", some_of(many_faces, tmp_path / "photos", 12)
    done = in_process("calibrate", run.bundle, mine, "--out", out, "--json", check=0)
    summary = json.loads(done.stdout)
    assert summary["people"] == 12
    assert (summary["genuine_pairs"], summary["people_left_out"]) == (36, 0)
    old, new = Bundle.open(run.bundle), Bundle.open(out)
    assert new.read("network.onnx") == old.read("network.onnx")
    assert new.threshold == summary["threshold"] != old.threshold
    photos = sorted(next(many_faces.iterdir()).iterdir())
    scores = [
        json.loads(in_process("verify", *photos[:2], "--bundle", bundle, "--json").stdout)["score"]
        for bundle in (run.bundle, out)
    ]
    assert scores[0] == scores[1]
    shown = in_process("calibrate", run.bundle, mine, "--out", out, check=0).stdout
    assert "36 genuine" in shown
    assert "before" in shown
    done = in_process("evaluate", out, mine, check=2)
    assert "0 of 12 people" in done.stderr


def test_calibrate_names_what_is_missing(run, many_faces, tmp_path):
    few = some_of(many_faces, tmp_path / "few", 5)
    done = in_process("calibrate", run.bundle, few, "--out", tmp_path / "mine", "--json", check=2)
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "not_enough"
    assert {"15", "20"} <= set(error["message"].split())  # pairs there are, pairs needed
    assert not (tmp_path / "mine").exists()
