"""Training steps that several replicas share: together they do what one device would do.

Random numbers are a pure function of seed, step and position in the batch; a replica takes the rows
of its own shard. Within `tf.distribute.Strategy.run`, every replica computes the loss of the
whole batch from gathered outputs, and takes its gradient divided by the number of replicas. Keras's
optimizers sum over the replicas, and the sum is the gradient of one device with the whole batch.
"""

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from facepairs.support.random_streams import Stream

# TensorFlow's seeds are two words of 31 bits, so streams start far apart in the second one.
FIRST_STEP = {Stream.AUGMENTATION: 0, Stream.DROPOUT: 2**30}


@dataclass(frozen=True)
class BatchShard:
    """The pairs [begin, end) of a global batch of `batch_pairs` that one replica processes."""

    begin: int
    end: int
    batch_pairs: int
    replicas: int

    def take(self, batch: Any) -> Any:
        """Return the shard's rows of a global batch.

        Args:
            batch: Tensor [2·batch_pairs, …], the left images before the right ones.

        Returns:
            Tensor [2·(end - begin), …] in the same order.
        """
        right = self.batch_pairs + self.begin
        right_end = self.batch_pairs + self.end
        return tf.concat([batch[self.begin : self.end], batch[right:right_end]], axis=0)


def split_batch(pairs: int, replicas: int) -> list[BatchShard]:
    """Split a batch into one contiguous shard per replica; sizes differ by at most one pair."""
    bounds = [pairs * i // replicas for i in range(replicas + 1)]
    return [BatchShard(bounds[i], bounds[i + 1], pairs, replicas) for i in range(replicas)]


@dataclass(frozen=True)
class StepRandom:
    """The random numbers of one training step.

    Attributes:
        seed: The run's seed, int64 scalar.
        step: The step's number from 0, int64 scalar.
        shard: The rows that this replica takes; None when a single device has the whole batch.
    """

    seed: Any
    step: Any
    shard: BatchShard | None = None

    def uniform(
        self, stream: Stream, shape: tuple[Any, ...], low: float = 0.0, high: float = 1.0
    ) -> Any:
        """Draw float32 numbers in [low, high).

        Args:
            stream: AUGMENTATION or DROPOUT; no two draws of a step share one.
            shape: Shape of the result; its first axis is the images of the batch or shard.
            low: Lower bound.
            high: Upper bound.

        Returns:
            float32 tensor of `shape`.
        """
        shard = self.shard
        batch_shape = shape if shard is None else (2 * shard.batch_pairs, *shape[1:])
        numbers = tf.random.stateless_uniform(
            batch_shape, self._seed(stream), tf.cast(low, tf.float32), tf.cast(high, tf.float32)
        )
        return numbers if shard is None else shard.take(numbers)

    def dropout(self, stream: Stream, values: Any, rate: float) -> Any:
        """Set a random share of the values to 0 and scale the others by 1 / (1 - rate).

        Args:
            stream: AUGMENTATION or DROPOUT; no two draws of a step share one.
            values: float32[rows, D].
            rate: Expected share of zeros, in [0, 1).

        Returns:
            float32[rows, D].
        """
        kept = self.uniform(stream, (tf.shape(values)[0], values.shape[1])) >= rate
        return tf.where(kept, values * (1 / (1 - rate)), 0.0)

    def _seed(self, stream: Stream) -> tf.Tensor:
        place = tf.cast(self.step, tf.int64) + FIRST_STEP[stream]
        words = tf.stack([tf.cast(self.seed, tf.int64), place])
        return tf.cast(tf.math.floormod(words, tf.int32.max - 1), tf.int32)


def gather_rows(rows: Any, shard: BatchShard | None) -> Any:
    """Gather the rows of all replicas in the order of the global batch.

    The gradient of a replica is that of its own rows times the number of replicas: every replica
    has computed the same loss from the same rows, so no communication is needed.

    Args:
        rows: float32[b, …], this replica's rows.
        shard: This replica's shard; None when a single device has the whole batch.

    Returns:
        float32[B, …]; `rows` itself without a shard.
    """
    if shard is None:
        return rows

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def gather(own: tf.Tensor) -> Any:
        batch = tf.distribute.get_replica_context().all_gather(own, axis=0)
        batch = tf.ensure_shape(batch, [shard.batch_pairs, *own.shape[1:]])
        return batch, lambda gradient: gradient[shard.begin : shard.end] * shard.replicas

    return gather(rows)


def gather_sides(rows: Any, shard: BatchShard | None) -> tuple[Any, Any]:
    """Gather the left and the right rows of all replicas.

    Args:
        rows: float32[2·b, D], this replica's rows, the left ones before the right ones.
        shard: As in `gather_rows`.

    Returns:
        Left and right rows of the global batch, float32[B, D] each.
    """
    left, right = tf.split(rows, 2, axis=0)
    if shard is None:
        return left, right
    both = gather_rows(tf.concat([left, right], axis=1), shard)
    left, right = tf.split(both, 2, axis=1)
    return left, right


def synchronise_batch_norms(head: keras.Model) -> None:
    """Make batch normalisation take mean and variance over the batches of all replicas."""
    for layer in head.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.synchronized = True
