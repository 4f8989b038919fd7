"""The convolutional networks that learn from pixels: a Siamese tower, and two difference networks.

A stage is Conv 3x3, MaxPool, batch normalisation and ReLU, in this order; in the article's network,
MaxPool comes last.

- The Siamese tower embeds one face.
- The difference network passes both faces through two shared stages, takes the absolute difference
  of the two maps, and judges it by three more stages, a dense layer and one logit.
- The article's network, that of tutorials, takes the absolute difference of the faces themselves.

The absolute difference makes `f(a, b) = f(b, a)` exact. All first normalise faces locally, because
light changes pixels more than a face does. That and the outputs are computed in float32, also in
mixed precision.
"""

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import layers, ops

TOWER_FILTERS, TOWER_DIMENSIONS = (24, 48, 96, 128), 256
SHARED_FILTERS, JUDGE_FILTERS = (24, 48), (64, 96, 128)  # before the difference, and after it
ARTICLE_FILTERS = (20, 40, 60, 80, 100)
DENSE, DROPOUT = 200, 0.3
WINDOWS = 8  # along the side of an image, where its contrast is measured
LEAST_VARIANCE = 1e-3  # of pixels in [0, 1]; keeps noise in smooth skin small


def face_tower(image_px: int) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] → float32[N, 256], rows of length 1."""
    image = keras.Input((image_px, image_px, 3), name="image")
    x = _stages(LocalContrast(window_px(image_px))(image), TOWER_FILTERS)
    x = layers.Dropout(DROPOUT)(layers.Flatten()(x))
    x = layers.Dense(TOWER_DIMENSIONS, use_bias=False, dtype="float32")(x)
    x = layers.BatchNormalization(momentum=0.95, dtype="float32")(x)
    x = layers.UnitNormalization(dtype="float32")(x)
    return keras.Model(image, x, name="face_tower")


def difference_head(image_px: int) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] twice → float32[N, 1], the logit of "genuine"."""
    image = keras.Input((image_px, image_px, 3), name="image")
    normalised = LocalContrast(window_px(image_px))(image)
    tower = keras.Model(image, _stages(normalised, SHARED_FILTERS), name="shared")
    sides = _sides(image_px)
    # Called once for each side: the same operations on both, so the difference is exact.
    x = ops.absolute(layers.Subtract(name="difference")([tower(side) for side in sides]))
    x = layers.Dropout(DROPOUT)(layers.Flatten()(_stages(x, JUDGE_FILTERS)))
    return keras.Model(sides, _logit(x), name="difference_head")


def article_head(image_px: int) -> keras.Model:
    """Build the network of the article, on the difference of pixels; in and out as above."""
    sides = _sides(image_px)
    normalised = [LocalContrast(window_px(image_px))(side) for side in sides]
    x = ops.absolute(layers.Subtract(name="difference")(normalised))
    for filters in ARTICLE_FILTERS:
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization(momentum=0.95)(x))
        x = layers.MaxPooling2D()(x)
    return keras.Model(sides, _logit(layers.Flatten()(x)), name="article_head")


def _sides(image_px: int) -> list[keras.KerasTensor]:
    return [keras.Input((image_px, image_px, 3), name=side) for side in ("left", "right")]


def _stages(x: Any, filters: Iterable[int]) -> Any:
    """Apply a stage for each number of filters; each halves the side.

    Pooling comes before the normalisation, which then has a quarter of the numbers: twice as fast.
    """
    for count in filters:
        x = layers.MaxPooling2D()(layers.Conv2D(count, 3, padding="same", use_bias=False)(x))
        x = layers.ReLU()(layers.BatchNormalization(momentum=0.95)(x))
    return x


def _logit(x: Any) -> Any:
    """Apply the dense layer and the last one: [N, D] → [N, 1]."""
    x = layers.Dense(DENSE, activation="relu")(x)
    return layers.Dense(1, name="score", dtype="float32")(x)


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
        super().__init__(**{"dtype": "float32", **kwargs})
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
