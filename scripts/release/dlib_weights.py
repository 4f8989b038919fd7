"""Read the weights of the residual network from dlib's own file."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from facepairs.models.resnet import BLOCKS, DIMENSIONS, STEM

Weights = list[npt.NDArray[np.float32]]


def dlib_weights(content: bytes) -> Weights:
    """Return the weights of `face_resnet`, scales and shifts folded into the convolutions.

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
