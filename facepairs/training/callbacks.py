"""The callbacks of a training beside Keras' own."""

import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from facepairs.config import Settings
from facepairs.support import console
from facepairs.support.words import format_duration
from facepairs.training.distribution import Workers
from facepairs.training.progress import Epoch, Progress
from facepairs.training.schedule import PlannedRate, plan_epochs

Logs = dict[str, Any] | None  # as Keras passes them to callbacks


class Timekeeper(keras.callbacks.Callback):  # type: ignore[misc]
    """Measures each epoch, saves and reports it, and ends the training in time. Comes first.

    Adds to the logs: `learning_rate`, `pairs_per_s`, `input_wait`, `seconds` and `wall_s`, which
    `Epoch` describes.

    Args:
        progress: How far the training has got; each epoch is added to it.
        rate: The learning rate; where time is limited, its epochs are planned again after each.
        config: The settings, of which those on the length count.
        ending_s: Time to leave for what follows the epochs.
        waited_s: Variable that sums the seconds spent waiting for batches.
        workers: The workers, on all of which the chief's plan counts.
    """

    def __init__(
        self,
        progress: Progress,
        rate: PlannedRate,
        config: Settings,
        ending_s: float,
        waited_s: tf.Variable,
        workers: Workers,
    ) -> None:
        super().__init__()
        self._progress, self._rate, self._config = progress, rate, config
        self._ending_s, self._waited_s, self._workers = ending_s, waited_s, workers
        self._show_step = console.progress("")
        self._plan()

    @property
    def is_over(self) -> bool:
        """Whether all epochs are done."""
        return self._progress.epochs_done >= self._rate.epochs

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._show_step = console.progress(f"epoch {epoch + 1}/{self._rate.epochs}")
        self._waited_s.assign(0.0)
        self._began = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self._show_step(batch + 1, self._rate.steps_per_epoch)

    def on_test_begin(self, logs: Logs = None) -> None:
        self._steps_s = time.perf_counter() - self._began

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        assert logs is not None
        rate, steps = self._rate, self._rate.steps_per_epoch
        logs |= {
            "learning_rate": float(rate(np.asarray(self.model.optimizer.iterations) - 1)),
            "pairs_per_s": self._config.batch_size * steps / self._steps_s,
            "input_wait": float(self._waited_s) / self._steps_s,
            "seconds": self._progress.seconds + time.perf_counter() - self._began,
            "wall_s": self._progress.wall_s,
        }
        row = Epoch(epoch + 1, **{name: float(logs[name]) for name in Epoch.__struct_fields__[1:]})
        self._progress.add(row, self.model)
        self._plan()
        left_s = row.seconds * (rate.epochs / row.epoch - 1)
        console.log(
            f"epoch {row.epoch}/{rate.epochs}  loss {row.loss:.4f}  "
            f"validation AUC {row.val_auc:.4f}  {row.pairs_per_s:,.0f} pairs/s  "
            f"input wait {row.input_wait:.1%}  {format_duration(left_s)} left"
        )
        if self.is_over:
            self.model.stop_training = True

    def _plan(self) -> None:
        """Plan how many epochs there will be, if time is limited and the first epoch is known."""
        ends_s = [row.seconds for row in self._progress.history if row.epoch]
        if self._config.minutes and ends_s:
            left_s = self._config.minutes * 60 - self._progress.wall_s - self._ending_s
            planned = plan_epochs(ends_s, left_s, self._config.max_epochs)
            self._rate.plan(int(self._workers.of_chief(planned)))


class EpochBoard(keras.callbacks.TensorBoard):  # type: ignore[misc]
    """Keras' TensorBoard for epochs, and nothing for steps.

    Keras makes a tensor of each step's loss even where none is written, and TensorFlow never frees
    the tensor of a Python number.
    """

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Do nothing."""
