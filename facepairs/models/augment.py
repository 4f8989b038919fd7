"""Random changes of a training image, drawn for each image of a pair on its own.

Array contract: float32[N, H, W, 3] in [0, 1] in and out. The layer runs within the compiled step
(so on the GPU where there is one) and is no part of the exported network. One affine map does
flip, shift, scale and rotation: Keras's own layers, one after the other, resample three times and
take three times as long.
"""

from typing import Any

import keras
from keras import ops

from facepairs.models.step_random import StepRandom

DRAWN = 9


@keras.saving.register_keras_serializable("facepairs")
class RandomFace(keras.Layer):  # type: ignore[misc]
    """StepRandom mirror, shift, scale, rotation, brightness, contrast and one erased rectangle an image.

    `strength` 0 … 2 scales all but the mirror image; 0 leaves only that. Off without `draws`, of
    which it takes the first.
    """

    def __init__(self, strength: float = 1.0, erase: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.strength = strength
        self.erase = erase

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "strength": self.strength, "erase": self.erase}

    def call(self, images: Any, draws: StepRandom | None = None) -> Any:
        if draws is None:
            return images
        u = draws.uniform(0, (ops.shape(images)[0], DRAWN), -1, 1)
        if self.strength > 0:
            images = ops.image.affine_transform(
                images, self._maps(u, images.shape[1]), "bilinear", fill_mode="reflect"
            )
            images = self._relight(images, u)
        else:
            images = ops.where(u[:, 0, None, None, None] < 0, ops.flip(images, axis=2), images)
        return self._erased(images, u) if self.erase > 0 else images

    def _maps(self, u: Any, side_px: int) -> Any:
        """Give the 8 numbers a projective transform that each output pixel is looked up with."""
        mirror = ops.sign(u[:, 0])
        angle, zoom = 0.09 * self.strength * u[:, 1], 1 + 0.06 * self.strength * u[:, 2]
        shift = 0.04 * self.strength * side_px * u[:, 3:5]
        cos, sin = ops.cos(angle) * zoom, ops.sin(angle) * zoom
        centre = (side_px - 1) / 2
        a, b, c, d = cos * mirror, -sin, sin * mirror, cos
        zero = ops.zeros_like(a)
        right = centre - (a + b) * centre + shift[:, 0]
        down = centre - (c + d) * centre + shift[:, 1]
        return ops.stack([a, b, right, c, d, down, zero, zero], axis=1)

    def _relight(self, images: Any, u: Any) -> Any:
        contrast = 1 + 0.2 * self.strength * u[:, 5, None, None, None]
        brightness = 0.12 * self.strength * u[:, 6, None, None, None]
        mean = ops.mean(images, axis=(1, 2, 3), keepdims=True)
        return ops.clip((images - mean) * contrast + mean + brightness, 0.0, 1.0)

    def _erased(self, images: Any, u: Any) -> Any:
        """Gray out a square of `erase` times the side, at a place drawn, in half of the images."""
        side_px = images.shape[1]
        at = ops.arange(side_px, dtype="float32") / side_px * 2 - 1
        near_row = ops.abs(at[None, :] - u[:, 7, None]) < self.erase
        near_column = ops.abs(at[None, :] - u[:, 8, None]) < self.erase
        square = ops.logical_and(near_row[:, :, None], near_column[:, None, :])
        square = ops.logical_and(square, (u[:, 6] > 0)[:, None, None])
        return ops.where(square[..., None], 0.5, images)
