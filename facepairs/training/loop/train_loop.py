"""The training loop: it can resume within an epoch, and it measures how long it waits for input.

It drives a `keras.callbacks.CallbackList`, so Keras's callbacks work as they do with `fit`. The
same loop runs on one device, on several, and on several hosts.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import tensorflow as tf
from keras.callbacks import CallbackList

from facepairs.training.loop.clock import running_s
from facepairs.training.loop.schedule import Schedule, TrainingProgress
from facepairs.training.loop.step import Batch, TrainStep

MAX_PENDING_LOSSES = 256  # an epoch may have any number of steps


class TrainingInterrupted(Exception):
    """Training was asked to stop and has stopped between two steps."""


class TrainLoop:
    """Runs training steps, epoch by epoch.

    Args:
        step: The training step; it also decides when to stop.
        validate: Called after each epoch; its figures become part of the epoch's row.
        progress: Where to start; updated in place.
    """

    def __init__(
        self,
        step: TrainStep,
        validate: Callable[[], dict[str, float]] = dict,
        progress: TrainingProgress | None = None,
    ) -> None:
        self.step = step
        self.validate = validate
        self.progress = progress or TrainingProgress()
        self._pending: list[tf.Tensor] = []  # reading a loss at once would wait for its step

    def run(
        self,
        batches: Iterable[Batch],
        schedule: Schedule,
        callbacks: CallbackList,
        replan: Callable[[Schedule], Schedule] = lambda schedule: schedule,
    ) -> Schedule:
        """Train to the end of the schedule.

        Args:
            batches: Batches from step `progress.step` on.
            schedule: Length and learning rate.
            callbacks: Called as `keras.Model.fit` calls them; `on_train_batch_end` receives the
                number of steps done.
            replan: Called after each epoch; returns the schedule to follow from there on.

        Returns:
            The schedule that was followed.

        Raises:
            TrainingInterrupted: Training was asked to stop; `progress` is between two steps.
        """
        iterator = iter(batches)
        callbacks.on_train_begin()
        while self.progress.step < schedule.steps:
            epoch = self.progress.step // schedule.steps_per_epoch
            callbacks.on_epoch_begin(epoch)
            logs = self._run_epoch(iterator, schedule, callbacks)
            started = running_s()
            logs |= self.validate()
            self.progress.seconds += running_s() - started
            logs["seconds"] = self.progress.seconds
            self.progress.history.append({"epoch": epoch + 1, **logs})
            schedule = replan(schedule)
            callbacks.on_epoch_end(epoch, logs)
            if self.step.must_stop():
                raise TrainingInterrupted
        callbacks.on_train_end()
        return schedule

    def sum_losses(self) -> None:
        """Wait for the last steps and add their losses to `progress`, so that it can be saved."""
        self.progress.loss_sum += sum(map(float, self._pending))
        self.progress.loss_steps += len(self._pending)
        self._pending.clear()

    def _run_epoch(
        self, batches: Iterator[Batch], schedule: Schedule, callbacks: CallbackList
    ) -> dict[str, float]:
        """Run the rest of the current epoch; return its mean loss, speed and input wait."""
        progress = self.progress
        pairs, waited = 0, 0.0
        started = before = running_s()
        end = (progress.step // schedule.steps_per_epoch + 1) * schedule.steps_per_epoch
        while progress.step < end:
            batch = next(batches)
            ready = running_s()
            rate = schedule.learning_rate(progress.step)
            # An array, since TensorFlow keeps the tensor of every new Python number for good.
            self.step.optimizer.learning_rate.assign(np.asarray(rate, np.float32))
            with tf.profiler.experimental.Trace("train", step_num=progress.step, _r=1):
                self._pending.append(self.step(batch, progress.step))
            pairs += int(batch["genuine"].shape[0])
            progress.step += 1
            callbacks.on_train_batch_end(progress.step, {"loss": self._pending[-1]})
            if len(self._pending) == MAX_PENDING_LOSSES:
                self.sum_losses()
            after = running_s()
            waited += ready - before
            progress.seconds += after - before
            before = after
            if progress.step < end and self.step.must_stop():
                self.sum_losses()
                raise TrainingInterrupted  # after an epoch's last step, `run` validates first
        self.sum_losses()
        loss = progress.loss_sum / progress.loss_steps
        progress.loss_sum, progress.loss_steps = 0.0, 0
        took = running_s() - started
        return {
            "loss": loss,
            "learning_rate": rate,
            "pairs_per_s": pairs / took,
            "input_wait": waited / took,
        }
