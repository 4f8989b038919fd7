"""What makes a batch that several devices share that of one device: gathering, synchronising.

Called within `tf.distribute.Strategy.run`. Every replica computes the loss of the whole batch from
gathered outputs, and takes its gradient divided by the number of replicas: what Keras's optimizers
sum over the replicas is then the gradient of one device with the whole batch.
"""

from typing import Any

import keras
import tensorflow as tf

from facepairs.models.step_random import BatchShard


def gathered(own: Any, part: BatchShard | None) -> Any:
    """Give the rows of all replicas in the batch's order: float32[b, …] → float32[B, …].

    Backwards each replica takes the slope of its own rows, times the number of replicas: all have
    computed the same loss from the same rows, so nothing need be sent. Without `part` one device
    has all.
    """
    if part is None:
        return own

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def gather(rows: tf.Tensor) -> Any:
        whole = tf.distribute.get_replica_context().all_gather(rows, axis=0)
        whole = tf.ensure_shape(whole, [part.of, *rows.shape[1:]])
        return whole, lambda slope: slope[part.begin : part.end] * part.replicas

    return gather(own)


def gathered_sides(own: Any, part: BatchShard | None) -> tuple[Any, Any]:
    """Give the left and the right rows of all replicas: float32[2·b, D] → twice float32[B, D]."""
    left, right = tf.split(own, 2, axis=0)
    if part is None:
        return left, right
    both = gathered(tf.concat([left, right], axis=1), part)
    left, right = tf.split(both, 2, axis=1)
    return left, right


def synchronise(head: keras.Model) -> None:
    """Let batch norms take mean and variance over the batches of all replicas."""
    for layer in head.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.synchronized = True
