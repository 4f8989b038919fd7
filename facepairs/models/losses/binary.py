"""The objective of pair networks."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable("facepairs")
class BinaryLogit(keras.Layer):  # type: ignore[misc]
    """Binary cross-entropy: logits float32[B], genuine float32[B] of 0 and 1 → scalar.

    The only objective on scores rather than embeddings.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})

    def call(self, scores: Any, genuine: Any) -> Any:
        return ops.mean(binary_cross_entropy(scores, genuine))


def binary_cross_entropy(logits: Any, labels: Any) -> Any:
    """Return each logit's cost, max(x, 0) - x·y + log(1 + exp(-|x|)), which never overflows."""
    return ops.relu(logits) - logits * labels + ops.log1p(ops.exp(-ops.abs(logits)))
