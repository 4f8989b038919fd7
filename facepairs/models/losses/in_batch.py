"""Contrastive learning in a batch: an image must find those of its person among all others."""

from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import TemperatureLoss, cosines, masked_mean


@keras.saving.register_keras_serializable("facepairs")
class InBatchContrastive(TemperatureLoss):
    """Every image of a genuine pair must find its partner among all images of the other side.

    The default of embedding networks. Pairs that are not genuine provide further negatives. A batch
    should have each person once: the people's numbers are not used.

    References:
        van den Oord, Li, Vinyals, "Representation Learning with Contrastive Predictive Coding",
        2018 (InfoNCE); symmetric as in Radford et al., CLIP, 2021.
    """

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        logits = cosines(left, right) / self.temperature
        partner = ops.diagonal(logits)
        cost = 0.5 * (ops.logsumexp(logits, axis=0) + ops.logsumexp(logits, axis=1)) - partner
        return masked_mean(cost, genuine)
