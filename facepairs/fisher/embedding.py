"""From Fisher vectors to embeddings: a trained projection for each member, and the cohort.

The cohort is a set of typical faces. Embeddings close to one of them are moved away from all
others.
"""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

DIMENSIONS = 128  # of each member's embedding
NEAREST = 16  # members of the cohort that a photo is compared with
BASE, SLOPE = 0.5, 2.0  # the appended number is BASE - SLOPE · (closeness to the cohort - mean)

Floats = npt.NDArray[np.floating]


@keras.saving.register_keras_serializable("facepairs")
class Projections(keras.Layer):  # type: ignore[misc]
    """Project each member's vector and concatenate: float32[N, M·F] → [N, M·128].

    A member's part has length 1 before all are scaled, so that rows have length 1.

    Args:
        members: M.
        **kwargs: Those of `keras.Layer`.
    """

    def __init__(self, members: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.members = members

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "members": self.members}

    def build(self, shape: Any) -> None:
        width = shape[-1] // self.members
        self.kernels, self.biases = [], []
        for _ in range(self.members):
            self.kernels.append(self.add_weight(shape=(width, DIMENSIONS)))
            self.biases.append(self.add_weight(shape=(DIMENSIONS,), initializer="zeros"))

    def call(self, vectors: Any) -> Any:
        parts = [vectors] if self.members == 1 else ops.split(vectors, self.members, axis=1)
        rows = [
            ops.matmul(part, kernel) + bias
            for part, kernel, bias in zip(parts, self.kernels, self.biases, strict=True)
        ]
        unit = ops.normalize(ops.stack(rows, axis=1), axis=2, order=2)
        return ops.reshape(unit * self.members**-0.5, (-1, self.members * DIMENSIONS))

    def set_member(self, number: int, mean: Floats, directions: Floats) -> None:
        """Set a member's projection to x → directions · (x - mean).

        Args:
            number: Of the member, from 0.
            mean: float[F].
            directions: float[D, F], D at most 128; further coordinates are 0.
        """
        kernel = np.zeros((directions.shape[1], DIMENSIONS))
        kernel[:, : len(directions)] = directions.T
        self.kernels[number].assign(kernel)
        self.biases[number].assign(-mean @ kernel)


@keras.saving.register_keras_serializable("facepairs")
class CohortDimension(keras.Layer):  # type: ignore[misc]
    """Append a number that lowers the cosines of faces that resemble many others.

    Some faces are close to everyone's, and strangers among them pass too often. Normalising scores
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
