"""A training is saved after every epoch, and goes on from there bit for bit."""

import json
import shutil
from dataclasses import replace

import keras
import numpy as np
import pytest
from tiny.bundles import write_bundle_of

from facepairs.bundles.identities import Identities
from facepairs.config import TrainConfig
from facepairs.errors import BadRun
from facepairs.pipeline.memory import MemoryStore
from facepairs.training.distributed import SINGLE_DEVICE
from facepairs.training.inputs.data import TrainingData
from facepairs.training.inputs.people import prepare
from facepairs.training.loop import (
    ProgressReport,
    TrainingInterrupted,
    Validator,
    train_epochs,
)
from facepairs.training.run_folder import RunFolder
from facepairs.training.step import TrainStep
from facepairs.training.training import Epoch, Training

EPOCHS, STEPS, BATCH = 2, 4, 8
CONFIG = TrainConfig(
    model="siamese",
    align="none",
    image_size=64,
    epochs=EPOCHS,
    batch_size=BATCH,
    pairs_per_epoch=STEPS * BATCH,
    learning_rate=1e-2,
    calibration_share=0.25,
)


def never():
    return False


@pytest.fixture(scope="module")
def data(faces):
    index, plan, split = prepare(faces, CONFIG)
    return TrainingData(CONFIG, index, plan, split, MemoryStore.build(index, plan))


def build(data, folder, **changes):
    changed = replace(data, config=data.config.replace(**changes)) if changes else data
    folder.mkdir(exist_ok=True)
    run = RunFolder(folder)
    return Training.build(changed, run, SINGLE_DEVICE, 0.0)


def train(training, should_stop=never, *callbacks, validate=None):
    data = training.data
    step = TrainStep(training.network, 0, training.optimizer)
    batches = data.batches(data.store, training.epochs_done, None)
    validate = validate or Validator(training.network, data.store, data.validation_pairs(), 64)
    driven = keras.callbacks.CallbackList([ProgressReport(training), *callbacks], model=training)
    train_epochs(training, step, batches, validate, driven, should_stop)


def values(training):
    variables = [*training.network.variables, *training.optimizer.variables]
    return [np.asarray(variable).tobytes() for variable in variables]


class Steps(keras.callbacks.Callback):
    """Counts steps; as a function, says whether `number` are done."""

    def __init__(self, number):
        super().__init__()
        self.number, self.done = number, 0

    def on_train_batch_end(self, batch, logs=None):
        self.done += 1

    def __call__(self):
        return self.done >= self.number


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    training = build(data, tmp_path_factory.mktemp("whole") / "run")
    train(training)
    return training


def test_a_stopped_training_goes_on_from_its_last_epoch_bit_for_bit(data, whole, tmp_path):
    stop = Steps(STEPS + 2)  # in the second epoch
    with pytest.raises(TrainingInterrupted):
        train(build(data, tmp_path / "run"), stop, stop)
    assert stop.done == STEPS + 2
    resumed = build(data, tmp_path / "run")
    assert [one.epoch for one in resumed.history] == [1]
    assert values(resumed) != values(whole)
    train(resumed)
    assert values(resumed) == values(whole)
    assert [one.loss for one in resumed.history] == [one.loss for one in whole.history]
    assert build(data, tmp_path / "run").epochs_done == EPOCHS


def test_a_callback_can_end_a_training(data, tmp_path):
    class Enough(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            assert {"loss", "val_auc", "learning_rate"} <= logs.keys()
            self.model.stop_training = True

    training = build(data, tmp_path / "run")
    train(training, never, Enough())
    assert (training.epochs_done, training.epochs) == (1, EPOCHS)


def test_the_weights_of_the_best_epoch_are_kept_and_saved(data, tmp_path):
    data = replace(data, split=replace(data.split, validation=data.split.test))
    training = build(data, tmp_path / "run")
    for epoch, auc in enumerate((0.7, 0.9, 0.8), 1):
        training.network.variables[0].assign(np.full_like(training.network.variables[0], epoch))
        training.end_epoch(Epoch(epoch, float(epoch), auc))
    resumed = build(data, tmp_path / "run")
    assert resumed.kept.epoch == 2
    ends = [build(data, tmp_path / "run", epochs=9, patience=n).goes_on() for n in (1, 2)]
    assert ends == [False, True]
    assert float(np.asarray(resumed.network.variables[0]).max()) == 3
    assert float(np.asarray(resumed.network_for_export().variables[0]).max()) == 2


@pytest.mark.parametrize(
    ("aucs", "chosen", "kept"),
    [
        pytest.param((0.8, 0.7, 0.6), True, 0, marks=pytest.mark.slow),
        pytest.param((0.8, 0.9, 0.7), True, 1, marks=pytest.mark.slow),
        ((0.8, 0.9, 0.7), False, 0),  # nobody chooses: the last epoch or the start
        pytest.param((0.8, 0.7, 0.9), False, 2, marks=pytest.mark.slow),
    ],
)
def test_the_start_from_a_bundle_is_among_the_epochs(data, tmp_path, aucs, chosen, kept):
    other = build(data, tmp_path / "other", seed=5).network
    write_bundle_of(tmp_path / "bundle", other, Identities.of((), ()))
    start = [np.asarray(v).copy() for v in other.head.variables]
    if chosen:
        data = replace(data, split=replace(data.split, validation=data.split.test))
    training = build(data, tmp_path / "run", init=str(tmp_path / "bundle"))
    scores = iter(aucs)
    train(training, validate=lambda: next(scores))
    rows = json.loads((tmp_path / "run" / "history.json").read_text())
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert [row["val_auc"] for row in rows] == list(aucs)
    assert [row["loss"] is None for row in rows] == [True, False, False]
    resumed = build(data, tmp_path / "run", init=str(tmp_path / "bundle"))
    assert resumed.epochs_done == EPOCHS
    for one in (training, resumed):
        assert one.kept.epoch == kept
        exported = one.network_for_export().head.variables
        same = [np.array_equal(np.asarray(v), w) for v, w in zip(exported, start, strict=True)]
        assert all(same) == (kept == 0)


def test_damaged_checkpoints_and_those_of_other_trainings_are_refused(data, whole, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(whole.run.path, run)
    with pytest.raises(BadRun):
        build(data, run, image_size=80)
    fewer = replace(data.split, training=data.split.training[1:])
    with pytest.raises(BadRun):
        build(replace(data, split=fewer), run)
    (content,) = run.glob("checkpoints/*.data-*")
    sound = content.read_bytes()
    for damaged in (sound[:-9], b"", *(flipped(sound, share) for share in (0.1, 0.5, 0.9))):
        content.write_bytes(damaged)
        with pytest.raises(BadRun):
            build(data, run)
    content.write_bytes(sound)
    assert build(data, run).epochs_done == EPOCHS


def flipped(content, share):
    at = int(len(content) * share)
    return content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :]
