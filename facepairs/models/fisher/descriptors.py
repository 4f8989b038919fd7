"""Dense local descriptors: what gradients do around each point, on a grid and at four scales.

Array contract: float32[N, px, px, 3] in [0, 1] in, float32[N, P, 128] out, rows of length 1 at
most. Each is a 4 by 4 grid of cells with 8 orientations, as SIFT's (Lowe, IJCV 2004), its square
root taken (RootSIFT: Arandjelović and Zisserman, CVPR 2012): convolutions, ReLU and pooling with
fixed weights.
"""

import math
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

ORIENTATIONS, GRID, CELL = 8, 4, 3  # a cell is 3 of the points left after pooling by two
LENGTH = ORIENTATIONS * GRID * GRID
TENT = 4  # points lost to it
SCALES = (
    (8, 2),
    (6, 3),
    (4, 2),
    (3, 1),
)  # eighths of the image's side, points from one to the next
LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601
FLAT = 0.05  # gradient below which a patch counts as flat, and its descriptor stays short
SMALLEST_PX = 96  # the smallest scale must hold a whole descriptor

# In a mirror image orientation x becomes -x, and the last column of cells comes first.
_TURNED = (ORIENTATIONS // 2 - np.arange(ORIENTATIONS)) % ORIENTATIONS
MIRRORED: npt.NDArray[np.intp] = (
    np.arange(LENGTH).reshape(GRID, GRID, ORIENTATIONS)[:, ::-1, _TURNED].ravel()
)

Kernel = npt.NDArray[np.float32]


def points(side: int, step: int) -> int:
    """Give how many descriptors stand in a line of a scale of even `side`, `step` points apart."""
    return (_steps(side) - margin(side, step)) // step + 1


def margin(side: int, step: int) -> int:
    """Give how many pixels are left out on each side of an image, one of them by the gradient.

    So many that the first and the last descriptor stand as far from the middle.
    """
    return (_steps(side) - 1) % step + 1


def _steps(side: int) -> int:
    """Give how far a descriptor could go along a line that has no margin, in points."""
    return side // 2 - TENT - (GRID - 1) * CELL - 1


def gradient() -> Kernel:
    """Give the differences of neighbours along x and y: float32[3, 3, 1, 2]."""
    kernel = np.zeros((3, 3, 1, 2), np.float32)
    kernel[1, 0, 0, 0] = kernel[0, 1, 0, 1] = -1
    kernel[1, 2, 0, 0] = kernel[2, 1, 0, 1] = 1
    return kernel


def directions() -> Kernel:
    """Give what projects (x, y) on each orientation: float32[1, 1, 2, 8]."""
    angle = np.arange(ORIENTATIONS) * 2 * math.pi / ORIENTATIONS
    return np.stack([np.cos(angle), np.sin(angle)]).reshape(1, 1, 2, -1).astype(np.float32)


def _tent() -> Kernel:
    """Spread each orientation over its cell: a separable tent, channel by channel."""
    line = np.array([1, 2, 3, 2, 1]) / 9
    cell: Kernel = np.einsum("i,j,ab->ijab", line, line, np.eye(ORIENTATIONS)).astype(np.float32)
    return cell


@keras.saving.register_keras_serializable("facepairs")
class DenseDescriptors(keras.Layer):  # type: ignore[misc]
    """Describes the patches of a face; side 96 or more, a multiple of 16."""

    def call(self, images: Any) -> Any:
        gray = ops.sum(images * np.array(LUMA, np.float32), axis=3, keepdims=True)
        px = images.shape[1]
        by_side = {px: gray}
        for eighths, _ in SCALES[1:]:
            side = px * eighths // 8
            twice = by_side.get(2 * side)
            by_side[side] = (
                ops.average_pool(twice, 2)
                if twice is not None
                else ops.image.resize(gray, (side, side), "bilinear")
            )
        found = [self._patches(by_side[px * eighths // 8], step) for eighths, step in SCALES]
        return ops.concatenate(found, axis=1)

    def _patches(self, gray: Any, step: int) -> Any:
        side = gray.shape[1]
        cut = margin(side, step) - 1
        seen = gray[:, cut : side - cut, cut : side - cut]
        slope = ops.conv(seen, gradient(), padding="valid")
        strength = ops.sqrt(ops.sum(slope * slope, axis=3, keepdims=True) + 1e-10)
        # The cosine to each direction, to the eighth: 45 degrees on, little of it is left.
        near = ops.relu(ops.conv(slope / strength, directions()))
        energy = ops.square(ops.square(ops.square(near))) * strength
        cells = ops.conv(ops.average_pool(energy, 2), _tent(), padding="valid")
        count = cells.shape[1] - (GRID - 1) * CELL
        parts = [
            cells[:, y : y + count : step, x : x + count : step]
            for y in range(0, GRID * CELL, CELL)
            for x in range(0, GRID * CELL, CELL)
        ]
        patches = ops.concatenate(parts, axis=3)
        patches = ops.reshape(patches, (-1, patches.shape[1] * patches.shape[2], LENGTH))
        return ops.sqrt(patches / (ops.sum(patches, axis=2, keepdims=True) + FLAT))

    def compute_output_shape(self, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return shape[0], len(positions(int(shape[1] or 0))), LENGTH


def positions(px: int) -> npt.NDArray[np.float32]:
    """Give where the descriptors of an image of side `px` stand: float32[P, 2], -1 … 1 over it."""
    found = []
    for eighths, step in SCALES:
        side = px * eighths // 8
        # Half a tent and half a grid, in pairs of pixels behind the margin; the pair's own middle.
        middle = np.arange(points(side, step)) * step + TENT / 2 + (GRID - 1) / 2 * CELL
        at = (2 * middle + margin(side, step) + 1) / side
        found.append(np.stack(np.meshgrid(at, at, indexing="ij"), axis=2).reshape(-1, 2))
    return (2 * np.concatenate(found) - 1).astype(np.float32)
