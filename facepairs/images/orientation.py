"""Which way up a photo is, as its EXIF says, and how it is turned."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from facepairs.images.bombs import exif_of, overclaims

EXIF_ORIENTATION = 0x0112


class Turn(NamedTuple):
    """What brings a stored image upright, and which stored axes it reverses."""

    step: Image.Transpose
    reverses_x: bool
    reverses_y: bool


_TURNS = {  # by EXIF orientation (Exif 2.32, tag 274)
    2: Turn(Image.Transpose.FLIP_LEFT_RIGHT, True, False),
    3: Turn(Image.Transpose.ROTATE_180, True, True),
    4: Turn(Image.Transpose.FLIP_TOP_BOTTOM, False, True),
    5: Turn(Image.Transpose.TRANSPOSE, False, False),
    6: Turn(Image.Transpose.ROTATE_270, False, True),
    7: Turn(Image.Transpose.TRANSVERSE, True, True),
    8: Turn(Image.Transpose.ROTATE_90, True, False),
}


_AXES = {  # which way rows and columns go once the axes are swapped, or not
    Image.Transpose.FLIP_LEFT_RIGHT: (1, -1, False),
    Image.Transpose.ROTATE_180: (-1, -1, False),
    Image.Transpose.FLIP_TOP_BOTTOM: (-1, 1, False),
    Image.Transpose.TRANSPOSE: (1, 1, True),
    Image.Transpose.ROTATE_270: (1, -1, True),
    Image.Transpose.TRANSVERSE: (-1, -1, True),
    Image.Transpose.ROTATE_90: (-1, 1, True),
}


_warnings_lock = threading.Lock()


@contextmanager
def quiet_pillow() -> Iterator[None]:
    """Keep Pillow's warnings (bombs, odd EXIF) off stderr: errors here speak for themselves.

    `catch_warnings` changes the whole process in Python before 3.14, hence the lock; only short
    steps run inside, never a decode.
    """
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def turn_of(image: Image.Image) -> Turn | None:
    """Give what brings a stored image upright, None where it is or does not tell."""
    try:
        if overclaims(exif_of(image.info)):
            return None
        with quiet_pillow():
            return _TURNS.get(int(image.getexif().get(EXIF_ORIENTATION, 1)))
    except Exception:  # noqa: BLE001 - broken EXIF says nothing of the pixels
        return None


def turned(pixels: npt.NDArray[np.uint8], step: Image.Transpose) -> npt.NDArray[np.uint8]:
    """Do to an array what Pillow's `transpose` does to an image."""
    rows, columns, swaps = _AXES[step]
    upright = pixels.swapaxes(0, 1) if swaps else pixels
    return np.ascontiguousarray(upright[::rows, ::columns])
