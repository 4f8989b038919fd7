"""dlib's residual network of 29 convolutions: one face in, one embedding of length 1 out.

The network has no batch normalisation: the scale and shift that dlib learnt for every channel are
folded into the convolutions, so every weight can be trained further.

References:
    He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition. CVPR, 2016.
    King: dlib_face_recognition_resnet_model_v1, in dlib-models. 2017. CC0 (public domain).
"""

from typing import Any

import keras
from keras import layers, ops

DIMENSIONS = 128
MEAN = (122.782, 117.001, 104.298)  # of the colours, in grey levels, as dlib subtracts it
RANGE = 256  # and divides by this
STEM = 32  # filters of the first convolution
# Residual blocks: their filters, how many they are, and whether the first halves the image.
BLOCKS = ((32, 3, False), (64, 4, True), (128, 3, True), (256, 3, True), (256, 1, True))


def face_resnet(image_px: int) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] in [0, 1] → float32[N, 128], rows of length 1.

    Its weights are new; dlib's, which the included model has, are for 150 pixels.
    """
    image = keras.Input((image_px, image_px, 3), name="image")
    means = [-mean / RANGE for mean in MEAN]
    x = layers.Rescaling(255 / RANGE, means, name="centre", dtype="float32")(image)
    x = layers.ReLU()(layers.Conv2D(STEM, 7, strides=2)(x))
    x = layers.MaxPooling2D(3, strides=2)(x)
    for filters, blocks, halves in BLOCKS:
        for block in range(blocks):
            x = _residual_block(x, filters, halves and block == 0)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dense(DIMENSIONS, use_bias=False, dtype="float32")(x)
    return keras.Model(image, layers.UnitNormalization(dtype="float32")(x), name="face_resnet")


def _residual_block(x: Any, filters: int, halves: bool) -> Any:
    """Add two convolutions to their input; a block that halves the image averages the input."""
    y = layers.Conv2D(filters, 3, strides=2 if halves else 1, padding="valid" if halves else "same")
    y = layers.Conv2D(filters, 3, padding="same")(layers.ReLU()(y(x)))
    if halves:
        x = layers.AveragePooling2D(2)(x)
        # The averages may be a pixel larger than the convolutions, which have more channels.
        missing = [large - small for large, small in zip(x.shape[1:3], y.shape[1:3], strict=True)]
        y = ops.pad(y, [(0, 0), (0, missing[0]), (0, missing[1]), (0, 0)])
        x = ops.pad(x, [(0, 0), (0, 0), (0, 0), (0, filters - x.shape[3])])
    return layers.ReLU()(layers.Add()([x, y]))
