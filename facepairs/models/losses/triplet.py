"""Triplets mined within a batch."""

from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import (
    MAX_SQUARED_DISTANCE,
    PairLoss,
    diagonal_mask,
    masked_mean,
    same_person,
    squared_distances,
)


@keras.saving.register_keras_serializable("facepairs")
class TripletInBatch(PairLoss):
    """An image must be closer to its partner than to other people, by `margin`.

    Distances are squared Euclidean, 0 to 4. Every image of a genuine pair is an anchor; one without
    a negative costs nothing.

    Args:
        margin: By how much.
        mining: "semi-hard": the partner is the pair's other image; the negative is the nearest one
            beyond it or, if there is none, the farthest of all. "hard": the partner is the farthest
            image of the person in the batch, the negative the nearest image of anyone else.
        **kwargs: Those of `keras.Layer`.

    References:
        Schroff, Kalenichenko, Philbin, "FaceNet", CVPR 2015; Hermans, Beyer, Leibe, "In Defense of
        the Triplet Loss for Person Re-Identification", 2017 (there without the square).
    """

    settings = ("margin", "mining")

    def __init__(self, margin: float = 0.2, mining: str = "semi-hard", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.margin, self.mining = margin, mining

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        images = ops.concatenate([left, right], axis=0)
        people = ops.concatenate([left_person, right_person], axis=0)
        distance = squared_distances(images, images)
        same = same_person(people, people)
        other = ops.logical_not(same)
        if self.mining == "hard":
            partners = ops.logical_and(same, ops.logical_not(diagonal_mask(images)))
            partner = ops.max(ops.where(partners, distance, 0.0), axis=1)
            negative = _nearest(distance, other)
        else:
            pair = ops.relu(2 - 2 * ops.sum(left * right, axis=1))
            partner = ops.concatenate([pair, pair], axis=0)
            negative = _semi_hard(distance, other, partner)
        anchor = ops.logical_and(ops.tile(genuine > 0, (2,)), ops.any(other, axis=1))
        return masked_mean(ops.relu(self.margin + partner - negative), anchor)


def _nearest(distance: Any, mask: Any) -> Any:
    return ops.min(ops.where(mask, distance, MAX_SQUARED_DISTANCE), axis=1)


def _semi_hard(distance: Any, other: Any, partner: Any) -> Any:
    beyond = ops.logical_and(other, distance > partner[:, None])
    farthest = ops.max(ops.where(other, distance, 0.0), axis=1)
    return ops.where(ops.any(beyond, axis=1), _nearest(distance, beyond), farthest)
