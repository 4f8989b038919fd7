"""Pictures for the TensorBoard log, drawn with Pillow: grids of pairs, and a ROC curve."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

MOST_PAIRS = 16
ROC_PX, MARGIN_PX = 360, 40
LOWEST_FAR = 1e-3  # left end of the ROC's logarithmic axis

Pixels = npt.NDArray[np.uint8]


def pair_grid(
    seen: npt.NDArray[np.floating], genuine: npt.NDArray[np.bool_], notes: Sequence[str] = ()
) -> Pixels:
    """Draw up to 16 pairs, one image above the other, with their labels: uint8[H, W, 3].

    `seen` float32[2·B, px, px, 3] in [0, 1], lefts before rights; `genuine` bool[B]; `notes` follow
    the labels.
    """
    count, px = min(MOST_PAIRS, len(genuine)), seen.shape[1]
    images = (np.clip(seen, 0, 1) * 255).round().astype(np.uint8)
    columns = min(8, count)
    rows = -(-count // columns)
    cell, height = max(px, 96 if notes else 56) + 4, 2 * px + 18
    sheet = Image.new("RGB", (columns * cell, rows * height), "white")
    draw = ImageDraw.Draw(sheet)
    for i in range(count):
        x, y = i % columns * cell + 2, i // columns * height
        label, colour = ("genuine", "#0a7a2f") if genuine[i] else ("impostor", "#b3261e")
        draw.text((x, y + 2), " ".join([label, *notes[i : i + 1]]), fill=colour)
        sheet.paste(Image.fromarray(images[i]), (x, y + 16))
        sheet.paste(Image.fromarray(images[len(genuine) + i]), (x, y + 16 + px))
    return np.asarray(sheet)


def roc_picture(far: npt.NDArray[np.floating], tar: npt.NDArray[np.floating]) -> Pixels:
    """Draw TAR over FAR, the latter from .001 to 1 on a logarithmic axis: uint8[360, 360, 3].

    `far` and `tar` float[K] in [0, 1], in the order of the thresholds, rising or falling.
    """
    sheet = Image.new("RGB", (ROC_PX, ROC_PX), "white")
    draw = ImageDraw.Draw(sheet)
    inner = ROC_PX - 2 * MARGIN_PX
    decades = -np.log10(LOWEST_FAR)

    def at(one_far: float, one_tar: float) -> tuple[float, float]:
        along = 1 + np.log10(max(one_far, LOWEST_FAR)) / decades
        return MARGIN_PX + inner * float(along), MARGIN_PX + inner * (1 - one_tar)

    for tick in (0.001, 0.01, 0.1, 1.0):
        draw.line([at(tick, 0), at(tick, 1)], fill="#dddddd")
        draw.text((at(tick, 0)[0] - 12, at(tick, 0)[1] + 6), f"{tick:g}", fill="black")
    for tick in (0, 0.25, 0.5, 0.75, 1.0):
        draw.line([at(LOWEST_FAR, tick), at(1, tick)], fill="#dddddd")
        draw.text((6, at(1, tick)[1] - 6), f"{tick:.2f}", fill="black")
    draw.text((MARGIN_PX, 10), "TAR over FAR, validation pairs", fill="black")
    points = [at(float(x), float(y)) for x, y in zip(far, tar, strict=True)]
    draw.line(points, fill="#1f5fbf", width=2)
    return np.asarray(sheet)
