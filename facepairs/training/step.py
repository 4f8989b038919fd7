"""One training step: compute the loss, move the weights by its gradient.

Several devices may share a step. Together they compute the gradient that one device would compute
for the whole batch (`facepairs.models.replicas` says how).
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from facepairs.models.network import Trainable
from facepairs.models.replicas import BatchShard, StepRandom
from facepairs.pipeline.dataset import Batch
from facepairs.training.distributed import SINGLE_DEVICE, DistributedContext


class TrainStep:
    """A compiled training step.

    When several devices share the step, batches hold the images of this worker's range and the
    labels of the whole batch.

    Args:
        model: What is trained; built in the context's scope.
        seed: Seed of the augmentation.
        optimizer: Built for the model's trainable variables.
        context: The devices; by default a single one.

    Attributes:
        compiled: The compiled step, which `__call__` runs.
    """

    def __init__(
        self,
        model: Trainable,
        seed: int,
        optimizer: keras.Optimizer,
        context: DistributedContext = SINGLE_DEVICE,
    ) -> None:
        self.model, self.optimizer = model, optimizer
        self.context = context
        self._seed = tf.constant(seed, tf.int64)
        self.compiled: Any = tf.function(self.compute, autograph=False)

    def __call__(self, batch: Batch, number: int, learning_rate: float) -> tf.Tensor:
        """Run step `number`, from 0, and return the loss of the whole batch, a float32 scalar."""
        # As arrays: TensorFlow keeps 750 bytes for every new Python number for good.
        self.optimizer.learning_rate.assign(np.asarray(learning_rate, np.float32))
        return self.compiled(batch, tf.constant(np.asarray(number, np.int64)))

    def compute(self, batch: Batch, number: tf.Tensor) -> tf.Tensor:
        """Run this worker's part of a step within a graph; return the whole batch's loss, float32.

        Args:
            batch: The pairs.
            number: int64 scalar, from 0.
        """
        sides, genuine = batch

        def update(shard: BatchShard | None, images: tf.Tensor) -> tf.Tensor:
            return self._update(images, genuine, StepRandom(self._seed, number, shard))

        return self.context.run(genuine.shape[0], tf.concat(sides, axis=0), update)

    def _update(self, inputs: tf.Tensor, genuine: tf.Tensor, random: StepRandom) -> tf.Tensor:
        """Move the weights by the gradient of the batch's loss; return the loss."""
        with tf.GradientTape() as tape:
            loss = self.model.loss(inputs, genuine, _people(genuine), random)
            # The optimizer sums the gradients of all replicas.
            scaled = loss / random.shard.replicas if random.shard else loss
        weights = self.model.trainable_variables
        self.optimizer.apply(tape.gradient(scaled, weights), weights)
        return loss


def create_optimizer(
    model: Trainable, context: DistributedContext, clip_norm: float | None = None
) -> keras.Optimizer:
    """Build the optimizer of a model; each step sets its learning rate."""
    with context.scope():
        optimizer = keras.optimizers.Adam(global_clipnorm=clip_norm)
        optimizer.build(model.trainable_variables)
    return optimizer


def _people(genuine: tf.Tensor) -> tf.Tensor:
    """Return the person of every image, int32[2·B]: every pair's are its own."""
    left = tf.range(tf.size(genuine))
    return tf.concat([left, tf.where(genuine > 0, left, -1 - left)], axis=0)
