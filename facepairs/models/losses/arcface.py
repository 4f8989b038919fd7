"""A margin on the angle to a person's direction."""

import math
from typing import Any

import keras
from keras import ops

from facepairs.models.losses.identity import IdentityLoss

SMOOTH = 1e-6  # added below the root: its slope at 0 is infinite


@keras.saving.register_keras_serializable("facepairs")
class ArcFace(IdentityLoss):
    """Softmax over identities with `margin` (radians, 0 to π) added to the own person's angle.

    Where the angle would pass π, the cosine falls by margin · sin(margin) instead, as the authors'
    code has it. Published with margin 0.5 and scale 64 (temperature 1/64) for millions of photos.
    Source: Deng et al., *ArcFace: Additive Angular Margin Loss for Deep Face Recognition*, 2019.
    """

    def with_margin(self, cosine: Any) -> Any:
        sine = ops.sqrt(ops.relu(1 - ops.square(cosine)) + SMOOTH)
        turned = cosine * math.cos(self.margin) - sine * math.sin(self.margin)
        within = cosine > -math.cos(self.margin)
        return ops.where(within, turned, cosine - self.margin * math.sin(self.margin))
