"""Dense local descriptors: histograms of the orientations of edges or lines, at four scales.

Array contract: float32[N, px, px, 3] in [0, 1] in, float32[N, P, 128] out, rows of length 1 or
less. Each descriptor is a 4 by 4 grid of cells with 8 orientations, as in SIFT, and then the square
root (RootSIFT). It is computed by differences, convolutions, ReLU and pooling with fixed weights.
Descriptors of lines take the second derivatives of the image in place of the gradient.

References:
    Lowe, "Distinctive Image Features from Scale-Invariant Keypoints", IJCV 2004.
    Arandjelović and Zisserman, "Three Things Everyone Should Know to Improve Object Retrieval",
    CVPR 2012.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from keras import ops

ORIENTATIONS, GRID, CELL = 8, 4, 3  # a cell is 3 points wide, after pooling by two
LENGTH = ORIENTATIONS * GRID * GRID
TENT = 4  # points lost to the tent filter
REACH = 2  # pixels on each side, of the second derivatives
# Side of the image at each scale, in eighths, and points from one descriptor to the next.
SCALES = ((8, 2), (6, 3), (4, 2), (3, 1))
LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601
# Added to tensors as arrays of one number: tf2onnx keeps slow transpositions around scalars.
_TINY = np.full(1, 1e-10, np.float32)
_FLAT = np.full(1, 0.05, np.float32)  # a patch with a smaller sum of cells has a short descriptor

# In a mirrored image, orientation x becomes -x, and the columns of cells are in reverse order.
_MIRRORED_ORIENTATIONS = (ORIENTATIONS // 2 - np.arange(ORIENTATIONS)) % ORIENTATIONS
MIRROR_ORDER: npt.NDArray[np.intp] = (
    np.arange(LENGTH).reshape(GRID, GRID, ORIENTATIONS)[:, ::-1, _MIRRORED_ORIENTATIONS].ravel()
)

Kernel = npt.NDArray[np.float32]


class View(NamedTuple):
    """What descriptors are computed of: a square part of an image, and its edges or its lines.

    Attributes:
        part_px: Side of the part; None for the whole image. It leaves equally many pixels on the
            left and on the right.
        top_px: The part's first line; None for the centre.
        lines: Describe lines, by second derivatives, rather than edges, by the gradient.
    """

    part_px: int | None = None
    top_px: int | None = None
    lines: bool = False


WHOLE = View()


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


def orientation_kernel() -> Kernel:
    """Return the kernel that projects (x, y) on each orientation: float32[1, 1, 2, 8].

    The cosine of 90° is rounded to 0: its powers would be denormal numbers, which are slow.
    """
    angle = np.arange(ORIENTATIONS) * 2 * math.pi / ORIENTATIONS
    kernel = np.stack([np.cos(angle), np.sin(angle)]).round(9)
    return kernel.reshape(1, 1, 2, -1).astype(np.float32)


def describe(images: Any, view: View = WHOLE) -> Any:
    """Compute the descriptors of images whose side is a multiple of 16, at least 96.

    Args:
        images: float32[N, px, px, 3].
        view: What is described; a part is enlarged to the size of the images.

    Returns:
        float32[N, P, 128], rows in the order of `positions`.
    """
    scales = []
    for gray, step in _pyramid(_cut(_gray(images), view)):
        roots, scale = _cells(gray, [view], step)
        count = roots.shape[1] - (GRID - 1) * CELL
        grid = [
            roots[:, y : y + count : step, x : x + count : step]
            for y in range(0, GRID * CELL, CELL)
            for x in range(0, GRID * CELL, CELL)
        ]
        patches = ops.concatenate(grid, axis=3) * scale
        scales.append(ops.reshape(patches, (-1, patches.shape[1] * patches.shape[2], LENGTH)))
    return ops.concatenate(scales, axis=1)


def project_views(images: Any, views: Sequence[View], bases: Sequence[Any]) -> Any:
    """Compute projected descriptors, several times faster than computing the descriptors.

    Collecting the cells of a descriptor and projecting them is one dilated convolution. The views
    of an image are computed as its channels: graphs with a branch for each view load slowly.

    Args:
        images: float32[N, px, px, 3].
        views: What is described, M times.
        bases: M times float32[128, C].

    Returns:
        float32[N, M, C, P], the products of the descriptors and the view's basis.
    """
    whole = _gray(images)
    count, width = len(views), bases[0].shape[1]
    kernels = [ops.reshape(basis, (GRID, GRID, ORIENTATIONS, width)) for basis in bases]
    scales = []
    for gray, step in _pyramid(_join([_cut(whole, view) for view in views])):
        roots, scale = _cells(gray, views, step)
        # Keras has no convolution with both strides and dilation.
        projected = [
            tf.nn.conv2d(own, kernel, step, "VALID", dilations=CELL)
            for own, kernel in zip(_split(roots, count), kernels, strict=True)
        ]
        # Channels first, as convolutions in ONNX Runtime return them.
        places = scale.shape[1] * scale.shape[2]
        rows = ops.reshape(_channels_first(_join(projected)), (-1, count, width, places))
        scales.append(rows * ops.reshape(_channels_first(scale), (-1, count, 1, places)))
    return ops.concatenate(scales, axis=3)


def _channels_first(values: Any) -> Any:
    return ops.transpose(values, (0, 3, 1, 2))


def _split(values: Any, parts: int) -> list[Any]:
    """Split the channels into equal parts."""
    if parts == 1:
        return [values]
    width = values.shape[3] // parts
    return [values[..., at : at + width] for at in range(0, parts * width, width)]


def _join(values: Sequence[Any]) -> Any:
    """Concatenate channels."""
    return values[0] if len(values) == 1 else ops.concatenate(values, axis=3)


def _gray(images: Any) -> Any:
    """Return the luma of images: float32[N, px, px, 1]."""
    px = images.shape[1]
    # A convolution along the lines, whose every three numbers are a pixel: needs no transposition.
    lines = ops.reshape(images, (-1, px, 3 * px, 1))
    luma = np.array(LUMA, np.float32).reshape(1, 3, 1, 1)
    return ops.conv(lines, luma, strides=(1, 3), padding="valid")


def _cut(gray: Any, view: View) -> Any:
    """Return the part that is described, enlarged to the size of the images."""
    px, side = gray.shape[1], view.part_px
    if side is None:
        return gray
    left = (px - side) // 2
    top = left if view.top_px is None else view.top_px
    return ops.image.resize(gray[:, top : top + side, left : left + side], (px, px), "bilinear")


def _pyramid(gray: Any) -> Iterator[tuple[Any, int]]:
    """Yield gray images at each scale, float32[N, side, side, M], and the scale's step."""
    px = gray.shape[1]
    by_side = {px: gray}
    for eighths, step in SCALES:
        side = px * eighths // 8
        if side not in by_side and 2 * side in by_side:
            by_side[side] = ops.average_pool(by_side[2 * side], 2)
        elif side not in by_side:
            by_side[side] = ops.image.resize(gray, (side, side), "bilinear")
        yield by_side[side], step


