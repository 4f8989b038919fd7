"""Contrastive learning in a batch: an image must find those of its person among all others."""

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
