"""The Siamese tower: one face in, one point on the unit sphere out; both faces share its weights.

Four stages of Conv 3x3 / batch norm / ReLU / MaxPool, a dense layer to the embedding, length one.
"""

from typing import Any

import keras
from keras import layers, ops

FILTERS = (32, 64, 128, 256)
DIMENSIONS = 256


def face_tower(image_px: int) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] → float32[N, 256], rows of length 1."""
    image = keras.Input((image_px, image_px, 3), name="image")
    x = image
    for filters in FILTERS:
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
        x = layers.MaxPooling2D()(x)
    x = layers.Dense(DIMENSIONS, use_bias=False)(layers.Flatten()(x))
    x = layers.BatchNormalization()(x)
    return keras.Model(image, layers.UnitNormalization()(x), name="face_tower")


def with_mirror_image(tower: keras.Model, image: Any) -> Any:
    """Embed an image and its mirror image, and give their mean's direction: [N, D], length 1."""
    # In one batch: as two calls the exported graph would have everything twice.
    both = tower(ops.concatenate([image, ops.flip(image, axis=2)], axis=0))
    both = ops.reshape(both, (2, -1, both.shape[-1]))
    return ops.normalize(both[0] + both[1], axis=-1, order=2)
