"""A margin on the angle to a person's direction."""

import math
from typing import Any

import keras
from keras import ops

from facepairs.models.losses.identity import IdentityLoss

EPSILON = 1e-6  # added below the root, whose slope at 0 is infinite


@keras.saving.register_keras_serializable("facepairs")
class ArcFace(IdentityLoss):
    """Softmax over identities with `margin` (radians, 0 to π) added to the angle to the own person.

    If the angle would exceed π, the cosine is lowered by margin · sin(margin) instead, as in the
    authors' code. Published with margin 0.5 and scale 64 (temperature 1/64) for millions of photos.

    References:
        Deng et al., "ArcFace: Additive Angular Margin Loss for Deep Face Recognition", CVPR 2019.
    """

    def with_margin(self, cosine: Any) -> Any:
        sine = ops.sqrt(ops.relu(1 - ops.square(cosine)) + EPSILON)
        shifted = cosine * math.cos(self.margin) - sine * math.sin(self.margin)
        below_pi = cosine > -math.cos(self.margin)
        return ops.where(below_pi, shifted, cosine - self.margin * math.sin(self.margin))
