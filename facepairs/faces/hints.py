"""Measure light and sharpness of a photo, and list what makes its score less reliable."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.faces.detector import Face
from facepairs.images.crop import Crop

# Measured on training photos of LFW's View 1, deep-funneled, centre 128 of 250. Light (2,500
# photos): 1 % are below .298, 1 % above .662. Sharpness (800 photos): less than .5 % are below
# .555, half below .612; of photos shrunk to a third and enlarged again, about 95 % are below .555.
DARK, BRIGHT = 0.30, 0.66
BLURRED = 0.555
PROFILE_YAW = 0.35  # offset of the nose tip, in eye distances
SMALL = 0.5  # pixels of the photo per pixel of the crop, along a side

Gray = npt.NDArray[np.float64]


class Hint(NamedTuple):
    """One weakness of a photo: `kind` for programs, `text` for people."""

    kind: str
    text: str


def gray_of(crop: Crop) -> Gray:
    """Return the luma (ITU-R BT.601) of uint8[H, W, 3] as float64[H, W] in [0, 1]."""
    gray: Gray = crop @ np.array([0.299, 0.587, 0.114]) / 255
    return gray


def brightness(gray: Gray) -> float:
    """Return the mean of float64[H, W] in [0, 1]."""
    return float(gray.mean())


def sharpness(gray: Gray) -> float:
    """Return the mean gradient of an image divided by that of a copy of half its size.

    Args:
        gray: float64[H, W] in [0, 1].

    Returns:
        From 0.5, when the image shows no more detail than the copy, to about 1 for noise. 1 also
        without any gradient, and when a side is under 4 pixels.
    """
    if min(gray.shape) < 4:
        return 1.0
    height, width = (length // 2 * 2 for length in gray.shape)
    half = gray[:height, :width].reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))
    coarse = _gradient(half)
    return _gradient(gray) / coarse if coarse > 1e-6 else 1.0


def _gradient(gray: Gray) -> float:
    down, right = np.gradient(gray)
    return float(np.hypot(down, right).mean())


def photo_hints(crop: Crop, source_px: float, face: Face | None = None) -> tuple[Hint, ...]:
    """Return what makes a photo hard to judge.

    Args:
        crop: uint8[crop_px, crop_px, 3].
        source_px: Side of the square in the photo that the crop was resized from.
        face: The face as it was detected; only it can give the hint `profile`.

    Returns:
        Hints of the kinds `small`, `blurred`, `dark`, `bright` and `profile`.
    """
    crop_px = len(crop)
    gray = gray_of(crop)
    light = brightness(gray)
    hints = []
    if source_px < SMALL * crop_px:
        text = f"too small: {source_px:.0f} pixels for the {crop_px} that the model sees"
        hints.append(Hint("small", text))
    elif sharpness(gray) < BLURRED:
        hints.append(Hint("blurred", "blurred, or enlarged from a smaller photo"))
    if light < DARK:
        hints.append(Hint("dark", f"dark: mean light {light:.2f} of 1"))
    if light > BRIGHT:
        hints.append(Hint("bright", f"too bright: mean light {light:.2f} of 1"))
    if face is not None and abs(face.yaw) > PROFILE_YAW:
        hints.append(Hint("profile", "the face is seen from the side"))
    return tuple(hints)
