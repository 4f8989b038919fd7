"""Which images TensorFlow may decode in Pillow's place, and how large one is when upright."""

import struct

from facepairs.images import jpeg
from facepairs.images.decode_budget import LARGE_PIXELS
from facepairs.images.orientation import turn_of
from facepairs.images.photo import Photo
from facepairs.images.pixels import Pixels

_HUFFMAN_FRAMES = frozenset((0xC0, 0xC1, 0xC2))  # baseline, extended, progressive


def is_plain(photo: Photo) -> bool:
    """Return whether TensorFlow decodes an image exactly as Pillow does, with little memory.

    That is a JPEG with Huffman coding, 1 or 3 components and an end marker, stored upright, and not
    a large one of several scans. Caches hold the answer: change `faces.detector.DETECTOR` with it.

    Args:
        photo: What `open_photo` returned for a file or its bytes; it was decoded without an error.
    """
    data = photo.content
    if not isinstance(data, bytes) or not data.startswith(jpeg.SIGNATURE):
        return False
    assert photo.opened
    if turn_of(photo.opened):
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


def upright_size(photo: Photo, pixels: Pixels, scale: float) -> tuple[int, int]:
    """Return width and height of a whole photo, of which `load_upright` returned pixels and scale.

    Only sides that were not shrunk tell them, because those of a smaller copy are rounded.
    """
    if scale == 1:
        return pixels.shape[1], pixels.shape[0]
    turn = turn_of(photo.opened) if photo.opened else None
    if turn and turn.swaps:
        return photo.height_px, photo.width_px
    return photo.width_px, photo.height_px