def _derivatives(gray: Any, views: Sequence[View], step: int) -> tuple[Any, Any]:
    """Return the derivatives of each view's channel, without the margin: float32[N, y, x, M] twice.

    Of edges they are the gradient, across and down. Of lines they are twice the mixed second
    derivative, and xx - yy: their angle is twice a line's, and depends on whether it is bright or
    dark. Mirroring the image changes the sign of the first one alone, in both cases.

    They are differences of shifted images: convolutions of few channels are slow in ONNX Runtime.
    """
    beyond = REACH - margin(gray.shape[1], step)  # pixels that are needed outside the image
    if beyond > 0:
        around = (beyond, beyond)
        gray = ops.pad(gray, ((0, 0), around, around, (0, 0)), "reflect")
    elif beyond < 0:
        gray = gray[:, -beyond:beyond, -beyond:beyond]
    across, down = [], []
    channels = zip(views, _split(gray, len(views)), strict=True)
    for lines, group in itertools.groupby(channels, lambda pair: pair[0].lines):
        part = _join([channel for _, channel in group])
        if lines:
            x, y = _across(part), _down(part)
            across.append(2 * _across(y[:, 1:-1])[:, :, 1:-1])
            down.append(_across(x[:, 2:-2]) - _down(y[:, :, 2:-2]))
        else:
            across.append(_across(part[:, 2:-2, 1:-1]))
            down.append(_down(part[:, 1:-1, 2:-2]))
    return _join(across), _join(down)


def _across(values: Any) -> Any:
    """Return the difference of each point's neighbours on the right and on the left."""
    return values[:, :, 2:] - values[:, :, :-2]


def _down(values: Any) -> Any:
    """Return the difference of each point's neighbours below and above."""
    return values[:, 2:] - values[:, :-2]


def _cells(gray: Any, views: Sequence[View], step: int) -> tuple[Any, Any]:
    """Return the square roots of the cells of one scale, and what scales each descriptor.

    The root of a descriptor is that of its cells times the root of its scale. Taking it before the
    cells are collected makes collecting linear, and saves 15 of 16 roots.

    Args:
        gray: float32[N, side, side, M], a channel for each view.
        views: M views, whether edges or lines are described.
        step: Points from one descriptor to the next.

    Returns:
        float32[N, y, x, M·8], and float32[N, rows, columns, M].
    """
    across, down = _derivatives(gray, views, step)
    strength = ops.sqrt(across * across + down * down + _TINY)
    # (cosine · strength^⅛)^8 = cosine^8 · strength; cosine^8 is small from 45 degrees on.
    factor = ops.sqrt(ops.sqrt(ops.sqrt(strength))) / strength
    gradient = ops.concatenate([across * factor, down * factor], axis=3)
    own = [_by_view(part, len(views)) for part in np.split(orientation_kernel(), 2, axis=2)]
    energy = ops.relu(ops.conv(gradient, np.concatenate(own, axis=2)))
    for _ in range(3):
        energy = energy * energy
    cells = ops.average_pool(energy, 2)
    for _ in range(2):  # two boxes, one after the other, make a tent
        cells = ops.average_pool(cells, 3, strides=1)
    # The sum of all cells of a descriptor: over the orientations, then over the grid.
    both = ops.conv(cells, _by_view(np.ones((1, 1, ORIENTATIONS, 1), np.float32), len(views)))
    ones = _by_view(np.ones((GRID, GRID, 1, 1), np.float32), len(views))
    total = tf.nn.conv2d(both, ones, step, "VALID", dilations=CELL)
    return ops.sqrt(cells), 1 / ops.sqrt(total + _FLAT)


def _by_view(kernel: Kernel, views: int) -> Kernel:
    """Return a kernel that does the same for each view's channels: [y, x, M·in, M·out]."""
    height, width, channels, results = kernel.shape
    blocks = np.zeros((height, width, views, channels, views, results), np.float32)
    for view in range(views):
        blocks[:, :, view, :, view] = kernel
    return blocks.reshape(height, width, views * channels, views * results)


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
