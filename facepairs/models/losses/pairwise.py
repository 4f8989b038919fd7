"""Objectives on pairs: every pair is of one person or of two, and costs what its class costs."""

import math
from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import (
    EPSILON,
    PairLoss,
    TemperatureLoss,
    cosines,
    masked_mean,
    same_person,
    squared_distances,
)


@keras.saving.register_keras_serializable("facepairs")
class BinaryLogit(PairLoss):
    """Binary cross-entropy: logits float32[B], genuine float32[B] of 0 and 1 → scalar.

    The only objective on scores rather than embeddings.
    """

    def call(self, scores: Any, genuine: Any) -> Any:
        return ops.mean(binary_cross_entropy(scores, genuine))


def binary_cross_entropy(logits: Any, labels: Any) -> Any:
    """Return each logit's cost, max(x, 0) - x·y + log(1 + exp(-|x|)), which never overflows."""
    return ops.relu(logits) - logits * labels + ops.log1p(ops.exp(-ops.abs(logits)))


def mean_of_classes(genuine: Any, impostor: Any, left_person: Any, right_person: Any) -> Any:
    """Return the mean cost over all pairs (left i, right j), both classes with equal weight.

    In a batch of genuine pairs only, the impostor pairs are those off the diagonal.

    Args:
        genuine: float32[B, B], the cost of each pair if it is genuine.
        impostor: float32[B, B], the cost of each pair if it is an impostor pair.
        left_person: int32[B].
        right_person: int32[B].

    Returns:
        float32 scalar; a class without pairs costs nothing.
    """
    same = same_person(left_person, right_person)
    different = ops.logical_not(same)
    return 0.5 * (masked_mean(genuine, same) + masked_mean(impostor, different))


@keras.saving.register_keras_serializable("facepairs")
class MarginContrastive(PairLoss):
    """Pull genuine pairs together and push impostor pairs `margin` apart.

    With the Euclidean distance d (0 to 2), a genuine pair costs d², an impostor pair
    max(0, margin - d)². All pairs (left i, right j) are used, both classes with equal weight.

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
        return mean_of_classes(square, ops.square(missing), left_person, right_person)


@keras.saving.register_keras_serializable("facepairs")
class DifferenceCrossEntropy(TemperatureLoss):
    """Binary cross-entropy of "genuine" with the logit scale · (cosine - centre), both learned.

    The scale starts at 1 / `temperature` and stays positive; the centre starts at 0.5. All pairs
    (left i, right j) are used, both classes with equal weight.

    References:
        Zhai et al., "Sigmoid Loss for Language Image Pre-Training", ICCV 2023, there without the
        weights.
    """

    def __init__(self, temperature: float = 0.1, **kwargs: Any) -> None:
        super().__init__(temperature, **kwargs)
        constant = keras.initializers.Constant
        self.log_scale = self.add_weight((), constant(-math.log(temperature)), name="log_scale")
        self.centre = self.add_weight((), constant(0.5), name="centre")

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        logits = ops.exp(self.log_scale) * (cosines(left, right) - self.centre)
        if_genuine, if_impostor = (binary_cross_entropy(logits, label) for label in (1.0, 0.0))
        return mean_of_classes(if_genuine, if_impostor, left_person, right_person)
