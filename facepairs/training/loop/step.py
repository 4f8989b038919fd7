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
SINGLE_DEVICE = DistributedContext()


def never_stop() -> bool:
    """Return False: the training runs to its end."""
    return False


class TrainStep:
    """A compiled training step.

    When several devices share the step, batches hold the images of this worker's range and the
    labels of the whole batch. Each step also sums the workers' requests to stop, so all workers
    stop after the same step.

    Args:
        model: What is trained; built in the context's scope.
        source: Where the model's inputs come from.
        seed: Seed of the augmentation.
        optimizer: Built for the model's trainable variables; by default a new one.
        should_stop: Returns whether training was asked to stop.
        context: The devices; by default a single one.

    Attributes:
        compiled: The compiled step, which `__call__` runs.
    """

    def __init__(
        self,
        model: Trainable,
        source: InputSource,
        seed: int,
        *,
        optimizer: keras.Optimizer | None = None,
        should_stop: Callable[[], bool] = never_stop,
        context: DistributedContext = SINGLE_DEVICE,
    ) -> None:
        self.model, self.source, self.context = model, source, context
        self.optimizer = optimizer or create_optimizer(model, context)
        self._should_stop = should_stop
        self._stop_requests: tuple[tf.Tensor, ...] = ()  # of the last two shared steps
        self._seed = tf.constant(seed, tf.int64)
        compute = self.compute_shared if context.strategy else self.compute
        self.compiled: Any = tf.function(compute, autograph=False)

    def __call__(self, batch: Batch, step: int) -> tf.Tensor:
        """Run a step and return the loss of the whole batch, a float32 scalar."""
        # As an array: TensorFlow keeps 750 bytes for every new Python number for good.
        number = tf.constant(np.asarray(step, np.int64))
        if not self.context.strategy:
            return self.compiled(batch, number, self.source.arrays)
        asked = tf.constant(float(self._should_stop()))
        loss, requests = self.compiled(batch, number, self.source.arrays, asked)
        self._stop_requests = (*self._stop_requests[-1:], requests)
        return loss

    def must_stop(self) -> bool:
        """Return whether to stop before the next step; the same on all workers.

        Shared steps read the requests of the step before the last: it is done, so nothing waits.
        """
        if not self.context.strategy:
            return self._should_stop()
        return len(self._stop_requests) > 1 and float(self._stop_requests[0]) > 0

    def compute(self, batch: Batch, step: tf.Tensor, arrays: tuple[tf.Tensor, ...]) -> tf.Tensor:
        """Run a step within a graph and return the loss, a float32 scalar.

        Args:
            batch: The pairs.
            step: int64 scalar, from 0.
            arrays: The input source's.
        """
        inputs = self.source.gather(batch["images"], *arrays)
        return self._update(inputs, batch, StepRandom(self._seed, step))

    def compute_shared(
        self, batch: Batch, step: tf.Tensor, arrays: tuple[tf.Tensor, ...], asked: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Run this worker's part of a step within a graph.

        Args:
            batch: The pairs of the whole batch.
            step: int64 scalar, from 0.
            arrays: The input source's.
            asked: float32 scalar, 1 if this worker is to stop, else 0.

        Returns:
            The loss of the whole batch and the sum of `asked` over all workers, float32 scalars.
        """
        strategy = self.context.strategy
        assert strategy is not None
        inputs = self.source.gather(batch["images"], *arrays)
        shards = self.context.split_local_batch(int(batch["genuine"].shape[0]), inputs)

        def replica() -> tuple[tf.Tensor, tf.Tensor]:
            shard, images = shards[self.context.local_replica_index()]
            loss = self._update(images, batch, StepRandom(self._seed, step, shard))
            replicas = tf.distribute.get_replica_context()
            return loss, replicas.all_reduce("sum", tf.identity(asked))

        results = strategy.run(replica)
        return tuple(strategy.experimental_local_results(x)[0] for x in results)

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


def create_optimizer(
    model: Trainable, context: DistributedContext, clip_norm: float | None = None
) -> keras.Optimizer:
    """Build the optimizer of a model; the loop sets its learning rate before each step."""
    with context.scope():
        optimizer = keras.optimizers.Adam(global_clipnorm=clip_norm)
        optimizer.build(model.trainable_variables)
    return optimizer


def _people(batch: Batch) -> tf.Tensor:
    """Return the person of every image, int32[2·B]; without names, every pair's are its own."""
    if "people" in batch:
        return batch["people"]
    left = tf.range(tf.size(batch["genuine"]))
    return tf.concat([left, tf.where(batch["genuine"], left, -1 - left)], axis=0)
