"""A margin on the cosine with a person's direction."""

from typing import Any

import keras

from facepairs.models.losses.identity import IdentityLoss


@keras.saving.register_keras_serializable("facepairs")
class CosFace(IdentityLoss):
    """Softmax over identities with `margin` subtracted from the own person's cosine.

    Published with margin 0.35 and scale 64 (temperature 1/64) for half a million photos and more.

    References:
        Wang et al., "CosFace: Large Margin Cosine Loss for Deep Face Recognition", CVPR 2018.
    """

    def with_margin(self, cosine: Any) -> Any:
        return cosine - self.margin
