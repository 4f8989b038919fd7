"""The cohort: typical faces, and how close an embedding is to the nearest of them."""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

NEAREST = 16  # members of the cohort that a photo is compared with
BASE, SLOPE = 0.5, 2.0  # the appended number is BASE - SLOPE · (closeness to the cohort - mean)

Floats = npt.NDArray[np.floating]


@keras.saving.register_keras_serializable("facepairs")
class CohortDimension(keras.Layer):  # type: ignore[misc]
    """Append a number that lowers the cosines of faces that resemble many others.

    Some faces are close to everybody, and strangers among them pass too often. Normalising scores
    with a cohort subtracts from the score s of two photos how close each one is to the nearest
    members of a cohort: s - (m + m') / 2. Here a dimension BASE - SLOPE · (m - mean) is appended
    to embeddings of length 1, which are scaled to length 1 again. The cosine of two is then about
    that normalised score, up to scale and offset.

    The weights are not trained by gradient descent; until `set_cohort`, no order of scores changes.

    Args:
        size: Members of the cohort.
        **kwargs: Those of `keras.Layer`.

    References:
        Auckenthaler, Carey and Lloyd-Thomas, "Score Normalization for Text-Independent Speaker
        Verification Systems", Digital Signal Processing 10, 2000; here with the cohort's nearest
        members, for both sides.
    """

    def __init__(self, size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.trainable = False
        self.size = size

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "size": self.size}

    def build(self, shape: Any) -> None:
        self.cohort = self.add_weight(shape=(shape[-1], self.size), initializer="zeros")
        self.mean = self.add_weight(shape=(), initializer="zeros")

    def set_cohort(self, cohort: Floats, embeddings: Floats) -> None:
        """Set the weights.

        Args:
            cohort: float[size, D], rows of length 1.
            embeddings: float[N, D], rows of length 1; their mean closeness is subtracted.
        """
        self.cohort.assign(cohort.T)
        self.mean.assign(ops.mean(self._closeness(embeddings)))

    def _closeness(self, embeddings: Any) -> Any:
        """Return the mean cosine with the nearest members of the cohort: [N, D] → [N, 1]."""
        nearest, _ = ops.top_k(ops.matmul(embeddings, self.cohort), min(NEAREST, self.size))
        return ops.mean(nearest, axis=1, keepdims=True)

    def call(self, embeddings: Any) -> Any:
        last = BASE - SLOPE * (self._closeness(embeddings) - self.mean)
        return ops.normalize(ops.concatenate([embeddings, last], axis=1), axis=-1, order=2)
