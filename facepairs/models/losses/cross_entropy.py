"""Same person or not, as a probability learned from the cosine."""

import math
from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import PairLoss, cosines, mean_of_kinds
from facepairs.models.losses.binary import binary_cross_entropy


@keras.saving.register_keras_serializable("facepairs")
class DifferenceCrossEntropy(PairLoss):
    """Binary cross-entropy of "genuine" with the logit scale · (cosine - centre), both learned.

    The scale begins at 1 / `temperature` and stays positive, the centre at 0.5. All pairs (left i,
    right j) count, both kinds equally: where every pair drawn is genuine, the impostors are those
    off the diagonal.
    Source: Zhai et al., *Sigmoid Loss for Language Image Pre-Training*, 2023, with the kinds
    weighed.
    """

    def __init__(self, temperature: float = 0.1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.temperature = temperature
        start = keras.initializers.Constant
        self.log_scale = self.add_weight((), start(-math.log(temperature)), name="log_scale")
        self.centre = self.add_weight((), start(0.5), name="centre")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "temperature": self.temperature}

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        logits = ops.exp(self.log_scale) * (cosines(left, right) - self.centre)
        as_genuine, as_impostor = (binary_cross_entropy(logits, label) for label in (1.0, 0.0))
        return mean_of_kinds(as_genuine, as_impostor, left_person, right_person)
