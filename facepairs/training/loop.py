"""The training loop: for epoch, for batch, step, validate, save; and how a signal stops it.

It is a loop of ours, because Keras's `fit` does not run under `MultiWorkerMirroredStrategy`. It
drives a `keras.callbacks.CallbackList`, so Keras's callbacks work as they do with `fit`.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.callbacks import CallbackList

from facepairs.data.pairs import PairList
from facepairs.evaluation.metrics.arrays import check_two_classes
from facepairs.evaluation.metrics.curves import auc
from facepairs.models.network import Trainable
from facepairs.pipeline.dataset import Batch, Store, make_dataset
from facepairs.support import console
from facepairs.support.words import format_duration
from facepairs.training.schedule import Schedule
from facepairs.training.step import TrainStep
from facepairs.training.training import Epoch, EpochFigures, Training

Logs = dict[str, Any] | None  # as Keras passes them to callbacks
ShouldStop = Callable[[], bool]


class TrainingInterrupted(Exception):
    """Training was asked to stop; what is saved is the state after the last finished epoch."""


def train_epochs(
    training: Training,
    step: TrainStep,
    batches: Iterator[Batch],
    validate: Callable[[], float],
    callbacks: CallbackList,
    should_stop: ShouldStop,
) -> None:
    """Train to the end of the schedule, or until a callback sets `training.stop_training`.

    Args:
        training: What is trained, from its last finished epoch on; saved after every epoch.
        step: Its training step.
        batches: The batches of the epochs that are left.
        validate: Returns the AUC after each epoch, and before the first one of a bundle's weights.
        callbacks: Keras's callbacks, the user's included.
        should_stop: Returns whether to stop.

    Raises:
        TrainingInterrupted: Training was asked to stop.
    """
    if training.position.initial and not training.history:
        training.end_epoch(Epoch(0, 0.0, validate()))
        console.log(f"validation AUC {training.history[0].val_auc:.4f} at the start")
    callbacks.on_train_begin()
    while training.goes_on():
        epoch = training.epochs_done
        callbacks.on_epoch_begin(epoch)
        started = time.perf_counter()
        figures = run_epoch(step, batches, training.schedule, epoch, callbacks, should_stop)
        val_auc = validate()
        ends_s = training.seconds + time.perf_counter() - started
        training.end_epoch(Epoch(epoch + 1, ends_s, val_auc, *figures))
        callbacks.on_epoch_end(epoch, {**figures._asdict(), "val_auc": val_auc})
        if training.context.any(should_stop()):
            raise TrainingInterrupted
    callbacks.on_train_end()


def run_epoch(
    step: TrainStep,
    batches: Iterator[Batch],
    schedule: Schedule,
    epoch: int,
    callbacks: CallbackList,
    should_stop: ShouldStop,
) -> EpochFigures:
    """Run the steps of one epoch; return its mean loss, speed and input wait.

    Raises:
        TrainingInterrupted: Training was asked to stop.
    """
    steps, pairs, waited = schedule.steps_per_epoch, 0, 0.0
    losses = tf.zeros((), tf.float64)
    started = time.perf_counter()
    for done in range(steps):
        before = time.perf_counter()
        batch = next(batches)
        waited += time.perf_counter() - before
        number = epoch * steps + done
        rate = schedule.learning_rate(number)
        loss = step(batch, number, rate)
        losses += tf.cast(loss, tf.float64)  # reading it here would wait for the step
        pairs += int(batch[1].shape[0])
        callbacks.on_train_batch_end(done, {"loss": loss})
        if step.context.any_at(number, should_stop()):
            raise TrainingInterrupted
    loss = float(losses) / steps
    took = time.perf_counter() - started
    return EpochFigures(loss, rate, pairs / took, waited / took)


class Validator:
    """Scores the same pairs, of people who are not trained on, after each epoch.

    Args:
        model: Scores the pairs with its current weights.
        source: Where the model's inputs come from.
        pairs: The validation pairs.
        batch_size: Pairs scored at a time.
    """

    def __init__(self, model: Trainable, source: Store, pairs: PairList, batch_size: int) -> None:
        self._pairs = pairs
        # One dataset for all epochs: TensorFlow would trace each new one again. TensorFlow keeps
        # the generator, so the generator must not refer to the model.
        self._batches = make_dataset(source, lambda: iter([pairs]), batch_size)

        def score(sides: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
            return model.scores(tf.concat(sides, axis=0))

        self._score: Any = tf.function(score, autograph=False, reduce_retracing=True)

    def __call__(self) -> float:
        """Score all pairs and return the AUC."""
        parts = [self._score(sides).numpy() for sides, _ in self._batches]
        return auc(*check_two_classes(self._pairs.genuine, np.concatenate(parts)))


class ProgressReport(keras.callbacks.Callback):  # type: ignore[misc]
    """Shows the progress of each epoch and reports its figures."""

    def __init__(self, training: Training) -> None:
        super().__init__()
        self._training = training
        self._show_step = console.progress("")

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._show_step = console.progress(f"epoch {epoch + 1}/{self._training.epochs}")

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self._show_step(batch + 1, self._training.data.steps_per_epoch)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        training, row = self._training, logs or {}
        left_s = training.seconds * (training.epochs / (epoch + 1) - 1)
        console.log(
            f"epoch {epoch + 1}/{training.epochs}  loss {row['loss']:.4f}  "
            f"validation AUC {row['val_auc']:.4f}  {row['pairs_per_s']:,.0f} pairs/s  "
            f"input wait {row['input_wait']:.1%}  {format_duration(left_s)} left"
        )


class EpochBoard(keras.callbacks.TensorBoard):  # type: ignore[misc]
    """Writes epochs for TensorBoard, and nothing for steps.

    Keras makes a tensor of each step's loss even where none is written, and TensorFlow never frees
    the tensor of a Python number.
    """

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Do nothing."""


class _StopHandler:
    """A signal handler that records the first signal and raises on the second."""

    def __init__(self) -> None:
        self.requested = threading.Event()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.requested.is_set():
            raise KeyboardInterrupt
        self.requested.set()
        console.log(
            "stopping; a resumed run goes on from the last finished epoch. Press Ctrl-C again to "
            "stop at once"
        )


@contextlib.contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Handle Ctrl-C and SIGTERM within the block.

    A block within another one shares its handler: a signal stops both. Outside the main thread,
    where Python allows no handlers, nothing is handled.

    Yields:
        A function that returns whether a stop was requested since the block began.

    Raises:
        KeyboardInterrupt: On the second signal.
    """
    outer = signal.getsignal(signal.SIGINT)
    if isinstance(outer, _StopHandler):
        yield outer.requested.is_set
        return
    handler = _StopHandler()
    if threading.current_thread() is not threading.main_thread():
        yield handler.requested.is_set
        return
    previous = {
        number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield handler.requested.is_set
    finally:
        for number, old in previous.items():
            signal.signal(number, old)
