"""Cut the square of an image that a network sees, with Pillow; the twin of `pipeline.decode`.

A `CropPlan` says how every image of an index is cropped.

Array contract: uint8[crop_px, crop_px, 3], RGB: the centre square of the upright image, or a
rotated square around a face. Points are (x, y) positions of pixel centres: the first pixel of an
image is at (0, 0).
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from facepairs.choices import Align
from facepairs.photos.decode import upright
from facepairs.photos.photo import ImageSource, Photo, Pixels, open_photo

MAX_FRAME_PX = 4096  # a manifest that asks for more would have us allocate it

Crop = npt.NDArray[np.uint8]
LFW_FRAME = "lfw-frame"  # the alignment of images that are taken as they are
ALIGNMENTS: dict[Align, str] = {"landmarks": "landmarks-5", "none": LFW_FRAME}
"""The name in a bundle's manifest of each way to align."""
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


@dataclass(frozen=True)
class CropSpec:
    """The square that a network sees: the centre `crop_px` of a frame of `frame_px`.

    An image of any size counts as one frame: the square's side is round(short side * crop_px /
    frame_px), and it is resized to crop_px x crop_px only where it differs.

    Attributes:
        frame_px: Side of the frame.
        crop_px: Side of the square.
        points: Where an aligned face's five landmarks belong in the square, (x, y) in pixels: the
            eyes, the nose tip and the mouth corners. None: in the centre of the canonical frame of
            `frame`.

    Raises:
        ValueError: Not 1 <= crop_px <= frame_px <= 4096, or not five points in or near the square.
    """

    frame_px: int
    crop_px: int
    points: tuple[tuple[float, float], ...] | None = None

    def __post_init__(self) -> None:
        whole = all(type(value) is int for value in (self.frame_px, self.crop_px))
        if not whole or not 1 <= self.crop_px <= self.frame_px <= MAX_FRAME_PX:
            raise ValueError(
                f"framing needs whole numbers 1 <= crop_px <= frame_px <= {MAX_FRAME_PX}, not "
                f"crop_px {self.crop_px!r} of frame_px {self.frame_px!r}"
            )
        if self.points is not None and not _is_upright_face(self.points, self.crop_px):
            raise ValueError(
                f"points are {[list(point) for point in self.points]}: in pixels of the square, "
                "the left eye before the right one as the image shows them, and the mouth below "
                "the eyes"
            )

    def side_px(self, width: int, height: int) -> int:
        """Return the side of the square in an image of that size, at least 1 pixel."""
        # The same float expression as in training: halves must round the same way.
        return max(1, round(min(width, height) * (self.crop_px / self.frame_px)))


def _is_upright_face(points: tuple[tuple[float, float], ...], side_px: int) -> bool:
    if len(points) != 5:
        return False
    xs, ys = zip(*points, strict=True)
    inside = all(-side_px <= value <= 2 * side_px for value in (*xs, *ys))
    return inside and xs[0] < xs[1] and max(ys[:2]) < min(ys[3:])


def load_crop(source: ImageSource, spec: CropSpec, name: str | None = None) -> Crop:
    """Read an image and cut its centre square.

    An image whose square is at least four times too large is shrunk first; see `decode.upright`.

    Args:
        source: A path, an encoded image as bytes or an open binary file (a format of
            `formats`; the first frame of an animation), a Pillow image, or an array [H, W]
            or [H, W, 1, 3 or 4] of uint8, uint16 (the high byte is used) or floats in [0, 1].
        spec: Which square.
        name: What messages call the image.

    Returns:
        uint8[crop_px, crop_px, 3], RGB.

    Raises:
        BadImage: The image cannot be read, or is above 52 megapixels (WebP, AVIF and HEIF: 26) or
            256 MB.
    """
    return crop_photo(open_photo(source, name), spec)


def crop_photo(photo: Photo, spec: CropSpec) -> Crop:
    """Cut the centre square of a photo that `open_photo` returned, as `load_crop` does."""
    side = spec.side_px(photo.width_px, photo.height_px)
    # Twice the pixels needed: resizing still averages.
    with upright(photo, side / (2 * spec.crop_px)) as (image, divisor):
        corner = (np.array(photo.upright_px) - side) // 2
        box = np.concatenate([corner, corner + side]) / divisor
        return resize_box(image, box, spec.crop_px)


def warp_photo(photo: Photo, to_square: Similarity, side_px: int) -> Crop:
    """Cut a rotated square out of a photo; what lies outside of the photo is black.

    A photo that is much too large is shrunk first; see `decode.upright`.

    Args:
        photo: What `open_photo` returned.
        to_square: Map from the full-size upright photo to the square.
        side_px: Side of the square.

    Returns:
        uint8[side_px, side_px, 3], RGB.

    Raises:
        BadImage: The photo is damaged.
    """
    with upright(photo, 1 / to_square.scale) as (image, divisor):
        return warp(image, to_square.of_scaled_image(1 / divisor), side_px)


def resize_box(image: Image.Image, box: npt.NDArray[np.float64], crop_px: int) -> Crop:
    """Cut a box (left, top, right, bottom) and resize it; pixels beside the box never mix in."""
    left, top = np.floor(box[:2]).astype(int).tolist()
    part = image.crop((left, top, *np.ceil(box[2:]).astype(int).tolist()))
    if box[2] - box[0] != crop_px:
        inner = tuple((box - (left, top) * 2).tolist())
        part = part.resize((crop_px, crop_px), Image.Resampling.BILINEAR, box=inner)
    return np.array(part)


@dataclass(frozen=True, eq=False)
class CropPlan:
    """How every image of an index is cropped.

    Attributes:
        spec: Side of the crop; without a map, which centre square it is.
        jpegs: int32[N, 3], of each JPEG that TensorFlow decodes as Pillow does (see
            `decode.is_tf_decodable`): height and width of the upright photo, and how it is stored
            by EXIF, 1 to 8. Zeros for all other images.
        to_crop: float64[N, 2, 3], the map from each full-size upright image to its crop: matrix and
            offset. None: the centre square of each image.
        alignment: Its name in a bundle's manifest, such as "landmarks-5" or "lfw-frame".
        detector: What found the faces; "" without a map.
    """

    spec: CropSpec
    jpegs: npt.NDArray[np.int32]
    to_crop: Points | None = None
    alignment: str = LFW_FRAME
    detector: str = ""

    def __len__(self) -> int:
        return len(self.jpegs)

    @property
    def tf_decodable(self) -> npt.NDArray[np.bool_]:
        """Whether TensorFlow decodes each image as Pillow does: bool[N]."""
        return self.jpegs[:, 0] > 0

    def take(self, images: npt.NDArray[np.integer[Any]]) -> "CropPlan":
        """Return the plan of some images, int[N], in that order."""
        to_crop = None if self.to_crop is None else self.to_crop[images]
        return replace(self, jpegs=self.jpegs[images], to_crop=to_crop)

    def crop(self, photo: Photo, image: int) -> Crop:
        """Cut the crop of an image by its number, as verification does.

        Raises:
            BadImage: The photo is damaged.
        """
        if self.to_crop is None:
            return crop_photo(photo, self.spec)
        to_crop = self.to_crop[image]
        return warp_photo(photo, Similarity(to_crop[:, :2], to_crop[:, 2]), self.spec.crop_px)
