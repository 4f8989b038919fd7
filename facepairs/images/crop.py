"""Cut the square of an image that a network sees, with Pillow; the twin of `pipeline.decode`.

Array contract: uint8[crop_px, crop_px, 3], RGB: the centre square of the upright image, or a
rotated square around a face.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from facepairs.images.decode_budget import decode_budget, decode_cost_px
from facepairs.images.orientation import turn_of
from facepairs.images.photo import (
    ImageSource,
    Photo,
    damage_as_bad_image,
    open_photo,
    shrink_jpeg,
    undecoded,
)
from facepairs.images.pixels import array_pixels, image_pixels, to_rgb
from facepairs.images.warp import Similarity, source_window, warp

MAX_FRAME_PX = 4096  # a manifest that asks for more would have us allocate it

Crop = npt.NDArray[np.uint8]


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
            `faces.alignment`.

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

    A JPEG whose square is over four times too large may be decoded at a half, a quarter or an
    eighth of its size (libjpeg's DCT scaling), which stays within a few grey levels.

    Args:
        source: A path, an encoded image as bytes or an open binary file (a format of
            `images.formats`; the first frame of an animation), a Pillow image, or an array [H, W]
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
    """Cut the centre square of a photo that `open_photo` returned, as `load_crop` does; once."""
    content, name = photo.content, photo.name
    if isinstance(content, np.ndarray):
        side = spec.side_px(photo.width_px, photo.height_px)
        left, top = _offset(photo.width_px, side), _offset(photo.height_px, side)
        square = array_pixels(content[top : top + side, left : left + side], name)
        crop = _resize_box(Image.fromarray(square), (0, 0, side, side), spec.crop_px, name)
        return np.array(crop)
    with damage_as_bad_image(name):
        image = undecoded(content, photo)
        width, height = image.size
        side, divisor = spec.side_px(width, height), 1
        if side > 4 * spec.crop_px and isinstance(content, bytes):
            keep = 2 * spec.crop_px / side  # twice the pixels needed: resizing still averages
            divisor = shrink_jpeg(image, math.ceil(width * keep), math.ceil(height * keep))
        with decode_budget.acquire(_cost_px(photo, image)):
            image.load()
            if divisor == 1:
                width, height = image.size  # `load` turns a TIFF upright
            turn = turn_of(image)
            left = _offset(width, side, turn is not None and turn.reverses_x)
            top = _offset(height, side, turn is not None and turn.reverses_y)
            box = (left / divisor, top / divisor, (left + side) / divisor, (top + side) / divisor)
            crop = _resize_box(image, box, spec.crop_px, name)
            return np.array(crop.transpose(turn.transpose) if turn else crop)


def warp_photo(photo: Photo, to_square: Similarity, side_px: int) -> Crop:
    """Cut a rotated square out of a photo; what lies outside of the photo is black.

    A JPEG may be decoded at a half, a quarter or an eighth of its size (libjpeg's DCT scaling),
    which stays within a few grey levels.

    Args:
        photo: What `open_photo` returned.
        to_square: Map from the full-size upright photo to the square.
        side_px: Side of the square.

    Returns:
        uint8[side_px, side_px, 3], RGB.

    Raises:
        BadImage: The photo is damaged.
    """
    content, name = photo.content, photo.name
    if isinstance(content, np.ndarray):
        window = source_window(to_square.inverse(), side_px, photo.width_px, photo.height_px)
        left, top, right, bottom = window
        pixels = array_pixels(content[top:bottom, left:right], name)
        return warp(pixels, to_square.after(_shift(left, top)), side_px)
    with damage_as_bad_image(name):
        image = undecoded(content, photo)
        divisor = 1
        if isinstance(content, bytes):
            most = max(1, int(1 / to_square.scale))
            divisor = shrink_jpeg(image, image.width // most, image.height // most)
        with decode_budget.acquire(_cost_px(photo, image)):
            image.load()
            stored = (photo.width_px, photo.height_px) if divisor > 1 else image.size
            turn = turn_of(image)
            if turn:
                to_square = to_square.after(turn.to_upright(*stored))
            to_square = to_square.of_scaled_image(1 / divisor)
            window = source_window(to_square.inverse(), side_px, *image.size)
            pixels = image_pixels(image.crop(window), name)
        return warp(pixels, to_square.after(_shift(*window[:2])), side_px)


def _shift(left: int, top: int) -> Similarity:
    return Similarity(np.eye(2), np.array([left, top], np.float64))


def _cost_px(photo: Photo, image: Image.Image) -> int:
    stored_px = photo.width_px * photo.height_px
    return decode_cost_px(photo.content, math.prod(image.size), stored_px)


def _offset(length: int, side: int, reverses: bool = False) -> int:
    """Return the square's offset on a stored axis; it is (length - side) // 2 when upright."""
    offset = (length - side) // 2
    return length - side - offset if reverses else offset


def _resize_box(
    image: Image.Image, box: tuple[float, float, float, float], crop_px: int, name: str
) -> Image.Image:
    """Cut a box and resize it to crop_px; pixels beside the box never mix in, as in training."""
    left, top = math.floor(box[0]), math.floor(box[1])
    right, bottom = math.ceil(box[2]), math.ceil(box[3])
    part = to_rgb(image.crop((left, top, right, bottom)), name)
    if box[2] - box[0] == crop_px:
        return part
    inner = (box[0] - left, box[1] - top, box[2] - left, box[3] - top)
    return part.resize((crop_px, crop_px), Image.Resampling.BILINEAR, box=inner)
