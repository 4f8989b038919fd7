"""A training that was stopped and resumed ends at the same weights as one that was not stopped.

`tests/stress/resume.py` checks this with kills, for every model, store and fold.
"""

import json
import os
import signal

import numpy as np
import pytest

from facepairs.bundles.bundle import Bundle
from facepairs.config import TrainConfig
from facepairs.errors import BadRun
from facepairs.training.inputs.pair_cache import build_training_cache
from facepairs.training.inputs.people import prepare
from facepairs.training.loop.callbacks import ProgressReport
from facepairs.training.run_folder.folder import resolve_config
from facepairs.training.train import TrainOptions, train

STEPS, EPOCHS = 4, 2
SMALL = {
    "epochs": EPOCHS,
    "pairs_per_epoch": STEPS * 12,
    "batch_size": 12,
    "crop_px": 64,
    "calibration_pairs": 100,
    "calibration_share": 0.25,
}


def run(faces, out, config, resume=False):
    index, plan, split = prepare(faces, config, print)
    options = TrainOptions(resume=resume, images_in_tensorboard=False)
    return train(index, plan, split, config, out, options)


def learned(out):
    """What a training has learned: weights, optimizer, and its bundle's calibration."""
    with np.load(out / "checkpoint.npz") as archive:
        arrays = {name: archive[name].tobytes() for name in archive.files if name != "state"}
    bundle = Bundle.open(out / "bundle")
    return arrays, bundle.threshold, bundle.raw["calibration"]


def stop_after(monkeypatch, step):
    """Press Ctrl-C after a number of steps."""
    ended = ProgressReport.on_train_batch_end

    def end(self, batch, logs=None):
        ended(self, batch, logs)
        if batch == step:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(ProgressReport, "on_train_batch_end", end)


@pytest.mark.parametrize(("model", "store"), [("difference", "tfrecord"), ("difference", "files")])
def test_stopping_twice_does_not_change_the_weights(faces, tmp_path, monkeypatch, model, store):
    config = TrainConfig().replace(model=model, erase=0.2, **SMALL)
    if store == "tfrecord":
        cache = tmp_path / "cache"
        file = tmp_path / "cache.toml"
        file.write_text(config.to_toml())
        build_training_cache(faces, cache, STEPS * 12, "raw", 4, {}, file)
        config = config.replace(store=store, cache=str(cache))
    else:
        config = config.replace(store=store)
    assert not run(faces, tmp_path / "whole", config).interrupted
    out = tmp_path / "stopped"
    for number, step in enumerate((STEPS - 1, 2 * STEPS - 3)):  # both within an epoch
        with monkeypatch.context() as patch:
            stop_after(patch, step)
            report = run(faces, out, config, resume=number > 0)
        assert report.interrupted
        assert not (out / "bundle").exists()
    assert not run(faces, out, config, resume=True).interrupted
    assert learned(out) == learned(tmp_path / "whole")


def test_a_run_of_an_older_version_is_resumed_without_looking_for_faces(faces, tmp_path):
    config = TrainConfig().replace(model="difference", align="none", **SMALL)
    run(faces, tmp_path, config)
    toml = tmp_path / "config.toml"
    older = toml.read_text().replace('align = "none"\n', "")
    toml.write_text(older)
    with np.load(tmp_path / "checkpoint.npz") as archive:
        arrays = dict(archive)
    state = json.loads(arrays["state"].tobytes())
    assert state["sources"].pop("crops") == "lfw-frame"
    arrays["state"] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    np.savez(tmp_path / "checkpoint.npz", **arrays)
    wrong = config.replace(align="landmarks")
    with pytest.raises(BadRun, match="made for other people or images"):
        run(faces, tmp_path, wrong, resume=True)
    assert toml.read_text() == older
    resolved = resolve_config({}, None, tmp_path, resume=True)
    assert resolved == config
    assert not run(faces, tmp_path, resolved, resume=True).interrupted
    assert toml.read_text() == config.to_toml()
