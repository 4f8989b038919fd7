"""The training loop: explicit, so that it can resume within an epoch and time what it waits for.

It drives a `keras.callbacks.CallbackList`, so Keras's callbacks and ours hang on it as on `fit`.
One device, several and several hosts run the same loop (`training.devices`); each step is that of
one device with the whole batch.
The state of a run is (weights, optimizer, step): pairs, learning rate and augmentation are
functions of the seed and the step alone.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.pairs import PairList
from facepairs.data.sampler import Sampler, block_pairs
from facepairs.models.network import Network
from facepairs.models.step_random import StepRandom
from facepairs.pipeline.dataset import Store
from facepairs.support.clock import running_s
from facepairs.training.distributed.context import Team

FLOOR = 0.01  # of the peak: where the learning rate ends
LOSSES_KEPT = 256  # of an epoch, which may have any number of steps


@dataclass(frozen=True)
class Schedule:
    """How long a run is and how fast it learns; `epochs` counts from 1 in what people see."""

    epochs: int
    steps_per_epoch: int
    peak: float

    @property
    def steps(self) -> int:
        """All steps of the run."""
        return self.epochs * self.steps_per_epoch

    def learning_rate(self, step: int) -> float:
        """Warm up over half an epoch, hold to the end of the first, fall as a cosine afterwards.

        The first epoch does not depend on how many follow: `--minutes` learns that by its speed.
        """
        warm = max(1, self.steps_per_epoch // 2)
        if step < self.steps_per_epoch:
            return self.peak * min(1.0, (step + 1) / warm)
        done = (step - self.steps_per_epoch) / max(1, self.steps - self.steps_per_epoch)
        return self.peak * (FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * min(done, 1.0))))


def training_blocks(
    sampler: Sampler, batch_size: int, steps_per_epoch: int, start_step: int
) -> Iterator[PairList]:
    """Yield the pairs of a run from `start_step` on, epoch after epoch, in blocks.

    Every block holds a multiple of `batch_size` pairs; the pairs do not depend on `start_step`.
    """
    whole = block_pairs(batch_size)
    epoch_pairs = steps_per_epoch * batch_size
    epoch, step = divmod(start_step, steps_per_epoch)
    position = step * batch_size
    while True:
        while position < epoch_pairs:
            number, skip = divmod(position, whole)
            size = min(whole, epoch_pairs - number * whole)
            block = sampler.block(epoch, number, size)
            yield block.where(slice(skip, None))
            position = number * whole + size
        epoch, position = epoch + 1, 0


def _people(batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Give who the images show, int32[2·B], or where nobody says: other people in every pair."""
    if "people" in batch:
        return batch["people"]
    left = tf.range(tf.size(batch["genuine"]))
    return tf.concat([left, tf.where(batch["genuine"], left, -1 - left)], axis=0)


@dataclass
class Progress:
    """Where a run stands; what is saved beside the weights."""

    step: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)


class Stopped(Exception):
    """Training was asked to stop and has stopped between two steps."""


