"""Objectives on pairs: every pair is of one person or of two, and costs what its class costs."""

from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import (
    EPSILON,
    PairLoss,
    masked_mean,
    same_person,
    squared_distances,
)


@keras.saving.register_keras_serializable("facepairs")
class BinaryLogit(PairLoss):
    """Binary cross-entropy: logits float32[B], genuine float32[B] of 0 and 1 → scalar.

    The only objective on scores rather than embeddings. It never overflows.
    """

    def call(self, scores: Any, genuine: Any) -> Any:
        cost = ops.relu(scores) - scores * genuine + ops.log1p(ops.exp(-ops.abs(scores)))
        return ops.mean(cost)


@keras.saving.register_keras_serializable("facepairs")
class MarginContrastive(PairLoss):
    """Pull genuine pairs together and push impostor pairs `margin` apart.

    With the Euclidean distance d (0 to 2), a genuine pair costs d², an impostor pair
    max(0, margin - d)². All pairs (left i, right j) are used, both classes with equal weight; a
    class without pairs costs nothing.

    Args:
        margin: Between 0 and 2.
        **kwargs: Those of `keras.Layer`.

    References:
        Hadsell, Chopra, LeCun, "Dimensionality Reduction by Learning an Invariant Mapping",
        CVPR 2006.
    """

    settings = ("margin",)

    def __init__(self, margin: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.margin = margin

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        square = squared_distances(left, right)
        missing = ops.relu(self.margin - ops.sqrt(square + EPSILON))
        same = same_person(left_person, right_person)
        impostor = masked_mean(ops.square(missing), ops.logical_not(same))
        return 0.5 * (masked_mean(square, same) + impostor)
