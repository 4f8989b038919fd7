"""Networks that are traced, trained and exported in no time."""

import keras
from keras import layers, ops


def tiny_tower(image_px: int) -> keras.Model:
    """Build a tower with every kind of layer that `face_tower` has, and few weights."""
    image = keras.Input((image_px, image_px, 3), name="image")
    x = layers.Conv2D(4, 3, strides=4, use_bias=False)(image)
    x = layers.ReLU()(layers.BatchNormalization(momentum=0.95)(x))
    x = layers.Dropout(0.3)(layers.Flatten()(x))
    x = layers.Dense(16, use_bias=False, dtype="float32")(x)
    x = layers.BatchNormalization(momentum=0.95, dtype="float32")(x)
    return keras.Model(image, layers.UnitNormalization(dtype="float32")(x), name="face_tower")


def tiny_head(image_px: int) -> keras.Model:
    """Build a judge of the difference of small images, in and out as `difference_head`."""
    sides = [keras.Input((image_px, image_px, 3), name=side) for side in ("left", "right")]
    small = layers.MaxPooling2D(image_px // 8)
    difference = layers.Subtract()([small(side) for side in sides])
    x = layers.Flatten()(ops.absolute(difference))
    return keras.Model(sides, layers.Dense(1, dtype="float32")(x), name="difference_head")
