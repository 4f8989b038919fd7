"""What a photo is like, and what is wrong with it, said as hints: its score is worth less."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.faces.detector import Face
from facepairs.images.photo import Crop

# From the training photos of LFW's View 1, deep-funneled, centre 128 of 250. Light, of 2,500:
# 1 % lie below .298, 1 % above .662. Sharpness, of 800: less than .5 % lie below .555, half below
# .612; of photos shrunk to a third and enlarged again about 95 % do.
DARK, BRIGHT = 0.30, 0.66
BLURRED = 0.555
SMALL = 0.5  # pixels of the photo for a pixel of the crop, along a side

Gray = npt.NDArray[np.float64]


class Hint(NamedTuple):
    """One thing that a photo suffers from: `kind` for scripts, `text` for people."""

    kind: str
    text: str


def gray_of(crop: Crop) -> Gray:
    """Give the luma (ITU-R BT.601) of uint8[H, W, 3]: float64[H, W] in 0 … 1."""
    gray: Gray = crop @ np.array([0.299, 0.587, 0.114]) / 255
    return gray


def light(gray: Gray) -> float:
    """Give the mean of float64[H, W] in 0 … 1."""
    return float(gray.mean())


def sharpness(gray: Gray) -> float:
    """Compare the mean gradient of float64[H, W] with that of a copy of half the size.

    Between 0.5, where nothing is finer than the half-sized copy can show, and about 1 for noise;
    also 1 where no gradient is to be seen, or a side is under 4 pixels.
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


def hints_of(crop: Crop, side_px: float, face: Face | None = None) -> tuple[Hint, ...]:
    """Give the hints on a crop, uint8[crop_px, crop_px, 3], that was cut from `side_px` pixels.

    Kinds: `small`, `blurred`, `dark`, `bright`, and `profile`, which only a `face` can tell.
    """
    crop_px = len(crop)
    gray = gray_of(crop)
    level = light(gray)
    hints = []
    if side_px < SMALL * crop_px:
        hints.append(
            Hint("small", f"too small: {side_px:.0f} pixels for the {crop_px} that the model sees")
        )
    elif sharpness(gray) < BLURRED:
        hints.append(Hint("blurred", "blurred, or enlarged from a smaller photo"))
    if level < DARK:
        hints.append(Hint("dark", f"dark: mean light {level:.2f} of 1"))
    if level > BRIGHT:
        hints.append(Hint("bright", f"too bright: mean light {level:.2f} of 1"))
    if face is not None and face.profile:
        hints.append(Hint("profile", "the face is seen from the side"))
    return tuple(hints)
