"""How a training keeps to its minutes, and what is measured of each epoch; by a clock of ours."""

from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf

import facepairs
from facepairs.config import TrainConfig
from facepairs.training import callbacks, progress
from facepairs.training.callbacks import Timekeeper
from facepairs.training.distribution import Workers
from facepairs.training.progress import Progress
from facepairs.training.schedule import PlannedRate

STEPS, BATCH, ENDING_S = 4, 8, 20.0


class Training:
    """A training whose steps and validation take as long as the test says."""

    def __init__(self, folder, patch, **length):
        self.now, self.folder = 5.0, folder  # the command began at 0
        clock = SimpleNamespace(perf_counter=lambda: self.now)
        for module in (callbacks, progress):
            patch.setattr(module, "time", clock)
        config = TrainConfig(
            model="siamese", batch_size=BATCH, pairs_per_epoch=STEPS * BATCH, **length
        ).resolve()
        self.rate = PlannedRate(1e-2, STEPS, config.first_plan)
        self.progress = Progress(folder, "sources", True, 0.0)
        self.waited = tf.Variable(0.0, dtype=tf.float64)
        self.keeper = Timekeeper(self.progress, self.rate, config, ENDING_S, self.waited, Workers())
        self.model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        self.model.compile(keras.optimizers.Adam(self.rate), "mse")
        self.model.optimizer.build(self.model.trainable_variables)
        self.model.stop_training = False
        self.keeper.set_model(self.model)

    def epoch(self, steps_s, validation_s, wait_s=0.0):
        """Do an epoch; return its logs."""
        number, logs = self.progress.epochs_done, {"loss": 0.5, "val_auc": 0.75}
        self.keeper.on_epoch_begin(number)
        for step in range(STEPS):
            self.now += steps_s / STEPS
            self.waited.assign_add(wait_s / STEPS)
            self.model.optimizer.iterations.assign_add(1)
            self.keeper.on_train_batch_end(step)
        self.keeper.on_test_begin()
        self.now += validation_s
        self.keeper.on_epoch_end(number, logs)
        return logs


def test_an_epoch_is_measured_and_told(tmp_path, monkeypatch):
    training, lines, phases, steps = Training(tmp_path, monkeypatch, epochs=3), [], [], []

    def phase(name):
        phases.append(name)
        return lambda done, total: steps.append((done, total))

    with facepairs.showing(log=lines.append, progress=phase):
        first = training.epoch(8.0, 2.0, wait_s=2.0)
        second = training.epoch(16.0, 4.0)
    assert first == {
        "loss": 0.5, "val_auc": 0.75, "learning_rate": pytest.approx(1e-2), "seconds": 10.0,
        "pairs_per_s": STEPS * BATCH / 8, "input_wait": 0.25, "wall_s": 15.0,
    }  # fmt: skip
    assert second["learning_rate"] == pytest.approx(float(training.rate(2 * STEPS - 1)))
    assert (second["seconds"], second["wall_s"], second["input_wait"]) == (30.0, 35.0, 0.0)
    assert [row.epoch for row in training.progress.history] == [1, 2]
    assert lines[0].endswith("validation AUC 0.7500  4 pairs/s  input wait 25.0%  0:20 left")
    assert lines[1].endswith("2 pairs/s  input wait 0.0%  0:15 left")
    assert phases == ["epoch 1/3", "epoch 2/3"]
    assert steps == [(step, STEPS) for _ in range(2) for step in range(1, STEPS + 1)]


def test_a_training_ends_after_its_epochs(tmp_path, monkeypatch):
    training = Training(tmp_path, monkeypatch, epochs=2)
    ended = []
    for _ in range(2):
        training.epoch(1000.0, 1.0)
        ended.append((training.keeper.is_over, training.model.stop_training))
    assert ended == [(False, False), (True, True)]


def test_epochs_are_planned_to_end_in_time(tmp_path, monkeypatch):
    training = Training(tmp_path, monkeypatch, minutes=1.0)
    training.epoch(8.0, 2.0)
    assert training.rate.epochs == 3  # 15 s are over, 20 s are for the end: two more of 10 s
    training.epoch(18.0, 2.0)
    assert training.rate.epochs == 2  # 35 s are over
    assert training.model.stop_training
    for validation_s, epochs in ((2.0, 2), (1.6, 3)):  # 23.27 s are left for 11.73 s each
        training = Training(tmp_path / f"{epochs}", monkeypatch, minutes=1.0)
        training.epoch(9.733, validation_s)
        assert training.rate.epochs == epochs


def test_the_first_epoch_is_always_done_and_epochs_limit_minutes(tmp_path, monkeypatch):
    training = Training(tmp_path, monkeypatch, minutes=0.01)
    assert not training.keeper.is_over
    training.epoch(8.0, 2.0)
    assert (training.rate.epochs, training.model.stop_training) == (1, True)
    training = Training(tmp_path / "other", monkeypatch, minutes=1.0, epochs=2)
    training.epoch(1.0, 1.0)
    assert training.rate.epochs == 2


def test_a_resumed_training_has_the_time_that_is_left(tmp_path, monkeypatch):
    training = Training(tmp_path, monkeypatch, minutes=1.0)
    training.epoch(8.0, 2.0)
    again = Training(tmp_path, monkeypatch, minutes=1.0)
    assert again.rate.epochs == 3  # 20 s are over, with 5 s of this command
    again.now += 6.0
    again.epoch(8.0, 2.0)
    assert again.progress.wall_s == 15.0 + 21.0
    assert again.rate.epochs == 2
