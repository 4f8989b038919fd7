"""Contrastive loss with a margin."""

from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import PairLoss, mean_of_classes, squared_distances

EPSILON = 1e-6  # added to squared distances: the root's slope at 0 is infinite


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
