"""In-batch contrastive learning, the tower's default objective."""

from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import PairLoss, cosines, mean_where


@keras.saving.register_keras_serializable("facepairs")
class InBatchContrastive(PairLoss):
    """Every genuine pair must find its partner among all images of the other side, both ways.

    Cosines are divided by `temperature` > 0. Pairs that are not genuine lend their images as
    further negatives. A batch should show a person once: people's numbers are not looked at.
    Source: van den Oord, Li, Vinyals, *Representation Learning with Contrastive Predictive Coding*,
    2018 (InfoNCE); symmetric as in Radford et al., CLIP, 2021.
    """

    def __init__(self, temperature: float = 0.1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.temperature = temperature

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "temperature": self.temperature}

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        logits = cosines(left, right) / self.temperature
        own = ops.diagonal(logits)
        missed = 0.5 * (ops.logsumexp(logits, axis=0) + ops.logsumexp(logits, axis=1)) - own
        return mean_where(missed, genuine)
