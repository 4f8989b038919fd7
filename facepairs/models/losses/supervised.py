"""Contrastive learning over all images of a batch."""

from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import NEVER, PairLoss, cosines, itself, mean_where, one_person


@keras.saving.register_keras_serializable("facepairs")
class SupervisedContrastive(PairLoss):
    """Every image must find the others of its person among all 2·B images of the batch.

    Cosines are divided by `temperature` > 0; an image with several partners averages over them, and
    one without any only serves as a negative. With every person once in a batch this is NT-Xent.
    Source: Khosla et al., *Supervised Contrastive Learning*, 2020 (the sum outside the logarithm);
    Chen et al., SimCLR, 2020.
    """

    def __init__(self, temperature: float = 0.1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.temperature = temperature

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "temperature": self.temperature}

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        images = ops.concatenate([left, right], axis=0)
        people = ops.concatenate([left_person, right_person], axis=0)
        diagonal = itself(images)
        logits = ops.where(diagonal, NEVER, cosines(images, images) / self.temperature)
        partner = ops.logical_and(one_person(people, people), ops.logical_not(diagonal))
        partners = ops.sum(ops.cast(partner, "float32"), axis=1)
        found = ops.sum(ops.where(partner, logits, 0.0), axis=1) / ops.maximum(partners, 1.0)
        return mean_where(ops.logsumexp(logits, axis=1) - found, partners > 0)
