"""Similarity transforms of the image plane, and cutting a rotated square out of an image.

Points are (x, y) positions of pixel centres: the first pixel of an image is at (0, 0).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from facepairs.images.pixels import Pixels

Points = npt.NDArray[np.float64]

STEP_BITS = 6  # positions are rounded to 1 / 64 of a pixel
LANE_BITS = 21


@dataclass(frozen=True, eq=False)
class Similarity:
    """The map x -> matrix @ x + offset, which scales, rotates, mirrors and shifts points.

    Attributes:
        matrix: float64[2, 2].
        offset: float64[2].
    """

    matrix: Points
    offset: Points

    def __call__(self, points: Points) -> Points:
        """Map float64[N, 2] or float64[2]."""
        return points @ self.matrix.T + self.offset

    @property
    def scale(self) -> float:
        """Length of the image of a unit vector."""
        return math.hypot(*self.matrix[:, 0])

    @property
    def angle_deg(self) -> float:
        """Rotation in degrees, clockwise as images are shown, from -180 to 180."""
        return math.degrees(math.atan2(self.matrix[1, 0], self.matrix[0, 0]))

    def inverse(self) -> "Similarity":
        """Return the map that undoes this one."""
        matrix = np.asarray(np.linalg.inv(self.matrix), np.float64)
        return Similarity(matrix, -matrix @ self.offset)

    def after(self, first: "Similarity") -> "Similarity":
        """Return the map that applies `first` and then this one."""
        return Similarity(self.matrix @ first.matrix, self(first.offset))

    def of_scaled_image(self, scale: float) -> "Similarity":
        """Return the map of a copy of the image that is `scale` times as large."""
        centres = self.matrix @ np.full(2, 0.5 / scale - 0.5)  # pixel centres move with the size
        return Similarity(self.matrix / scale, self.offset + centres)


def centred_square(to_frame: Similarity, frame_px: float, scale: float, side_px: int) -> Similarity:
    """Return the map to the centre square of a frame.

    Args:
        to_frame: The map from an image to the frame.
        frame_px: Side of the frame.
        scale: Pixels of the square per pixel of the frame.
        side_px: Side of the square.
    """
    shift = (side_px - scale * frame_px + scale - 1) / 2
    return Similarity(to_frame.matrix * scale, to_frame.offset * scale + shift)


def warp(image: Pixels, to_square: Similarity, side_px: int) -> Pixels:
    """Cut a rotated square out of an image, bilinear; what lies outside of the image is black.

    Where the square is shrunk by 2 or more, whole pixels are averaged first, against aliasing.

    Args:
        image: uint8[H, W, 3].
        to_square: Map from the image to the square.
        side_px: Side of the square.

    Returns:
        uint8[side_px, side_px, 3].
    """
    back = to_square.inverse()
    left, top, right, bottom = source_window(back, side_px, image.shape[1], image.shape[0])
    window = image[top:bottom, left:right]
    if not window.size:
        return np.zeros((side_px, side_px, 3), np.uint8)
    offset = back.offset - (left, top)
    reduction = int(back.scale)
    if reduction > 1:
        whole = [-(-side // reduction) * reduction for side in window.shape[1::-1]]  # black beside
        window = np.asarray(Image.fromarray(window).crop((0, 0, *whole)).reduce(reduction))
        back = Similarity(back.matrix / reduction, back.offset)
        offset = (offset + 0.5) / reduction - 0.5
    return _sample(window, back.matrix, offset, side_px)


def source_window(
    back: Similarity, side_px: int, width: int, height: int
) -> tuple[int, int, int, int]:
    """Return the part of an image that a square is cut from: left, top, right and bottom.

    It is empty where they do not meet.

    Args:
        back: Map from the square to the image.
        side_px: Side of the square.
        width: Of the image.
        height: Of the image.
    """
    last = side_px - 1.0
    corners = back(np.array([(0.0, 0.0), (last, 0.0), (0.0, last), (last, last)]))
    margin = max(1, int(back.scale))
    left, top = np.floor(corners.min(axis=0)).astype(int) - margin
    right, bottom = np.ceil(corners.max(axis=0)).astype(int) + margin + 1
    limits = np.array([width, height, width, height])
    left, top, right, bottom = np.clip((left, top, right, bottom), 0, limits).tolist()
    return left, top, right, bottom


def _sample(window: Pixels, matrix: Points, offset: Points, side_px: int) -> Pixels:
    """Interpolate uint8[H, W, 3] at matrix @ (column, row) + offset; black around the window."""
    height, width = window.shape[:2]
    # Three lanes of 21 bits in one integer: weights of 12 bits multiply all colours at once.
    packed = np.zeros((height + 2, width + 2), np.uint64)
    for lane in range(3):
        packed[1:-1, 1:-1] |= window[:, :, lane].astype(np.uint64) << (LANE_BITS * lane)
    packed = packed.reshape(-1)
    x, y = _positions(matrix, offset, side_px, (width, height))
    column, row = np.minimum(x >> STEP_BITS, width), np.minimum(y >> STEP_BITS, height)
    first = row * (width + 2) + column
    right = (x - (column << STEP_BITS)).astype(np.uint64)
    below = (y - (row << STEP_BITS)).astype(np.uint64)
    left, above = (1 << STEP_BITS) - right, (1 << STEP_BITS) - below
    total = packed.take(first) * (left * above)
    total += packed.take(first + 1) * (right * above)
    total += packed.take(first + (width + 2)) * (left * below)
    total += packed.take(first + (width + 3)) * (right * below)
    bits = 2 * STEP_BITS
    total += sum(1 << (LANE_BITS * lane + bits - 1) for lane in range(3))  # so that it rounds
    return np.stack([(total >> (LANE_BITS * lane + bits)) & 255 for lane in range(3)], 2).astype(
        np.uint8
    )


def _positions(
    matrix: Points, offset: Points, side_px: int, size: tuple[int, int]
) -> list[npt.NDArray[np.int64]]:
    """Return x and y of every pixel of a square, in steps, counted from the border's corner."""
    unit = 1 << STEP_BITS
    pixels = np.arange(side_px)
    positions = []
    for (across, down), start, length in zip(matrix * unit, offset, size, strict=True):
        whole = across * pixels + (down * pixels + ((start + 1) * unit + 0.5))[:, None]
        positions.append(whole.clip(0, (length + 1) * unit).astype(np.int64))
    return positions
