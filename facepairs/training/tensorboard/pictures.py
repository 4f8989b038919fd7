"""Pictures for the TensorBoard log, drawn with Pillow: grids of pairs, and a ROC curve."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

MAX_PAIRS = 16
ROC_PX, MARGIN_PX = 360, 40
LOWEST_FMR = 1e-3  # left end of the ROC's logarithmic axis

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


def roc_picture(fmr: npt.NDArray[np.floating], tmr: npt.NDArray[np.floating]) -> Pixels:
    """Draw a ROC curve, the false match rate from .001 to 1 on a logarithmic axis.

    Args:
        fmr: float[K], false match rates in the order of their thresholds.
        tmr: float[K], true match rates at the same thresholds.

    Returns:
        uint8[360, 360, 3].
    """
    sheet = Image.new("RGB", (ROC_PX, ROC_PX), "white")
    draw = ImageDraw.Draw(sheet)
    inner_px = ROC_PX - 2 * MARGIN_PX
    decades = -np.log10(LOWEST_FMR)

    def point(one_fmr: float, one_tmr: float) -> tuple[float, float]:
        across = 1 + np.log10(max(one_fmr, LOWEST_FMR)) / decades
        return MARGIN_PX + inner_px * float(across), MARGIN_PX + inner_px * (1 - one_tmr)

    for tick in (0.001, 0.01, 0.1, 1.0):
        draw.line([point(tick, 0), point(tick, 1)], fill="#dddddd")
        draw.text((point(tick, 0)[0] - 12, point(tick, 0)[1] + 6), f"{tick:g}", fill="black")
    for tick in (0, 0.25, 0.5, 0.75, 1.0):
        draw.line([point(LOWEST_FMR, tick), point(1, tick)], fill="#dddddd")
        draw.text((6, point(1, tick)[1] - 6), f"{tick:.2f}", fill="black")
    draw.text((MARGIN_PX, 10), "TAR over FAR, validation pairs", fill="black")
    curve = [point(float(x), float(y)) for x, y in zip(fmr, tmr, strict=True)]
    draw.line(curve, fill="#1f5fbf", width=2)
    return np.asarray(sheet)
