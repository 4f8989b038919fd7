"""EXIF orientation: which way up a photo is stored, and how to turn it upright."""

import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from PIL import Image

from facepairs.images.hazards import tags_overclaim

EXIF_ORIENTATION = 0x0112  # EXIF 2.32, 4.6.4
UPRIGHT = 1


class Turn(NamedTuple):
    """How to turn a stored image upright, and which stored axes that reverses."""

    transpose: Image.Transpose
    reverses_x: bool
    reverses_y: bool


TURNS = {  # by EXIF orientation
    2: Turn(Image.Transpose.FLIP_LEFT_RIGHT, True, False),
    3: Turn(Image.Transpose.ROTATE_180, True, True),
    4: Turn(Image.Transpose.FLIP_TOP_BOTTOM, False, True),
    5: Turn(Image.Transpose.TRANSPOSE, False, False),
    6: Turn(Image.Transpose.ROTATE_270, False, True),
    7: Turn(Image.Transpose.TRANSVERSE, True, True),
    8: Turn(Image.Transpose.ROTATE_90, True, False),
}
_warnings_lock = threading.Lock()


@contextmanager
def quiet_pillow() -> Iterator[None]:
    """Suppress Pillow's warnings (large images, odd EXIF); the errors raised here say enough.

    `catch_warnings` changes the whole process in Python before 3.14, hence the lock; only short
    steps run inside, never a decode.
    """
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def read_orientation(image: Image.Image) -> int:
    """Return the EXIF orientation of an image, 1 to 8; 1 (upright) when it has none that is valid.

    Pillow may warn about odd EXIF; see `quiet_pillow`.
    """
    try:
        if tags_overclaim(exif_block(image.info)):
            return UPRIGHT
        value = int(image.getexif().get(EXIF_ORIENTATION, UPRIGHT))
    except Exception:  # noqa: BLE001 - a broken EXIF block does not make a broken image
        return UPRIGHT
    return value if 1 <= value <= 8 else UPRIGHT


def turn_of(image: Image.Image) -> Turn | None:
    """Return how to turn a stored image upright, None when it already is."""
    with quiet_pillow():
        return TURNS.get(read_orientation(image))


def exif_block(info: Mapping[Any, Any]) -> bytes:
    """Return the EXIF block that Pillow's `getexif` reads from an image's `info`; b"" for none.

    A PNG may hold it in hexadecimal. Raises ValueError when that is malformed.
    """
    block: bytes | None = info.get("exif")
    hexadecimal: str = info.get("Raw profile type exif", "")
    return bytes.fromhex("".join(hexadecimal.split("\n")[3:])) if block is None else block
