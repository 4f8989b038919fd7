"""`facepairs crossval`: a table, JSON, Ctrl-C, kill -9 and --resume."""

import json
import os
import signal
import subprocess
import time

import pytest
from drawn.view2 import write_lists
from processes.command_line import command, facepairs, in_process

pytestmark = pytest.mark.usefixtures("few_draws")

SMALL = """
[difference]
epochs = 3
pairs_per_epoch = 128
batch_size = 32
calibration_share = 0.4
[siamese-conv]
image_size = 64
epochs = 1
pairs_per_epoch = 64
batch_size = 16
calibration_share = 0.4
"""


@pytest.fixture(scope="module")
def given(many_faces, tmp_path_factory):
    """The arguments that every call here shares."""
    folder = tmp_path_factory.mktemp("view2")
    write_lists(many_faces, folder)
    (folder / "small.toml").write_text(SMALL)
    return many_faces, "--lists", folder, "--config", folder / "small.toml"


def started(*arguments):
    return subprocess.Popen(
        command("crossval", *arguments), stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip


def until(process, start):
    for line in process.stderr:
        if line.startswith(start):
            return
    raise AssertionError(f"ended before the line {start!r}")


def remaining_messages(process):
    with process.stderr:
        return process.stderr.read()


@pytest.mark.slow
def test_a_table_for_people_and_json_for_scripts(given, tmp_path):
    out = tmp_path / "run"
    messages = in_process(
        "crossval", *given, "--out", out, "--methods", "siamese-conv", "--folds", "2", check=0
    )
    head, row = messages.stdout.splitlines()
    assert head.split()[:4] == ["method", "accuracy", "95", "%"]
    assert row.startswith("siamese-conv")
    assert "(1 fold: no s.e.)" in row
    done = in_process(
        "crossval", *given, "--out", out, "--methods", "siamese-conv", "--folds", "2", check=2
    )
    assert "--resume" in done.stderr


@pytest.mark.slow
def test_resume_adds_a_fold_and_keeps_the_one_that_is_done(given, tmp_path):
    out = tmp_path / "run"
    in_process(
        "crossval", *given, "--out", out, "--methods", "siamese-conv", "--folds", "2", check=0
    )
    more = ("--out", out, "--methods", "siamese-conv", "--folds", "1-2", "--resume")
    done = in_process("crossval", *given, *more, "--json", check=0)
    report = json.loads(done.stdout)
    assert report["interrupted"] is False
    result = report["methods"]["siamese-conv"]
    assert [fold["name"] for fold in result["folds"]] == ["1", "2"]
    assert result["accuracy"]["standard_error"] > 0
    assert "siamese-conv, fold 1 is finished" in done.stderr
    assert done.stderr.count("people to train on") == 1  # fold 2 was done


@pytest.mark.slow
def test_ctrl_c_and_kill_9_end_at_the_same_scores(given, tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    one = ("--methods", "difference", "--folds", "1")
    facepairs("crossval", *given, *one, "--out", whole, check=0)
    process = started(*given, *one, "--out", stopped)
    until(process, "epoch 1/3")
    process.send_signal(signal.SIGINT)
    messages = remaining_messages(process)
    assert process.wait(timeout=120) == 130, messages
    assert "stopped and saved; continue with: facepairs crossval" in messages
    assert messages.rstrip().endswith("--resume")
    fold = stopped / "difference" / "fold-01"
    assert (fold / "config.toml").exists()
    assert not (fold / "bundle").exists()
    process = started(*given, *one, "--out", stopped, "--resume")
    until(process, "epoch 2/3")
    time.sleep(0.05)
    process.kill()
    process.stderr.close()
    process.wait(timeout=120)
    assert not (fold / "scores.csv").exists()
    facepairs("crossval", *given, *one, "--out", stopped, "--resume", check=0)
    whole, resumed = (
        json.loads((out / "difference" / "fold-01" / "scores.csv.json").read_text())
        for out in (whole, stopped)
    )
    for key in ("scores_sha256", "balanced_threshold", "identities"):
        assert whole[key] == resumed[key]
    leftovers = [path for path in stopped.rglob(".*") if path.name.startswith(".")]
    assert leftovers == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--folds", "x"], "folds is 'x'"),
        (["--folds", "5"], "folds 1 to 4"),
        (["--methods", "siames"], "no method 'siames'; did you mean 'siamese'?"),
        (["--lists", "{tmp}"], "people.txt: No such file"),
        (["--resume"], "nothing to resume"),
        (["--out", "{faces}/run"], "lies in the folder of faces"),
    ],
)
def test_mistakes_get_one_line(given, tmp_path, arguments, why):
    filled = [argument.format(tmp=tmp_path, faces=given[0]) for argument in arguments]
    done = in_process("crossval", *given, "--out", tmp_path / "run", *filled, check=2)
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert why in done.stderr
    assert not (tmp_path / "run").exists()
    done = in_process("crossval", *given, "--out", tmp_path / "run", *filled, "--json", check=2)
    assert set(json.loads(done.stdout)["error"]) == {"kind", "message"}


def test_help_has_an_example():
    assert "Example: facepairs crossval" in in_process("crossval", "--help", check=0).stdout
