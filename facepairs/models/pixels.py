"""The baseline without weights: the difference of two images, pixel by pixel."""

import keras
from keras import ops


def pixel_head(image_px: int) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] twice → float32[N, 1], minus the RMS difference."""
    sides = [keras.Input((image_px, image_px, 3), name=side) for side in ("left", "right")]
    square = ops.square(ops.subtract(*sides))
    mean = ops.mean(ops.reshape(square, (-1, image_px * image_px * 3)), axis=1, keepdims=True)
    return keras.Model(sides, ops.negative(ops.sqrt(mean)), name="pixel_head")
