"""The difference network: convolutions over the absolute difference of two faces.

Each face is first normalised locally, because light changes pixels more than a face does. Blocks of
Conv 3x3, batch normalisation, ReLU and MaxPool with 20, 40, 60, 80 and 100 filters follow, then a
dense layer of 200 units and one logit. The absolute difference makes `f(a, b) = f(b, a)` exact.
"""

from typing import Any

import keras
from keras import layers, ops

FILTERS = (20, 40, 60, 80, 100)
DENSE = 200
WINDOWS = 8  # along the side of an image, where its contrast is measured
LEAST_VARIANCE = 1e-3  # of pixels in [0, 1]; keeps noise in smooth skin small


def difference_head(image_px: int) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] twice → float32[N, 1], the logit of "genuine"."""
    sides = [keras.Input((image_px, image_px, 3), name=side) for side in ("left", "right")]
    normalised = [_local_contrast(side, window_px(image_px)) for side in sides]
    x = ops.absolute(layers.Subtract(name="difference")(normalised))
    for filters in FILTERS:
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization(momentum=0.95)(x))
        x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dense(DENSE, activation="relu")(x)
    return keras.Model(sides, layers.Dense(1, name="score")(x), name="difference_head")


def window_px(image_px: int) -> int:
    """Return the side of the window in which contrast is measured, an odd number of pixels."""
    return image_px // WINDOWS | 1


def _local_contrast(images: Any, window_px: int) -> Any:
    """Subtract the mean and divide by the deviation of the window around each pixel."""
    deviation = images - _window_mean(images, window_px)
    variance = _window_mean(ops.square(deviation), window_px)
    return deviation / ops.sqrt(variance + LEAST_VARIANCE)


def _window_mean(images: Any, window_px: int) -> Any:
    """Return the mean of each window: first of its columns, then of these, which is faster."""
    for size in ((window_px, 1), (1, window_px)):
        images = layers.AveragePooling2D(size, strides=1, padding="same")(images)
    return images
