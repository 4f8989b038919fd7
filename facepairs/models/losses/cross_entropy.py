"""Same person or not, as a probability learned from the cosine."""

import math
from typing import Any

import keras
from keras import ops

from facepairs.models.losses.base import TemperatureLoss, cosines, mean_of_classes
from facepairs.models.losses.binary import binary_cross_entropy


@keras.saving.register_keras_serializable("facepairs")
class DifferenceCrossEntropy(TemperatureLoss):
    """Binary cross-entropy of "genuine" with the logit scale · (cosine - centre), both learned.

    The scale starts at 1 / `temperature` and stays positive; the centre starts at 0.5. All pairs
    (left i, right j) are used, both classes with equal weight.

    References:
        Zhai et al., "Sigmoid Loss for Language Image Pre-Training", ICCV 2023, there without the
        weights.
    """

    def __init__(self, temperature: float = 0.1, **kwargs: Any) -> None:
        super().__init__(temperature, **kwargs)
        constant = keras.initializers.Constant
        self.log_scale = self.add_weight((), constant(-math.log(temperature)), name="log_scale")
        self.centre = self.add_weight((), constant(0.5), name="centre")

    def call(self, left: Any, right: Any, genuine: Any, left_person: Any, right_person: Any) -> Any:
        logits = ops.exp(self.log_scale) * (cosines(left, right) - self.centre)
        if_genuine, if_impostor = (binary_cross_entropy(logits, label) for label in (1.0, 0.0))
        return mean_of_classes(if_genuine, if_impostor, left_person, right_person)
