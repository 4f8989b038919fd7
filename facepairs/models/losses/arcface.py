"""The objective over identities: each person has a direction, learned with the network."""

import math
from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import EPSILON, TemperatureLoss, cosines


@keras.saving.register_keras_serializable("facepairs")
class ArcFace(TemperatureLoss):
    """Classify every image as its person among all training people, by angles.

    `margin` is added to the angle between an image and its own person. If the angle would exceed π,
    the cosine is lowered by margin · sin(margin) instead, as in the authors' code. Published with
    margin 0.5 and scale 64 (temperature 1/64) for millions of photos. A step computes 2·B·P
    cosines: suited to thousands of people, not to millions.

    Args:
        people: P, how many people are trained on.
        dimensions: Length of an embedding.
        temperature: Divides cosines.
        margin: Radians, 0 to π.
        **kwargs: Those of `keras.Layer`.

    References:
        Deng et al., "ArcFace: Additive Angular Margin Loss for Deep Face Recognition", CVPR 2019.
    """

    settings = ("people", "dimensions", "temperature", "margin")

    def __init__(
        self,
        people: int,
        dimensions: int,
        temperature: float = 0.1,
        margin: float = 0.2,
        **kwargs: Any,
    ) -> None:
        super().__init__(temperature, **kwargs)
        self.people, self.dimensions, self.margin = people, dimensions, margin
        self.directions = self.add_weight(
            (people, dimensions),
            keras.initializers.RandomNormal(stddev=dimensions**-0.5),
            name="directions",
        )

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        images = ops.concatenate([left, right], axis=0)
        person = ops.concatenate([left_person, right_person], axis=0)
        cosine = cosines(images, ops.normalize(self.directions, axis=-1, order=2))
        own = ops.equal(person[:, None], ops.arange(self.people, dtype="int32"))
        target = self._add_margin(ops.sum(ops.where(own, cosine, 0.0), axis=1))
        logits = ops.where(own, target[:, None], cosine) / self.temperature
        return ops.mean(ops.logsumexp(logits, axis=1) - target / self.temperature)

    def _add_margin(self, cosine: Any) -> Any:
        """Lower the cosines of images with their own person: float32[N] → float32[N]."""
        sine = ops.sqrt(ops.relu(1 - ops.square(cosine)) + EPSILON)
        shifted = cosine * math.cos(self.margin) - sine * math.sin(self.margin)
        below_pi = cosine > -math.cos(self.margin)
        return ops.where(below_pi, shifted, cosine - self.margin * math.sin(self.margin))
