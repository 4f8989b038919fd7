"""dlib's residual network of 29 convolutions: one face in, one embedding of length 1 out.

The network has no batch normalisation: the scale and shift that dlib learnt for every channel are
part of the convolutions (`dlib_weights` folds them), so every weight can be trained further.

References:
    He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition. CVPR, 2016.
    King: dlib_face_recognition_resnet_model_v1, in dlib-models. 2017. CC0 (public domain).
"""

from itertools import pairwise
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import layers, ops

from facepairs.models.network import EmbeddingNetwork, embedding_loss
from facepairs.models.step_random import StepRandom

IMAGE_PX = 150
DIMENSIONS = 128
MEAN = (122.782, 117.001, 104.298)  # of the colours, in grey levels, as dlib subtracts it
RANGE = 256  # and divides by this
STEM = 32  # filters of the first convolution
# Residual blocks: their filters, how many they are, and whether the first halves the image.
BLOCKS = ((32, 3, False), (64, 4, True), (128, 3, True), (256, 3, True), (256, 1, True))

Weights = list[npt.NDArray[np.float32]]


class ResidualNetwork(EmbeddingNetwork):
    """An embedding network of which all faces lie close together.

    The cosine of two strangers is some .9. The loss compares embeddings without their mean, or all
    logits would be nearly equal.
    """

    def loss(self, inputs: Any, genuine: Any, people: Any, random: StepRandom) -> Any:
        """Return the loss of a batch of images; the arguments are those of `Trainable.loss`."""
        embeddings = self.head(self.preprocess(inputs, random), training=True)
        return embedding_loss(self.objective, embeddings, genuine, people, random, centre=True)


def face_resnet(image_px: int = IMAGE_PX) -> keras.Model:
    """Build float32[N, image_px, image_px, 3] in [0, 1] → float32[N, 128], rows of length 1.

    Its weights are new. The weights of dlib are for 150 pixels (`dlib_weights`).
    """
    image = keras.Input((image_px, image_px, 3), name="image")
    x = layers.Rescaling(255 / RANGE, [-mean / RANGE for mean in MEAN], name="centre")(image)
    x = layers.ReLU()(layers.Conv2D(STEM, 7, strides=2)(x))
    x = layers.MaxPooling2D(3, strides=2)(x)
    for filters, blocks, halves in BLOCKS:
        for block in range(blocks):
            x = _residual_block(x, filters, halves and block == 0)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dense(DIMENSIONS, use_bias=False)(x)
    return keras.Model(image, layers.UnitNormalization()(x), name="face_resnet")


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


def dlib_weights(content: bytes) -> Weights:
    """Read the weights of `face_resnet` from dlib's file; TensorFlow is not needed.

    The file holds every tensor from the input to the output: of each convolution the filters
    [out, in, y, x] with the biases, then scales with shifts; at last the matrix [in, out].

    Args:
        content: Of `dlib_face_recognition_resnet_model_v1.dat`.

    Returns:
        Kernel and bias of each convolution and the kernel of the dense layer, as
        `face_resnet().set_weights` takes them.

    Raises:
        ValueError: A tensor is missing.
    """
    weights: Weights = []
    at = 0
    for size, channels, filters in _convolutions():
        count = filters * channels * size * size
        values, at = _tensor(content, (count + filters, 1), at)
        affine, at = _tensor(content, (2 * filters, 1), at)
        kernel, bias = values[:count].reshape(filters, channels, size, size), values[count:]
        scale, shift = np.split(affine, 2)
        weights += [kernel.transpose(2, 3, 1, 0) * scale, bias * scale + shift]
    last = BLOCKS[-1][0]
    matrix, _ = _tensor(content, (last, DIMENSIONS), at)
    return [*weights, matrix.reshape(last, DIMENSIONS)]


def _convolutions() -> list[tuple[int, int, int]]:
    """Return side, channels and filters of every convolution, from the input to the output."""
    filters = [STEM, *(filters for filters, blocks, _ in BLOCKS for _ in range(2 * blocks))]
    return [(7, 3, STEM), *((3, before, after) for before, after in pairwise(filters))]


def _tensor(
    content: bytes, shape: tuple[int, int], start: int
) -> tuple[npt.NDArray[np.float32], int]:
    """Return the next tensor [rows, columns, 1, 1] as float32[rows * columns], and where it ends.

    Before its numbers stand the version 2 and the shape, each number as its length and its bytes.
    """
    header = b"".join(map(_packed, (2, *shape, 1, 1)))
    at, count = content.find(header, start) + len(header), shape[0] * shape[1]
    if at < len(header) or at + 4 * count > len(content):
        raise ValueError(f"no tensor of {shape[0]} x {shape[1]} numbers after byte {start:,}")
    return np.frombuffer(content, "<f4", count, at).astype(np.float32), at + 4 * count


def _packed(number: int) -> bytes:
    size = max(1, (number.bit_length() + 7) // 8)
    return bytes([size]) + number.to_bytes(size, "little")
