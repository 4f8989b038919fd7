"""Check one image file: whether it can be decoded, how it is turned, and who can decode it."""

import struct
from dataclasses import dataclass

from facepairs.images import jpeg
from facepairs.images.decode_budget import LARGE_PIXELS
from facepairs.images.orientation import SWAPPING, TURNS, UPRIGHT, quiet_pillow, read_orientation
from facepairs.images.photo import Photo, load_upright
from facepairs.images.pixels import Pixels

_HUFFMAN_FRAMES = frozenset((0xC0, 0xC1, 0xC2))  # baseline, extended, progressive


@dataclass(frozen=True, eq=False, slots=True)
class CheckedImage:
    """An image that can be decoded.

    Attributes:
        width_px: Width of the upright image at its full size.
        height_px: Its height.
        orientation: EXIF orientation, 1 to 8.
        plain: Whether TensorFlow decodes the file as Pillow does; see `is_plain`.
        pixels: uint8[H, W, 3], upright, of the full size or smaller.
        scale: Their size relative to the full one, at most 1.
    """

    width_px: int
    height_px: int
    orientation: int
    plain: bool
    pixels: Pixels
    scale: float


def check_image(photo: Photo, long_px: int | None = None) -> CheckedImage:
    """Decode a photo that `open_photo` returned for the content of a file.

    Args:
        photo: The photo.
        long_px: Allow a JPEG to be decoded smaller; see `load_upright`.

    Raises:
        ImageProblem: It cannot be decoded.
    """
    assert isinstance(photo.content, bytes)
    assert photo.opened
    with quiet_pillow():
        orientation = read_orientation(photo.opened)
    pixels, scale = load_upright(photo, long_px)
    height, width = pixels.shape[:2]
    if scale < 1:  # sides of a smaller copy are rounded
        swaps = orientation in TURNS and TURNS[orientation].transpose in SWAPPING
        width, height = (photo.width_px, photo.height_px)[:: -1 if swaps else 1]
    plain = is_plain(photo.content, orientation)
    return CheckedImage(width, height, orientation, plain, pixels, scale)


def is_plain(data: bytes, orientation: int) -> bool:
    """Return whether TensorFlow decodes an image exactly as Pillow does, with little memory.

    That is a JPEG with Huffman coding, 1 or 3 components and an end marker, stored upright, and not
    a large one of several scans.

    Args:
        data: The whole file, which `open_photo` has accepted.
        orientation: Its EXIF orientation.
    """
    if orientation != UPRIGHT or not data.startswith(jpeg.SIGNATURE):
        return False
    scans = pixels = 0
    marker = jpeg.NO_MARKER
    for marker, start, _, _ in jpeg.segments(data):
        scans += marker == jpeg.SCAN
        if marker in jpeg.FRAMES:  # ITU-T T.81, B.2.2
            height, width, components = struct.unpack_from(">HHB", data, start + 3)
            pixels = width * height
            if marker not in _HUFFMAN_FRAMES or components not in (1, 3):
                return False
    small = scans == 1 or pixels <= LARGE_PIXELS
    return marker == jpeg.END and small
