"""The difference network and its local contrast."""

import numpy as np
import pytest
from keras import layers, ops

from facepairs.models.convolutional import (
    LEAST_VARIANCE,
    LocalContrast,
    window_px,
)


def pooled(images, window):
    """The mean of each window, by Keras's average pooling."""
    for size in ((window, 1), (1, window)):
        images = layers.AveragePooling2D(size, strides=1, padding="same")(images)
    return images


@pytest.mark.parametrize("side", [64, 96, 112])
def test_the_contrast_is_that_of_average_pooling(side):
    images = np.random.default_rng(side).random((3, side, side, 3), np.float32)
    window = window_px(side)
    deviation = images - pooled(images, window)
    expected = deviation / ops.sqrt(pooled(ops.square(deviation), window) + LEAST_VARIANCE)
    result = LocalContrast(window)(images)
    assert np.abs(np.asarray(result - expected)).max() < 1e-5
