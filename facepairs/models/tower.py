"""The convolutional Siamese tower: one image in, one embedding of length 1 out.

Four stages of Conv 3x3, batch normalisation, ReLU and MaxPool, then a dense layer.
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
    """Return the normalised sum of the embeddings of an image and its mirror image: [N, D]."""
    # As one batch: with two calls the exported graph would contain the tower twice.
    both = tower(ops.concatenate([image, ops.flip(image, axis=2)], axis=0))
    both = ops.reshape(both, (2, -1, both.shape[-1]))
    return ops.normalize(both[0] + both[1], axis=-1, order=2)


def with_mirror_images(head: keras.Model, left: Any, right: Any) -> Any:
    """Return the mean score of the pairs with neither, both and either image mirrored: [N, 1]."""
    mirrored_left, mirrored_right = ops.flip(left, axis=2), ops.flip(right, axis=2)
    lefts = ops.concatenate([left, mirrored_left, left, mirrored_left], axis=0)
    rights = ops.concatenate([right, mirrored_right, mirrored_right, right], axis=0)
    scores = ops.reshape(head([lefts, rights], training=False), (2, 2, -1, 1))
    return ops.mean(ops.mean(scores, axis=1), axis=0)  # in two steps: exactly symmetric
