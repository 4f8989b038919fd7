"""EXIF orientation: which way up a photo is stored, and how to turn it upright."""

import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from facepairs.images.hazards import tags_overclaim
from facepairs.images.warp import Similarity

EXIF_ORIENTATION = 0x0112  # EXIF 2.32, 4.6.4
UPRIGHT = 1
SWAPPING = (  # the axes
    Image.Transpose.TRANSPOSE,
    Image.Transpose.ROTATE_270,
    Image.Transpose.TRANSVERSE,
    Image.Transpose.ROTATE_90,
)


class Turn(NamedTuple):
    """How to turn a stored image upright, and which stored axes that reverses."""

    transpose: Image.Transpose
    reverses_x: bool
    reverses_y: bool

    @property
    def swaps(self) -> bool:
        """Whether the upright image is as wide as the stored one is high."""
        return self.transpose in SWAPPING

    def to_upright(self, width: int, height: int) -> Similarity:
        """Return the map from the stored image, of that size, to the upright one."""
        signs = np.array([-1.0 if self.reverses_x else 1.0, -1.0 if self.reverses_y else 1.0])
        offset = (1 - signs) / 2 * (width - 1, height - 1)
        matrix = np.diag(signs)
        if self.swaps:
            matrix, offset = matrix[::-1], offset[::-1]
        return Similarity(matrix, offset)


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
