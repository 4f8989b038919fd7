"""Decode photos to upright RGB: EXIF orientation, smaller decoding, and a limit on memory.

Only colours count: alpha is dropped (the colour below it is kept) and colour profiles are ignored.
"""

import math
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from PIL import Image

from facepairs.errors import ImageProblem
from facepairs.photos.formats import (
    END,
    FRAMES,
    JPEG,
    NO_MARKER,
    SCAN,
    TIFF,
    has_several_scans,
    jpeg_segments,
    tags_overclaim,
)
from facepairs.photos.photo import Photo, damage_as_bad_image, quiet_pillow, undecoded
from facepairs.support.platform import return_freed_memory

BUDGET_PX = 50_000_000  # some 400 MB at worst
LARGE_PIXELS = 8_000_000
# Per pixel: WebP holds three canvases and a copy, AVIF and HEIF their planes and copies, TIFF a
# strip.
CANVASES_COST, STRIP_COST = 4, 2
MAX_16_BIT = 2**16 - 1
KEPT_PIXELS = 4_000_000  # of an image that is kept for the next caller

EXIF_ORIENTATION = 0x0112  # EXIF 2.32, 4.6.4
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
SWAPPING = (TURNS[5], TURNS[6], TURNS[7], TURNS[8])  # the axes
_HUFFMAN_FRAMES = frozenset((0xC0, 0xC1, 0xC2))  # baseline, extended, progressive


class DecodeBudget:
    """A limit on the pixels that all threads decode at the same time.

    Each thread may meet the largest image allowed; without a common limit their memory adds up.
    """

    def __init__(self) -> None:
        self._released = threading.Condition()
        self._used_px = 0

    @contextmanager
    def acquire(self, cost_px: int) -> Iterator[None]:
        """Block until `cost_px` pixels fit into the budget and hold them during the block.

        An image larger than the whole budget is decoded when no other is.
        """
        with self._released:
            self._released.wait_for(
                lambda: not self._used_px or self._used_px + cost_px <= BUDGET_PX
            )
            self._used_px += cost_px
        try:
            if cost_px > LARGE_PIXELS:
                return_freed_memory()
            yield
        finally:
            with self._released:
                self._used_px -= cost_px
                self._released.notify_all()


_budget = DecodeBudget()


def decode_cost_px(photo: Photo, pixels: int) -> int:
    """Return the share of the budget that decoding a photo takes.

    Args:
        photo: What `open_photo` returned; a JPEG of several scans is held at its stored size.
        pixels: Pixels of the decoded image, which may be smaller than the stored one.
    """
    data, stored_pixels = photo.content, photo.width_px * photo.height_px
    if not isinstance(data, bytes):
        return pixels
    if stored_pixels > LARGE_PIXELS and has_several_scans(data):
        return max(pixels, stored_pixels)
    if data[4:8] == b"ftyp" or data[8:12] == b"WEBP":
        return pixels * CANVASES_COST
    return pixels * STRIP_COST if data.startswith(TIFF) else pixels


