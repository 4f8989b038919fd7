"""`facepairs crossval`: its figures, JSON and --resume."""

import json

import pytest
from drawn.view2 import write_lists
from processes.command_line import in_process
from processes.ctrl_c import press_after

SMALL = """
model = "siamese"
epochs = 1
pairs_per_epoch = 64
batch_size = 16
calibration_share = 0.4
"""


@pytest.mark.usefixtures("tiny_networks")
def test_a_fold_is_trained_once_and_told_as_text_and_as_json(many_faces, tmp_path, monkeypatch):
    write_lists(many_faces, tmp_path)
    settings, out = tmp_path / "small.toml", tmp_path / "run"
    settings.write_text(SMALL)
    given = (many_faces, "--lists", tmp_path, "--config", settings)
    words = ("crossval", *given, "--out", out, "--fold", 2)
    with monkeypatch.context() as patch:
        press_after(patch, 1)
        done = in_process(*words, check=130)
    assert done.stdout == ""
    line = " ".join(map(str, ("facepairs", *words, "--resume")))
    assert done.stderr.splitlines()[-1] == f"stopped and saved; continue with: {line}"
    done = in_process(*words, "--resume", check=0)
    printed = done.stdout
    assert "fold 2 is finished" in done.stderr
    assert "--resume" in in_process(*words, check=2).stderr
    done = in_process(*words, "--resume", "--json", check=0)
    report = json.loads(done.stdout)
    assert "people to train on" not in done.stderr
    told = {name: report[name] for name in ("schema", "model", "interrupted", "out")}
    assert told == {"schema": 8, "model": "siamese", "interrupted": False, "out": str(out)}
    assert [fold["name"] for fold in report["summary"]["folds"]] == ["2"]
    assert in_process("evaluate", out, check=0).stdout == printed
    done = in_process("evaluate", out, "--json", check=0)
    (measured,) = json.loads(done.stdout)["models"]
    assert measured["balanced_accuracy"] == report["summary"]["balanced_accuracy"]
    assert "1 of 4 folds are done" in done.stderr


@pytest.mark.slow
def test_text_for_people_json_for_scripts_and_resume_adds_a_fold(many_faces, tmp_path):
    write_lists(many_faces, tmp_path)
    settings = tmp_path / "small.toml"
    settings.write_text(SMALL)
    given = (many_faces, "--lists", tmp_path, "--config", settings)
    words = ("crossval", *given, "--out", tmp_path / "run")
    assert "\nAUC " in in_process(*words, "--fold", 2, check=0).stdout
    assert "--resume" in in_process(*words, "--fold", 2, check=2).stderr
    done = in_process(*words, "--fold", 1, "--fold", 2, "--resume", "--json", check=0)
    report = json.loads(done.stdout)
    assert report["interrupted"] is False
    result = report["summary"]
    assert [fold["name"] for fold in result["folds"]] == ["1", "2"]
    assert result["accuracy"]["standard_error"] > 0
    assert done.stderr.count("people to train on") == 1  # fold 2 was done
