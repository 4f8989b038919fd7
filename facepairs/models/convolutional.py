"""The two small convolutional networks: a Siamese tower, and the difference network.

The tower embeds one face: four stages of Conv 3x3, batch normalisation, ReLU and MaxPool, then a
dense layer. The difference network takes two faces. Each is first normalised locally, because light
changes pixels more than a face does. Blocks of Conv 3x3, batch normalisation, ReLU and MaxPool over
the absolute difference follow, then a dense layer and one logit. The absolute difference makes
`f(a, b) = f(b, a)` exact.
"""

from typing import Any

import keras
import numpy as np
from keras import layers, ops

TOWER_FILTERS, TOWER_DIMENSIONS = (32, 64, 128, 256), 256
FILTERS = (20, 40, 60, 80, 100)
DENSE = 200
WINDOWS = 8  # along the side of an image, where its contrast is measured
LEAST_VARIANCE = 1e-3  # of pixels in [0, 1]; keeps noise in smooth skin small


def face_tower(image_px: int) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] → float32[N, 256], rows of length 1."""
    image = keras.Input((image_px, image_px, 3), name="image")
    x = image
    for filters in TOWER_FILTERS:
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
        x = layers.MaxPooling2D()(x)
    x = layers.Dense(TOWER_DIMENSIONS, use_bias=False)(layers.Flatten()(x))
    x = layers.BatchNormalization()(x)
    return keras.Model(image, layers.UnitNormalization()(x), name="face_tower")


def difference_head(image_px: int) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] twice → float32[N, 1], the logit of "genuine"."""
    sides = [keras.Input((image_px, image_px, 3), name=side) for side in ("left", "right")]
    normalised = [LocalContrast(window_px(image_px))(side) for side in sides]
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


@keras.saving.register_keras_serializable("facepairs")
class LocalContrast(keras.Layer):  # type: ignore[misc]
    """Subtract the mean and divide by the deviation of the window around each pixel.

    float32[N, side, side, C] in and out. At the border the window is what lies within the image.
    Products with a matrix that averages take a fifth of the time of average pooling on a CPU.

    Args:
        window_px: Side of the window, an odd number.
        **kwargs: Those of `keras.Layer`.
    """

    def __init__(self, window_px: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.window_px = window_px

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "window_px": self.window_px}

    def call(self, images: Any) -> Any:
        pixels = np.arange(images.shape[1])
        near = np.abs(pixels[:, None] - pixels) <= self.window_px // 2
        average = (near / near.sum(axis=1, keepdims=True)).astype(np.float32)

        def window_mean(planes: Any) -> Any:
            # Export to 8 bits would round the second factor if it were a single matrix.
            return ops.matmul(ops.matmul(average, planes), average.T[None])

        planes = ops.transpose(images, (0, 3, 1, 2))
        deviation = planes - window_mean(planes)
        variance = window_mean(ops.square(deviation))
        return ops.transpose(deviation / ops.sqrt(variance + LEAST_VARIANCE), (0, 2, 3, 1))
