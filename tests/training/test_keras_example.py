"""The example for Keras's `fit` runs, and reaches what `facepairs train` reaches."""

import json
import runpy
from pathlib import Path

import pytest
from processes.command_line import in_process

EXAMPLE = Path(__file__).parents[2] / "examples" / "keras_fit.py"


@pytest.fixture
def fit():
    return runpy.run_path(str(EXAMPLE))["main"]


@pytest.mark.slow
def test_the_example_runs(fit, many_faces, capsys):
    auc = fit(str(many_faces), epochs=1, pairs=64)
    printed = capsys.readouterr().out
    assert "val_pair_auc: " in printed
    assert f"AUC on people it has never met: {auc:.4f}" in printed


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_fit_reaches_the_auc_of_the_command(fit, tmp_path):
    faces, run, settings = tmp_path / "faces", tmp_path / "run", tmp_path / "settings.toml"
    drawn = ("--people", 100, "--photos", 6, "--seed", 1)
    in_process("data", "synth", "--out", faces, *drawn, check=0)
    settings.write_text('model = "difference"\npairs_per_epoch = 3200\nepochs = 4\n')
    in_process("train", faces, "--out", run, "--config", settings, check=0)
    done = in_process("evaluate", run / "bundle", faces, "--json", check=0)
    by_command = json.loads(done.stdout)["models"][0]["auc"]["value"]
    assert fit(str(faces), epochs=4, pairs=3_200) > by_command - 0.02
