"""JPEG files that are written whole, or raise."""

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image


def write_jpeg(path: Path, pixels: npt.NDArray[np.uint8], quality: int) -> None:
    """Write uint8[H, W, 3] or [H, W]; raises OSError.

    Where Pillow itself writes to a file, it does not look how much of it was written: on a full
    disk a file may be cut without a word.
    """
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "JPEG", quality=quality)
    path.write_bytes(data.getbuffer())
