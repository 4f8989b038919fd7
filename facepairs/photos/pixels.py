"""Convert images of any mode and arrays of any kind to uint8 RGB.

Only colours count: alpha is dropped (the colour below it is kept) and colour profiles are ignored.
"""

import os
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from facepairs.choices import MAX_MEGAPIXELS
from facepairs.errors import BadConfig, ImageProblem

MAX_PIXELS = 52_000_000  # some 730 MB at worst while an image is decoded; phones take 50.3
MAX_16_BIT = 2**16 - 1

Pixels = npt.NDArray[np.uint8]


def max_pixels(default: int = MAX_PIXELS) -> int:
    """Return how many pixels an image may have: what the user allows, else `default`.

    Raises:
        BadConfig: The limit is not a whole number of megapixels.
    """
    millions = os.environ.get(MAX_MEGAPIXELS, "")
    if not millions:
        return default
    if not millions.isdecimal() or not int(millions):
        number = f"a limit of {millions!r} megapixels; give a whole number from 1 on"
        raise BadConfig(f"{number} ({MAX_MEGAPIXELS})", "max_megapixels")
    return 1_000_000 * int(millions)


def check_size(size: tuple[int, int], name: str, limit: int | None = None) -> None:
    """Check the size of an image.

    Args:
        size: Width and height in pixels.
        name: What messages call the image.
        limit: How many pixels are allowed; by default `max_pixels`.

    Raises:
        ImageProblem: It has no pixels, or more than `limit`.
    """
    pixels, limit = size[0] * size[1], limit or max_pixels()
    if pixels > limit:
        raise too_many_pixels(name, f" ({size[0]} x {size[1]})", limit)
    if not pixels:
        reason = f"no pixels ({size[0]} x {size[1]}); choose another image"
        raise ImageProblem(name, "unreadable", reason)


def too_many_pixels(name: str, size: str = "", limit: int | None = None) -> ImageProblem:
    """Return the error for an image of more than `limit` pixels.

    Args:
        name: What the message calls the image.
        size: The size in words, or "".
        limit: How many pixels are allowed; by default `max_pixels`.
    """
    most = (limit or max_pixels()) // 1_000_000
    allow = f"allow more megapixels (--max-megapixels or {MAX_MEGAPIXELS})"
    reason = f"over {most} megapixels{size}; use a smaller image, or {allow}"
    return ImageProblem(name, "too_large", reason)


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


def array_pixels(array: npt.NDArray[Any], name: str) -> Pixels:
    """Convert an array to uint8[H, W, 3].

    Args:
        array: [H, W] or [H, W, 1, 3 or 4] of uint8, uint16 (the high byte is used) or floats in
            [0, 1].
        name: What messages call it.

    Raises:
        ImageProblem: The array has another shape, dtype or range, or too many pixels or none.
    """
    if not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (1, 3, 4))):
        use = "use [height, width] or [height, width, 1, 3 or 4]"
        raise ImageProblem(name, "unsupported", f"array of shape {array.shape}; {use}")
    check_size((array.shape[1], array.shape[0]), name)
    array = _to_eight_bits(array, name)
    colour = array[..., :3] if array.ndim == 3 else array[..., None]
    return np.ascontiguousarray(np.broadcast_to(colour, (*array.shape[:2], 3)))


def _to_eight_bits(array: npt.NDArray[Any], name: str) -> Pixels:
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.uint16:
        return (array >> 8).astype(np.uint8)
    if not np.issubdtype(array.dtype, np.floating):
        reason = f"array of {array.dtype}; use uint8, uint16 or floats in [0, 1]"
        raise ImageProblem(name, "unsupported", reason)
    if not (array.min() >= 0 and array.max() <= 1):  # false for NaN too
        reason = "floats outside [0, 1]; divide by 255, or use uint8"
        raise ImageProblem(name, "unsupported", reason)
    return np.round(array * 255).astype(np.uint8)
