"""The difference network: convolutions over the absolute difference of two faces.

Blocks of Conv 3x3, ReLU and MaxPool with 20, 40, 60, 80 and 100 filters, then a dense layer of 200
units and one logit. The absolute difference makes `f(a, b) = f(b, a)` exact.
"""

import keras
from keras import layers, ops

FILTERS = (20, 40, 60, 80, 100)
DENSE = 200


def difference_head(image_px: int) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] twice → float32[N, 1], the logit of "genuine"."""
    sides = [keras.Input((image_px, image_px, 3), name=side) for side in ("left", "right")]
    x = ops.absolute(layers.Subtract(name="difference")(sides))
    for filters in FILTERS:
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dense(DENSE, activation="relu")(x)
    return keras.Model(sides, layers.Dense(1, name="score")(x), name="difference_head")
