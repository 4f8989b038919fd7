"""The Siamese network's first objective."""

from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import PairLoss, mean_of_kinds, squared_distances

SMOOTH = 1e-6  # added to squared distances: the root's slope at 0 is infinite


@keras.saving.register_keras_serializable("facepairs")
class MarginContrastive(PairLoss):
    """Genuine pairs are pulled together, impostor pairs pushed `margin` apart.

    Distances d are Euclidean, from 0 to 2, `margin` lies between; a genuine pair costs d², an
    impostor pair max(0, margin - d)². All pairs (left i, right j) count, both kinds equally: where
    every pair drawn is genuine, the impostors are those off the diagonal.
    Source: Hadsell, Chopra, LeCun, *Dimensionality Reduction by Learning an Invariant Mapping*,
    2006.
    """

    def __init__(self, margin: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.margin = margin

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "margin": self.margin}

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        square = squared_distances(left, right)
        too_near = ops.relu(self.margin - ops.sqrt(square + SMOOTH))
        return mean_of_kinds(square, ops.square(too_near), left_person, right_person)
