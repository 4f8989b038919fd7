"""Pictures of training and validation pairs for the TensorBoard log, drawn with Pillow."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

MAX_PAIRS = 16

Pixels = npt.NDArray[np.uint8]


def pair_grid(
    images: npt.NDArray[np.floating], genuine: npt.NDArray[np.bool_], notes: Sequence[str] = ()
) -> Pixels:
    """Draw up to 16 pairs with their labels, the left image above the right one.

    Args:
        images: float32[2·B, px, px, 3] in [0, 1], left images before right ones.
        genuine: bool[B].
        notes: B texts that follow the labels, or none.

    Returns:
        uint8[H, W, 3].
    """
    count, px = min(MAX_PAIRS, len(genuine)), images.shape[1]
    pixels = (np.clip(images, 0, 1) * 255).round().astype(np.uint8)
    columns = min(8, count)
    rows = -(-count // columns)
    cell, height = max(px, 96 if notes else 56) + 4, 2 * px + 18
    sheet = Image.new("RGB", (columns * cell, rows * height), "white")
    draw = ImageDraw.Draw(sheet)
    for i in range(count):
        x, y = i % columns * cell + 2, i // columns * height
        label, colour = ("genuine", "#0a7a2f") if genuine[i] else ("impostor", "#b3261e")
        draw.text((x, y + 2), " ".join([label, *notes[i : i + 1]]), fill=colour)
        sheet.paste(Image.fromarray(pixels[i]), (x, y + 16))
        sheet.paste(Image.fromarray(pixels[len(genuine) + i]), (x, y + 16 + px))
    return np.asarray(sheet)
