"""Similarity transforms of the image plane, and cutting a rotated square out of an image.

Points are (x, y) positions of pixel centres: the first pixel of an image is at (0, 0).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from facepairs.photos.pixels import Pixels

Points = npt.NDArray[np.float64]


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


def warp(image: Image.Image, to_square: Similarity, side_px: int) -> Pixels:
    """Cut a rotated square out of an image, bilinear; what lies outside of the image is black.

    Where the square is shrunk by 2 or more, whole pixels are averaged first, against aliasing.

    Args:
        image: In mode RGB.
        to_square: Map from the image to the square.
        side_px: Side of the square.

    Returns:
        uint8[side_px, side_px, 3].
    """
    back = to_square.inverse()
    reduction = max(1, int(back.scale))
    centre = back(np.full(2, (side_px - 1) / 2))
    reach = 0.71 * back.scale * side_px + 2 * reduction  # half of the diagonal, and more
    most = np.array(image.size) + 1  # a black pixel around the image fades in, as with OpenCV
    first, end = ((centre + sign * reach).clip(-1, most).astype(int) for sign in (-1, 1))
    if (first >= end).any():
        return np.zeros((side_px, side_px, 3), np.uint8)
    image = image.crop((*first.tolist(), *end.tolist()))
    offset = back.offset - first
    if reduction > 1:
        image = image.reduce(reduction)
        offset = (offset + 0.5) / reduction - 0.5
    matrix = back.matrix / reduction
    x, y = offset + 0.5 - matrix.sum(axis=1) / 2  # Pillow counts from pixels' corners
    (a, b), (c, d) = matrix
    method, filter_ = Image.Transform.AFFINE, Image.Resampling.BILINEAR
    return np.array(image.transform((side_px, side_px), method, (a, b, x, c, d, y), filter_))
