"""Triplets mined within a batch."""

from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import (
    FARTHEST,
    PairLoss,
    itself,
    mean_where,
    one_person,
    squared_distances,
)


@keras.saving.register_keras_serializable("facepairs")
class TripletInBatch(PairLoss):
    """An image must be nearer to its partner than to other people, by `margin`.

    Distances are squared Euclidean, from 0 to 4. Every image of a genuine pair is an anchor. With
    `mining` "semi-hard" its partner is the pair's other image, and the negative is the nearest one
    beyond it, or where none is, the farthest of all. With "hard" the partner is the farthest image
    of the person in the batch, the negative the nearest image of anybody else. An anchor without a
    negative costs nothing.
    Source: Schroff, Kalenichenko, Philbin, *FaceNet*, 2015; Hermans, Beyer, Leibe, *In Defense of
    the Triplet Loss for Person Re-Identification*, 2017 (there without the square).
    """

    def __init__(self, margin: float = 0.2, mining: str = "semi-hard", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if mining not in ("semi-hard", "hard"):
            raise ValueError(f"mining is {mining!r}; known: semi-hard, hard")
        self.margin = margin
        self.mining = mining

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "margin": self.margin, "mining": self.mining}

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        images = ops.concatenate([left, right], axis=0)
        people = ops.concatenate([left_person, right_person], axis=0)
        distance = squared_distances(images, images)
        same = one_person(people, people)
        other = ops.logical_not(same)
        nearest = ops.min(ops.where(other, distance, FARTHEST), axis=1)
        if self.mining == "hard":
            mine = ops.logical_and(same, ops.logical_not(itself(images)))
            partner, negative = ops.max(ops.where(mine, distance, 0.0), axis=1), nearest
        else:
            pair = ops.relu(2 - 2 * ops.sum(left * right, axis=1))
            partner = ops.concatenate([pair, pair], axis=0)
            negative = self._semi_hard(distance, other, partner)
        anchor = ops.logical_and(ops.tile(genuine > 0, (2,)), ops.any(other, axis=1))
        return mean_where(ops.relu(self.margin + partner - negative), anchor)

    def _semi_hard(self, distance: Any, other: Any, partner: Any) -> Any:
        beyond = ops.logical_and(other, distance > partner[:, None])
        nearest = ops.min(ops.where(beyond, distance, FARTHEST), axis=1)
        farthest = ops.max(ops.where(other, distance, 0.0), axis=1)
        return ops.where(ops.any(beyond, axis=1), nearest, farthest)
