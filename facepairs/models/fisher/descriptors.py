"""Dense local descriptors: histograms of gradient orientations on a grid, at four scales.

Array contract: float32[N, px, px, 3] in [0, 1] in, float32[N, P, 128] out, rows of length 1 or
less. Each descriptor is a 4 by 4 grid of cells with 8 orientations, as in SIFT, and then the square
root (RootSIFT). It is computed by convolutions, ReLU and pooling with fixed weights.

References:
    Lowe, "Distinctive Image Features from Scale-Invariant Keypoints", IJCV 2004.
    Arandjelović and Zisserman, "Three Things Everyone Should Know to Improve Object Retrieval",
    CVPR 2012.
"""

import math
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

ORIENTATIONS, GRID, CELL = 8, 4, 3  # a cell is 3 points wide, after pooling by two
LENGTH = ORIENTATIONS * GRID * GRID
TENT = 4  # points lost to the tent filter
# Side of the image at each scale, in eighths, and points from one descriptor to the next.
SCALES = ((8, 2), (6, 3), (4, 2), (3, 1))
LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601
FLAT = 0.05  # below this sum of gradients a patch is flat, and its descriptor short
SMALLEST_PX = 96  # the smallest scale must hold a whole descriptor

# In a mirrored image, orientation x becomes -x, and the columns of cells are in reverse order.
_MIRRORED_ORIENTATIONS = (ORIENTATIONS // 2 - np.arange(ORIENTATIONS)) % ORIENTATIONS
MIRROR_ORDER: npt.NDArray[np.intp] = (
    np.arange(LENGTH).reshape(GRID, GRID, ORIENTATIONS)[:, ::-1, _MIRRORED_ORIENTATIONS].ravel()
)

Kernel = npt.NDArray[np.float32]


def descriptors_per_line(side: int, step: int) -> int:
    """Return how many descriptors fit in a line of `side` pixels (even), `step` points apart."""
    return (_points(side) - margin(side, step)) // step + 1


def margin(side: int, step: int) -> int:
    """Return how many pixels are left out on each side of an image, one of them by the gradient.

    The first and the last descriptor are then equally far from the centre.
    """
    return (_points(side) - 1) % step + 1


def _points(side: int) -> int:
    """Return how far a descriptor can move along a line without a margin, in points."""
    return side // 2 - TENT - (GRID - 1) * CELL - 1


def gradient_kernel() -> Kernel:
    """Return the kernel of differences along x and y: float32[3, 3, 1, 2]."""
    kernel = np.zeros((3, 3, 1, 2), np.float32)
    kernel[1, 0, 0, 0] = kernel[0, 1, 0, 1] = -1
    kernel[1, 2, 0, 0] = kernel[2, 1, 0, 1] = 1
    return kernel


def orientation_kernel() -> Kernel:
    """Return the kernel that projects (x, y) on each orientation: float32[1, 1, 2, 8]."""
    angle = np.arange(ORIENTATIONS) * 2 * math.pi / ORIENTATIONS
    return np.stack([np.cos(angle), np.sin(angle)]).reshape(1, 1, 2, -1).astype(np.float32)


def _tent_kernel() -> Kernel:
    """Return the separable tent filter that sums each orientation over a cell."""
    line = np.array([1, 2, 3, 2, 1]) / 9
    cell: Kernel = np.einsum("i,j,ab->ijab", line, line, np.eye(ORIENTATIONS)).astype(np.float32)
    return cell


@keras.saving.register_keras_serializable("facepairs")
class DenseDescriptors(keras.Layer):  # type: ignore[misc]
    """Compute the descriptors of images whose side is a multiple of 16, at least 96."""

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
        scales = [self._describe(by_side[px * eighths // 8], step) for eighths, step in SCALES]
        return ops.concatenate(scales, axis=1)

    def _describe(self, gray: Any, step: int) -> Any:
        """Compute the descriptors of one scale: float32[N, side, side, 1] → float32[N, P, 128]."""
        side = gray.shape[1]
        cut = margin(side, step) - 1
        gray = gray[:, cut : side - cut, cut : side - cut]
        gradient = ops.conv(gray, gradient_kernel(), padding="valid")
        strength = ops.sqrt(ops.sum(gradient * gradient, axis=3, keepdims=True) + 1e-10)
        # The cosine to each orientation, to the power of 8, is small from 45 degrees on.
        cosine = ops.relu(ops.conv(gradient / strength, orientation_kernel()))
        energy = ops.square(ops.square(ops.square(cosine))) * strength
        cells = ops.conv(ops.average_pool(energy, 2), _tent_kernel(), padding="valid")
        count = cells.shape[1] - (GRID - 1) * CELL
        grid = [
            cells[:, y : y + count : step, x : x + count : step]
            for y in range(0, GRID * CELL, CELL)
            for x in range(0, GRID * CELL, CELL)
        ]
        patches = ops.concatenate(grid, axis=3)
        patches = ops.reshape(patches, (-1, patches.shape[1] * patches.shape[2], LENGTH))
        return ops.sqrt(patches / (ops.sum(patches, axis=2, keepdims=True) + FLAT))

    def compute_output_shape(self, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return shape[0], len(positions(int(shape[1] or 0))), LENGTH


def positions(px: int) -> npt.NDArray[np.float32]:
    """Return the centres (y, x) of the descriptors of an image: float32[P, 2], from -1 to 1."""
    scales = []
    for eighths, step in SCALES:
        side = px * eighths // 8
        first = TENT / 2 + (GRID - 1) / 2 * CELL  # centre of the first descriptor, in points
        centres = np.arange(descriptors_per_line(side, step)) * step + first
        share = (2 * centres + margin(side, step) + 1) / side  # a point is two pixels wide
        scales.append(np.stack(np.meshgrid(share, share, indexing="ij"), axis=2).reshape(-1, 2))
    return (2 * np.concatenate(scales) - 1).astype(np.float32)
