"""What all objectives on embeddings share: one signature, and a few operations on a batch.

Array contract of `loss(left, right, genuine, left_person, right_person)` → float32 scalar:

- `left`, `right`: float32[B, D], embeddings of length 1.
- `genuine`: float32[B], 1 for genuine pairs, else 0.
- `left_person`, `right_person`: int32[B], numbers of the training people from 0; equal numbers are
  the same person.

A loss is 0 if the batch has nothing to learn from, and its gradient is finite for any embeddings,
equal and opposite ones included.
"""

from typing import Any, ClassVar

import keras
from keras import ops

MAX_SQUARED_DISTANCE = 4.0  # of two points on the unit sphere
EPSILON = 1e-6  # added below roots, whose slope at 0 is infinite


class PairLoss(keras.Layer):  # type: ignore[misc]
    """An objective on pairs, computed in float32 whatever the network's dtype.

    Its weights, if any, are trained and saved with the network's, but never exported.
    """

    settings: ClassVar[tuple[str, ...]] = ()  # the arguments that `get_config` saves

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **{name: getattr(self, name) for name in self.settings}}


class TemperatureLoss(PairLoss):
    """An objective that divides cosines by a temperature.

    Args:
        temperature: Positive; the smaller, the more the hardest pairs count.
        **kwargs: Those of `keras.Layer`.
    """

    settings: ClassVar[tuple[str, ...]] = ("temperature",)

    def __init__(self, temperature: float = 0.1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.temperature = temperature


def cosines(a: Any, b: Any) -> Any:
    """Return all cosines: float32[N, D] and float32[M, D], rows of length 1 → float32[N, M]."""
    return ops.matmul(a, ops.transpose(b))


def squared_distances(a: Any, b: Any) -> Any:
    """Return all squared Euclidean distances, 0 to 4; shapes as in `cosines`."""
    return ops.relu(2 - 2 * cosines(a, b))


def same_person(a: Any, b: Any) -> Any:
    """Compare all people with all: int32[N], int32[M] → bool[N, M]."""
    return ops.equal(a[:, None], b[None, :])


def masked_mean(values: Any, mask: Any) -> Any:
    """Return the mean of the finite `values` where `mask` is true; 0 if it never is."""
    weights = ops.cast(mask, values.dtype)
    return ops.sum(values * weights) / ops.maximum(ops.sum(weights), 1.0)
