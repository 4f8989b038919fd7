"""Random changes of training images; each image of a pair is changed independently.

Array contract: float32[N, H, W, 3] in [0, 1] in and out, H equal to W. The layer runs in the
compiled training step (on the GPU if there is one) and is not part of the exported network. One
affine map does flip, shift, scale and rotation together: Keras's own layers, one after the other,
resample three times and take three times as long.
"""

from typing import Any

import keras
from keras import ops

NUMBERS_PER_IMAGE = 7
MAX_ROTATION_RAD = 0.09
MAX_ZOOM = 0.06
MAX_SHIFT = 0.04  # share of the image's side
MAX_CONTRAST = 0.2
MAX_BRIGHTNESS = 0.12


@keras.saving.register_keras_serializable("facepairs")
class RandomFace(keras.Layer):  # type: ignore[misc]
    """Randomly flip, shift, scale, rotate and relight each image.

    Without `training` the layer returns the images unchanged.

    Args:
        strength: 0 to 2; scales every change except the flip. 0 only flips.
        seed: Seed of the changes; `Network` resets the state at each step.
        **kwargs: Those of `keras.Layer`.
    """

    def __init__(self, strength: float, seed: int = 0, **kwargs: Any) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})
        self.strength, self.seed = strength, seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "strength": self.strength, "seed": self.seed}

    def call(self, images: Any, training: bool = False) -> Any:
        if not training:
            return images
        shape = (ops.shape(images)[0], NUMBERS_PER_IMAGE)
        u = keras.random.uniform(shape, -1, 1, seed=self.seed_generator, dtype=images.dtype)
        if self.strength == 0:
            return ops.where(u[:, 0, None, None, None] < 0, ops.flip(images, axis=2), images)
        transforms = self._transforms(u, images.shape[1])
        moved = ops.image.affine_transform(images, transforms, "bilinear", fill_mode="reflect")
        return self._relight(moved, u)

    def _transforms(self, u: Any, side_px: int) -> Any:
        """Return the 8 coefficients of each image's map from output to input pixels."""
        flip = ops.sign(u[:, 0])
        angle = MAX_ROTATION_RAD * self.strength * u[:, 1]
        zoom = 1 + MAX_ZOOM * self.strength * u[:, 2]
        shift = MAX_SHIFT * self.strength * side_px * u[:, 3:5]
        cos, sin = ops.cos(angle) * zoom, ops.sin(angle) * zoom
        centre = (side_px - 1) / 2
        a, b, c, d = cos * flip, -sin, sin * flip, cos
        zero = ops.zeros_like(a)
        right = centre - (a + b) * centre + shift[:, 0]
        down = centre - (c + d) * centre + shift[:, 1]
        return ops.stack([a, b, right, c, d, down, zero, zero], axis=1)

    def _relight(self, images: Any, u: Any) -> Any:
        """Change contrast and brightness."""
        contrast = 1 + MAX_CONTRAST * self.strength * u[:, 5, None, None, None]
        brightness = MAX_BRIGHTNESS * self.strength * u[:, 6, None, None, None]
        mean = ops.mean(images, axis=(1, 2, 3), keepdims=True)
        return ops.clip((images - mean) * contrast + mean + brightness, 0.0, 1.0)
