"""The trained part of a Fisher tower: a projection for each member, stored in 8 bits."""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

DIMENSIONS = 128  # of each member's embedding

Floats = npt.NDArray[np.floating]


@keras.saving.register_keras_serializable("facepairs")
class Projections(keras.Layer):  # type: ignore[misc]
    """Project each member's vector and concatenate: float32[N, M·F] → [N, M·128].

    A member's part has length 1 before all are scaled, so that rows have length 1. In files,
    kernels that `eight_bits` has rounded take a byte for each number.

    Args:
        members: M.
        **kwargs: Those of `keras.Layer`.
    """

    def __init__(self, members: int = 1, **kwargs: Any) -> None:
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

    def round_kernels(self) -> None:
        """Round the kernels in place to 8 bits; rounding twice changes nothing."""
        for kernel in self.kernels:
            rounded = eight_bits(np.asarray(kernel))
            if np.isfinite(rounded).all():
                kernel.assign(rounded)

    def save_own_variables(self, store: Any) -> None:
        for number, (kernel, bias) in enumerate(zip(self.kernels, self.biases, strict=True)):
            values = np.asarray(kernel)
            if np.isfinite(values).all() and np.array_equal(eight_bits(values), values):
                scale = scales(values)
                store[f"scale_{number}"] = scale
                values = (values / scale).astype(np.int8)
            store[f"kernel_{number}"] = values
            store[f"bias_{number}"] = np.asarray(bias)

    def load_own_variables(self, store: Any) -> None:
        for number, (kernel, bias) in enumerate(zip(self.kernels, self.biases, strict=True)):
            values = np.asarray(store[f"kernel_{number}"])
            if f"scale_{number}" in store:
                values = values.astype(np.float32) * np.asarray(store[f"scale_{number}"])
            kernel.assign(values)
            bias.assign(np.asarray(store[f"bias_{number}"]))


def eight_bits(values: Floats) -> Floats:
    """Round float32[…, columns] to whole multiples, -127 to 127, of a scale for each column.

    The result is not finite where the values are not.
    """
    scale = scales(values)
    rounded: Floats = np.round(values / scale) * scale
    return rounded


def scales(values: Floats) -> Floats:
    """Return the smallest power of two, by column, that 127 of suffice: float32[columns].

    With powers of two the products are exact, and the scales of the rounded values are the same.
    """
    largest = np.abs(values).max(axis=tuple(range(values.ndim - 1)))
    exponent = np.ceil(np.log2(np.where(largest > 0, largest, 1) / 127))
    return np.asarray(np.exp2(exponent), np.float32)
