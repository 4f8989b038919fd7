"""One training step, on a single device or shared by several.

The step of several devices computes the gradient that one device would compute for the whole batch.
"""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from facepairs.models.network import Trainable
from facepairs.models.step_random import StepRandom
from facepairs.pipeline.dataset import InputSource
from facepairs.training.distributed.context import DistributedContext

Batch = dict[str, tf.Tensor]


def never_stop() -> bool:
    """Return False: the training runs to its end."""
    return False


class TrainStep:
    """A compiled training step on a single device.

    Args:
        model: What is trained.
        source: Where the model's inputs come from.
        optimizer: Built for the model's trainable variables.
        seed: Seed of the augmentation.
        should_stop: Returns whether training was asked to stop.

    Attributes:
        compiled: The compiled step, which `__call__` runs.
    """

    def __init__(
        self,
        model: Trainable,
        source: InputSource,
        optimizer: keras.Optimizer,
        seed: int,
        should_stop: Callable[[], bool] = never_stop,
    ) -> None:
        self.model, self.source, self.optimizer = model, source, optimizer
        self.should_stop = should_stop
        self._seed = tf.constant(seed, tf.int64)
        self.compiled: Any = tf.function(self.compute, autograph=False)

    def __call__(self, batch: Batch, step: int) -> tf.Tensor:
        """Run a step on a batch and return its loss, a float32 scalar."""
        return self.compiled(batch, _step_tensor(step), self.source.arrays)

    def must_stop(self) -> bool:
        """Return whether to stop before the next step."""
        return self.should_stop()

    def compute(self, batch: Batch, step: tf.Tensor, arrays: tuple[tf.Tensor, ...]) -> tf.Tensor:
        """Run a step within a graph: `step` int64 scalar, `arrays` the source's; the loss."""
        inputs = self.source.gather(batch["images"], *arrays)
        return self._update(inputs, batch, StepRandom(self._seed, step))

    def _update(self, inputs: tf.Tensor, batch: Batch, random: StepRandom) -> tf.Tensor:
        """Move the weights by the gradient of the batch's loss; return the loss."""
        genuine = tf.cast(batch["genuine"], tf.float32)
        with tf.GradientTape() as tape:
            loss = self.model.loss(inputs, genuine, _people(batch), random)
            # The optimizer sums the gradients of all replicas.
            scaled = loss / random.shard.replicas if random.shard else loss
        weights = self.model.trainable_variables
        self.optimizer.apply(tape.gradient(scaled, weights), weights)
        return loss


class DistributedTrainStep(TrainStep):
    """A training step that the devices of a `DistributedContext` share.

    Batches hold the images of this worker's range and the labels of the whole batch. Each step also
    sums the workers' requests to stop, so all workers stop after the same step.
    """

    def __init__(
        self,
        model: Trainable,
        source: InputSource,
        optimizer: keras.Optimizer,
        seed: int,
        should_stop: Callable[[], bool],
        context: DistributedContext,
    ) -> None:
        super().__init__(model, source, optimizer, seed, should_stop)
        self.context = context
        self.compiled = tf.function(self.compute_shared, autograph=False)
        self._stop_requests: tuple[tf.Tensor, ...] = ()  # of the last two steps

    def __call__(self, batch: Batch, step: int) -> tf.Tensor:
        """Run this worker's part of a step; return the loss of the whole batch."""
        asked = tf.constant(float(self.should_stop()))
        loss, requests = self.compiled(batch, _step_tensor(step), self.source.arrays, asked)
        self._stop_requests = (*self._stop_requests[-1:], requests)
        return loss

    def must_stop(self) -> bool:
        """Return whether to stop before the next step; the same on all workers.

        Reads the requests of the step before the last: it is done, so nothing has to wait.
        """
        return len(self._stop_requests) > 1 and float(self._stop_requests[0]) > 0

    def compute_shared(
        self, batch: Batch, step: tf.Tensor, arrays: tuple[tf.Tensor, ...], asked: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Run this worker's part of a step within a graph: the loss, the sum of `asked`."""
        strategy = self.context.strategy
        assert strategy is not None
        inputs = self.source.gather(batch["images"], *arrays)
        pairs = int(batch["genuine"].shape[0])
        shards = self.context.split_local_batch(pairs, inputs)

        def replica() -> tuple[tf.Tensor, tf.Tensor]:
            shard, images = shards[self.context.local_replica_index()]
            loss = self._update(images, batch, StepRandom(self._seed, step, shard))
            replicas = tf.distribute.get_replica_context()
            return loss, replicas.all_reduce("sum", tf.identity(asked))

        results = strategy.run(replica)
        return tuple(strategy.experimental_local_results(x)[0] for x in results)


def create_optimizer(
    model: Trainable, context: DistributedContext | None = None
) -> keras.Optimizer:
    """Build the optimizer of a model; the loop sets its learning rate before each step."""
    with (context or DistributedContext()).scope():
        optimizer = keras.optimizers.Adam()
        optimizer.build(model.trainable_variables)
    return optimizer


def make_step(
    model: Trainable,
    source: InputSource,
    seed: int,
    *,
    optimizer: keras.Optimizer | None = None,
    should_stop: Callable[[], bool] = never_stop,
    context: DistributedContext | None = None,
) -> TrainStep:
    """Return the training step for the devices of a context.

    Args:
        model: What is trained; built in the context's scope.
        source: Where the model's inputs come from.
        seed: Seed of the augmentation.
        optimizer: Built for the model's trainable variables; by default a new one.
        should_stop: Returns whether training was asked to stop.
        context: The devices; by default a single one.
    """
    optimizer = optimizer or create_optimizer(model, context)
    if context and context.strategy:
        return DistributedTrainStep(model, source, optimizer, seed, should_stop, context)
    return TrainStep(model, source, optimizer, seed, should_stop)


def _step_tensor(step: int) -> Any:
    """Return a step number as a tensor.

    TensorFlow keeps a tensor for every new Python number for good, 750 bytes each.
    """
    return tf.constant(np.asarray(step, np.int64))


def _people(batch: Batch) -> tf.Tensor:
    """Return the person of every image, int32[2·B]; without names, every pair's are its own."""
    if "people" in batch:
        return batch["people"]
    left = tf.range(tf.size(batch["genuine"]))
    return tf.concat([left, tf.where(batch["genuine"], left, -1 - left)], axis=0)
