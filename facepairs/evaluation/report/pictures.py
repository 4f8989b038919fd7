"""Photos of wrongly decided pairs, small and inside the page itself."""

import base64
import io
from pathlib import Path

from PIL import Image

from facepairs.errors import BadImage
from facepairs.images.photo import Framing, load_crop

WHOLE = Framing(frame_px=144, crop_px=144)  # the whole centre square, at 144 pixels
QUALITY = 80


def data_uri(path: Path) -> str | None:
    """Give a photo as a `data:` address of a small JPEG, None where it cannot be read.

    Encoded anew from its pixels alone: what else a file says, such as where it was taken, stays
    behind.
    """
    try:
        pixels = load_crop(path, WHOLE)
    except BadImage:
        return None
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode("ascii")
