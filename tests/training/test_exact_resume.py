"""A training that was stopped and resumed ends at the same weights as one that was not stopped.

`tests/stress/kill.py` checks this at random moments, for trainings and cross-validations.
"""

import json
import shutil

import pytest
from processes import ctrl_c
from processes.checkpoints import saved_arrays
from processes.command_line import in_process

from facepairs.bundles.bundle import Bundle
from facepairs.config import TrainConfig
from facepairs.training.inputs import data as training_data
from facepairs.training.inputs.pair_cache import build_training_cache
from facepairs.training.inputs.people import prepare
from facepairs.training.train_people import train_people

STEPS = 4
SMALL = {
    "batch_size": 12,
    "calibration_share": 0.25,
}


def run(faces, out, config):
    index, plan, split = prepare(faces, config)
    return train_people(index, plan, split, config, out)


def run_by_command(faces, out, settings, cache):
    """Run the command until the AUC stays as it is; return the result, whose words are checked."""
    settings.write_text(settings.read_text() + "patience = 2\n")
    words = ("--config", settings, "--pair-cache", cache)
    more = ("--epochs", 30)
    done = in_process("train", faces, "--out", out, *words, *more, check=0)
    report = json.loads((out / "result.json").read_text())
    assert f"; epoch {report['epoch']} was kept" in done.stdout
    assert "measured on 14 people who are not trained on" in done.stdout
    assert "14 people set aside to choose the epoch" in done.stderr
    return report


def learned(out):
    """What a training has learned: weights, optimizer, and its bundle's calibration."""
    bundle = Bundle.open(out / "bundle")
    return saved_arrays(out), bundle.threshold, bundle.calibration


def mean_losses(out):
    return [row["loss"] for row in json.loads((out / "history.json").read_text())]


def kept_epoch(out):
    rows = json.loads((out / "history.json").read_text())
    return max(rows, key=lambda row: (row["val_auc"], -row["epoch"]))["epoch"]


@pytest.mark.slow
def test_stops_change_neither_the_weights_nor_the_best_epoch(many_faces, tmp_path, monkeypatch):
    """Of a cache, stopped within the first epoch, and after the best one."""
    monkeypatch.setattr(training_data, "MAX_VALIDATION_PAIRS", 40)
    config = TrainConfig().replace(
        **{**SMALL, "model": "difference", "validation_share": 0.3},
        learning_rate=0.1,  # so high that training fails after the second epoch
        seed=5,
    )
    cache, file = tmp_path / "cache", tmp_path / "cache.toml"
    file.write_text(config.to_toml())
    build_training_cache(many_faces, cache, config, STEPS * 12, "raw", 4)
    report = run_by_command(many_faces, tmp_path / "whole", file, cache)
    assert report["val_people"] == 14
    assert report["epochs"] < 30
    assert report["epochs"] == report["epoch"] + 2 == kept_epoch(tmp_path / "whole") + 2
    assert "stopping early after epoch" in (tmp_path / "whole" / "log.txt").read_text()
    rows = json.loads((tmp_path / "whole" / "history.json").read_text())
    assert report["val_auc"] == rows[report["epoch"] - 1]["val_auc"] >= rows[-1]["val_auc"]
    bundle = Bundle.open(tmp_path / "whole" / "bundle")
    assert bundle.raw["training"]["epoch"] == report["epoch"]
    assert bundle.raw["training"]["val_people"] == 14
    assert bundle.raw["training"]["pairs"] == report["epochs"] * STEPS * 12  # all of the cache
    identities, people = bundle.identities, report["people"]
    assert len(identities.training) == people["training"] + people["validation"]
    index, _, split = prepare(many_faces, config)
    names = [index.people[person] for person in split.validation]
    assert bundle.trained_on(names).all()
    config = config.replace(epochs=30, patience=2, cache=str(cache))
    out, best = tmp_path / "stopped", report["epoch"] * STEPS
    for steps in (STEPS - 1, best + STEPS + 2):
        with monkeypatch.context() as patch:
            ctrl_c.press_after(patch, steps)
            assert run(many_faces, out, config).interrupted
        assert not (out / "bundle").exists()
    again = run(many_faces, out, config)
    assert not again.interrupted
    assert (again.epoch, again.val_auc) == (report["epoch"], report["val_auc"])
    assert learned(out) == learned(tmp_path / "whole")
    assert mean_losses(out) == pytest.approx(mean_losses(tmp_path / "whole"), rel=1e-9)


@pytest.mark.slow
def test_a_finished_training_of_a_fitted_backbone_exports_the_same_again(faces, tmp_path):
    """What is fitted and not trained, the mixture of descriptors, is in the checkpoint, too."""
    out, bundle = tmp_path / "run", tmp_path / "run/bundle"
    words = ("train", faces, "--out", out)
    in_process(*words, "--model", "siamese-small", "--epochs", "1", check=0)
    before = Bundle.open(bundle).measured
    shutil.rmtree(bundle)
    in_process(*words, "--resume", check=0)
    assert Bundle.open(bundle).measured == before