@contextmanager
def upright(photo: Photo, shrink: float = 1) -> Iterator[tuple[Image.Image, int]]:
    """Decode a whole photo and turn it upright; its memory counts until the block ends.

    Args:
        photo: What `open_photo` returned. It keeps a small image for the next call.
        shrink: The image may be this many times smaller than the photo. It is shrunk by 8, 4, 2 or
            1, as far as that allows: a JPEG while it is decoded (libjpeg's DCT scaling), another
            image by the mean of its pixels.

    Yields:
        The image in mode RGB, and the divisor of its sides, which are rounded up.

    Raises:
        ImageProblem: The photo is damaged.
    """
    divisor = next(number for number in (8, 4, 2, 1) if number <= max(1, shrink))
    if photo.kept and photo.kept[1] == divisor:
        yield photo.kept
        return
    with damage_as_bad_image(photo.name):
        image = undecoded(photo)
        drafted = _shrink_jpeg(image, divisor)
        cost_px = decode_cost_px(photo, math.prod(image.size))
    with _budget.acquire(cost_px):
        with damage_as_bad_image(photo.name):
            image.load()
            turn = turn_of(image)
            if turn is not None:
                image = image.transpose(turn)
            size = (photo.width_px, photo.height_px) if drafted > 1 else image.size
            photo.upright_px = size[::-1] if drafted > 1 and turn in SWAPPING else size
            image = to_rgb(image, photo.name)
            if divisor > drafted:
                image = image.reduce(divisor // drafted)
        if math.prod(image.size) <= KEPT_PIXELS:
            photo.kept = image, divisor
        yield image, divisor


def to_rgb(image: Image.Image, name: str) -> Image.Image:
    """Convert a Pillow image of any mode to 8-bit RGB without alpha.

    Raises:
        ImageProblem: It has 32 bits a pixel in one channel.
    """
    if image.mode.startswith("I"):  # 16 bits; those of a PGM come in 32
        values = np.asarray(image)
        if not values.size or (values.min() >= 0 and values.max() <= MAX_16_BIT):
            high_bytes = (values >> 8).astype(np.uint8)  # Pillow's own conversion clips
            image = Image.fromarray(high_bytes)
    if image.mode in ("I", "F"):
        reason = "32 bits a pixel; convert it to 8 or 16 bits a channel"
        raise ImageProblem(name, "unsupported", reason)
    if image.mode != "RGB" and "transparency" in image.info:
        image = image.convert("RGBA")  # Pillow warns when it converts to RGB directly
    return image if image.mode == "RGB" else image.convert("RGB")


def _shrink_jpeg(image: Image.Image, divisor: int) -> int:
    """Let libjpeg decode a JPEG at a half, a quarter or an eighth of its size, if exact.

    Where a turned photo begins with the end of a stored row or column, that must not be rounded.

    Returns:
        The divisor, 1 for anything but a JPEG.
    """
    stored = image.width
    rounded = any(side % divisor for side in image.size)
    if divisor == 1 or (rounded and turn_of(image) is not None):
        return 1
    width, height = (max(1, side // divisor) for side in image.size)
    drafted = image.draft(image.mode, (width, height))
    return round(stored / drafted[1][2]) if drafted else 1


def is_tf_decodable(photo: Photo) -> bool:
    """Return whether TensorFlow decodes an image exactly as Pillow does, with little memory.

    That is a JPEG with Huffman coding, 1 or 3 components and an end marker, and not a large one of
    several scans. It may be stored turned. Caches hold the answer: change
    `photo_record.FORMAT` with it.

    Args:
        photo: What `open_photo` returned for a file or its bytes; it was decoded without an error.
    """
    data = photo.content
    if not isinstance(data, bytes) or not data.startswith(JPEG):
        return False
    scans = pixels = 0
    marker = NO_MARKER
    for marker, start, _, _ in jpeg_segments(data):
        scans += marker == SCAN
        if marker in FRAMES:  # ITU-T T.81, B.2.2
            height, width, components = struct.unpack_from(">HHB", data, start + 3)
            pixels = width * height
            if marker not in _HUFFMAN_FRAMES or components not in (1, 3):
                return False
    small = scans == 1 or pixels <= LARGE_PIXELS
    return marker == END and small


def turn_of(image: Image.Image) -> Image.Transpose | None:
    """Return how to turn a stored image upright by its EXIF, None when it already is."""
    return TURNS.get(orientation_of(image))


def orientation_of(image: Image.Image) -> int:
    """Return the EXIF orientation of a stored image, 1 to 8; 1 is upright, as without EXIF.

    The EXIF of a PNG may come after its pixels, which are then decoded.
    """
    try:
        if tags_overclaim(exif_block(image.info)):
            return 1
        with quiet_pillow():
            orientation = int(image.getexif().get(EXIF_ORIENTATION, 1))
            return orientation if orientation in TURNS else 1
    except Exception:  # noqa: BLE001 - a broken EXIF block does not make a broken image
        return 1


def exif_block(info: Mapping[Any, Any]) -> bytes:
    """Return the EXIF block that Pillow's `getexif` reads from an image's `info`; b"" for none.

    A PNG may hold it in hexadecimal. Raises ValueError when that is malformed.
    """
    block: bytes | None = info.get("exif")
    hexadecimal: str = info.get("Raw profile type exif", "")
    return bytes.fromhex("".join(hexadecimal.split("\n")[3:])) if block is None else block