class TrainLoop:
    """Trains a network on batches as `make_dataset` gives them.

    `validate` gives scores float[N] and labels bool[N] on held-out people; `should_stop` is asked
    between steps. Where a `team` of several devices shares the steps, `network` was built in its
    scope, and batches hold this worker's part (`Team.own`); who is asked to stop stops all.
    """

    def __init__(
        self,
        network: Network,
        store: Store,
        seed: int,
        validate: Callable[[], dict[str, float]],
        should_stop: Callable[[], bool],
        team: Team | None = None,
    ) -> None:
        self.team = team or Team()
        self.network = network
        self.store = store
        self.validate = validate
        self.should_stop = should_stop
        self.progress = Progress()
        with self.team.scope():
            self.optimizer = keras.optimizers.Adam(1e-3)
            self.optimizer.build(network.trainable_variables)
        self._seed = tf.constant(seed, tf.int64)
        self._compiled = tf.function(self._step, autograph=False)
        self._compiled_shared = tf.function(self._shared_step, autograph=False)
        self._asked: tuple[tf.Tensor, ...] = ()  # how many were asked to stop, by recent steps
        self._score = tf.function(self._scores_of, autograph=False, reduce_retracing=True)

    @property
    def variables(self) -> list[keras.Variable]:
        """All that a checkpoint must hold, in a fixed order."""
        return [*self.network.variables, *self.optimizer.variables]

    def _step(
        self, batch: dict[str, tf.Tensor], step: tf.Tensor, arrays: tuple[tf.Tensor, ...]
    ) -> tf.Tensor:
        pixels = self.store.pixels(batch["images"], *arrays)
        return self._learn(pixels, batch, StepRandom(self._seed, step))

    def _learn(self, pixels: tf.Tensor, batch: dict[str, tf.Tensor], draws: StepRandom) -> tf.Tensor:
        genuine = tf.cast(batch["genuine"], tf.float32)
        with tf.GradientTape() as tape:
            loss = self.network.loss(pixels, genuine, _people(batch), draws)
            lowered = loss / draws.part.replicas if draws.part else loss
        weights = self.network.trainable_variables
        self.optimizer.apply(tape.gradient(lowered, weights), weights)
        return loss

    def _shared_step(
        self,
        batch: dict[str, tf.Tensor],
        step: tf.Tensor,
        arrays: tuple[tf.Tensor, ...],
        asked: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Do this worker's part of a step: the whole batch's loss, how many are asked to stop."""
        strategy = self.team.strategy
        assert strategy is not None
        pixels = self.store.pixels(batch["images"], *arrays)
        shares = self.team.share(int(batch["genuine"].shape[0]), pixels)

        def replica() -> tuple[tf.Tensor, tf.Tensor]:
            part, images = shares[self.team.here()]
            loss = self._learn(images, batch, StepRandom(self._seed, step, part))
            return loss, tf.distribute.get_replica_context().all_reduce("sum", tf.identity(asked))

        loss, votes = strategy.run(replica)
        return tuple(strategy.experimental_local_results(x)[0] for x in (loss, votes))

    def _run_step(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        # Of Python's numbers TensorFlow keeps every tensor for good: 750 bytes for each new one.
        step = tf.constant(np.asarray(self.progress.step, np.int64))
        if not self.team.strategy:
            return self._compiled(batch, step, self.store.arrays)
        asked = tf.constant(float(self.should_stop()))
        loss, votes = self._compiled_shared(batch, step, self.store.arrays, asked)
        # The step before is done: to look at its votes does not wait for this one.
        self._asked = (*self._asked[-1:], votes)
        return loss

    def _must_stop(self) -> bool:
        """Tell whether to stop now: all workers find the same, from the same step's votes."""
        if not self.team.strategy:
            return self.should_stop()
        return len(self._asked) > 1 and float(self._asked[0]) > 0

    def run(
        self,
        dataset: Iterable[dict[str, tf.Tensor]],
        schedule: Schedule,
        callbacks: keras.callbacks.CallbackList,
        replan: Callable[[Schedule, Progress], Schedule],
    ) -> Schedule:
        """Train to the schedule's end; `replan` may change its length after each epoch.

        `dataset` must begin at `progress.step`. Raises Stopped when asked to stop; `progress` then
        stands between two steps. Returns the schedule as it was followed.
        """
        batches = iter(dataset)
        callbacks.on_train_begin()
        while self.progress.step < schedule.steps:
            epoch = self.progress.step // schedule.steps_per_epoch
            callbacks.on_epoch_begin(epoch)
            logs = self._epoch(batches, schedule, callbacks)
            started = running_s()
            logs |= self.validate()
            self.progress.seconds += running_s() - started
            logs["seconds"] = self.progress.seconds
            self.progress.history.append({"epoch": epoch + 1, **logs})
            schedule = replan(schedule, self.progress)
            callbacks.on_epoch_end(epoch, logs)
            if self._must_stop():
                raise Stopped
        callbacks.on_train_end()
        return schedule

    def _epoch(
        self,
        batches: Iterator[dict[str, tf.Tensor]],
        schedule: Schedule,
        callbacks: keras.callbacks.CallbackList,
    ) -> dict[str, float]:
        """Run the rest of the current epoch and tell its mean loss, speed and input wait."""
        losses: list[tf.Tensor] = []  # the last ones: reading each would wait for its step
        total, begun = 0.0, self.progress.step
        pairs, waited = 0, 0.0
        started = before = running_s()
        end = (self.progress.step // schedule.steps_per_epoch + 1) * schedule.steps_per_epoch
        while self.progress.step < end:
            batch = next(batches)
            ready = running_s()
            rate = schedule.learning_rate(self.progress.step)
            self.optimizer.learning_rate.assign(np.asarray(rate, np.float32))  # see `_run_step`
            with tf.profiler.experimental.Trace("train", step_num=self.progress.step, _r=1):
                losses.append(self._run_step(batch))
            pairs += int(batch["genuine"].shape[0])
            self.progress.step += 1
            callbacks.on_train_batch_end(self.progress.step, {"loss": losses[-1]})
            if len(losses) == LOSSES_KEPT:
                total += sum(map(float, losses))
                losses.clear()
            after = running_s()
            waited += ready - before
            self.progress.seconds += after - before
            before = after
            if self.progress.step < end and self._must_stop():
                raise Stopped  # an epoch that is through is looked at first, in `run`
        took = running_s() - started
        return {
            "loss": (total + sum(map(float, losses))) / (self.progress.step - begun),
            "learning_rate": rate,
            "pairs_per_s": pairs / took,
            "input_wait": waited / took,
        }

    def scores(self, dataset: tf.data.Dataset) -> npt.NDArray[np.float64]:
        """Score every pair of a dataset with the network as it stands: float64[pairs]."""
        arrays = self.store.arrays
        scores = [self._score(batch["images"], arrays).numpy() for batch in dataset]
        return np.concatenate(scores).astype(np.float64)

    def _scores_of(self, images: tf.Tensor, arrays: tuple[tf.Tensor, ...]) -> tf.Tensor:
        return self.network.scores(self.store.pixels(images, *arrays))
