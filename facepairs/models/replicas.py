"""Make a batch that several replicas share equivalent to the same batch on one device.

Called within `tf.distribute.Strategy.run`. Every replica computes the loss of the whole batch from
gathered outputs, and takes its gradient divided by the number of replicas. Keras's optimizers sum
over the replicas, and the sum is the gradient that one device with the whole batch would compute.
"""

from typing import Any

import keras
import tensorflow as tf

from facepairs.models.step_random import BatchShard


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
