"""Contrastive learning over all images of a batch."""

from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import (
    EXCLUDED,
    TemperatureLoss,
    cosines,
    diagonal_mask,
    masked_mean,
    same_person,
)


@keras.saving.register_keras_serializable("facepairs")
class SupervisedContrastive(TemperatureLoss):
    """Every image must find the others of its person among all 2·B images of the batch.

    An image with several partners averages over them; one without a partner is only a negative.
    With each person once in a batch this is NT-Xent.

    References:
        Khosla et al., "Supervised Contrastive Learning", 2020 (the sum outside the logarithm);
        Chen et al., SimCLR, 2020.
    """

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        images = ops.concatenate([left, right], axis=0)
        people = ops.concatenate([left_person, right_person], axis=0)
        diagonal = diagonal_mask(images)
        logits = ops.where(diagonal, EXCLUDED, cosines(images, images) / self.temperature)
        partner = ops.logical_and(same_person(people, people), ops.logical_not(diagonal))
        partners = ops.sum(ops.cast(partner, "float32"), axis=1)
        mean_logit = ops.sum(ops.where(partner, logits, 0.0), axis=1) / ops.maximum(partners, 1.0)
        return masked_mean(ops.logsumexp(logits, axis=1) - mean_logit, partners > 0)
