"""Triplets mined within a batch."""

from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import (
    MAX_SQUARED_DISTANCE,
    PairLoss,
    masked_mean,
    same_person,
    squared_distances,
)


@keras.saving.register_keras_serializable("facepairs")
class TripletInBatch(PairLoss):
    """An image must be closer to its partner than to other people, by `margin`.

    Distances are squared Euclidean, 0 to 4. Every image of a genuine pair is an anchor; one without
    a negative costs nothing. The negative is semi-hard: the nearest one beyond the partner or, if
    there is none, the farthest of all.

    Args:
        margin: By how much.
        **kwargs: Those of `keras.Layer`.

    References:
        Schroff, Kalenichenko, Philbin, "FaceNet: A Unified Embedding for Face Recognition and
        Clustering", CVPR 2015.
    """

    settings = ("margin",)

    def __init__(self, margin: float = 0.2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.margin = margin

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        images = ops.concatenate([left, right], axis=0)
        people = ops.concatenate([left_person, right_person], axis=0)
        distance = squared_distances(images, images)
        other = ops.logical_not(same_person(people, people))
        pair = ops.relu(2 - 2 * ops.sum(left * right, axis=1))
        partner = ops.concatenate([pair, pair], axis=0)
        beyond = ops.logical_and(other, distance > partner[:, None])
        nearest = ops.min(ops.where(beyond, distance, MAX_SQUARED_DISTANCE), axis=1)
        farthest = ops.max(ops.where(other, distance, 0.0), axis=1)
        negative = ops.where(ops.any(beyond, axis=1), nearest, farthest)
        anchor = ops.logical_and(ops.tile(genuine > 0, (2,)), ops.any(other, axis=1))
        return masked_mean(ops.relu(self.margin + partner - negative), anchor)
