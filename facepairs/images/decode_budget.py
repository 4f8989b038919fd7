"""A limit on the pixels that all threads decode at the same time.

Each thread may meet the largest image allowed; without a common limit their memory adds up.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from facepairs.images import jpeg
from facepairs.images.hazards import TIFF
from facepairs.support.platform import return_freed_memory

BUDGET_PX = 50_000_000  # some 400 MB at worst
LARGE_PIXELS = 8_000_000
# Per pixel: WebP holds three canvases and a copy, AVIF and HEIF their planes and copies, TIFF a
# strip.
WEBP_COST, AVIF_COST, TIFF_COST = 4, 4, 2


class DecodeBudget:
    """Counts the pixels that are being decoded; a thread that would exceed the budget waits."""

    def __init__(self) -> None:
        self._released = threading.Condition()
        self._used_px = 0
        self._thread = threading.local()

    @contextmanager
    def acquire(self, cost_px: int) -> Iterator[None]:
        """Block until `cost_px` pixels fit into the budget and hold them during the block.

        An image larger than the whole budget is decoded when no other is. A thread that already
        holds a share, for the same image, does not get a second one.
        """
        if not cost_px or getattr(self._thread, "holds", False):
            yield
            return
        with self._released:
            self._released.wait_for(
                lambda: not self._used_px or self._used_px + cost_px <= BUDGET_PX
            )
            self._used_px += cost_px
        if cost_px > LARGE_PIXELS:
            return_freed_memory()
        self._thread.holds = True
        try:
            yield
        finally:
            self._thread.holds = False
            with self._released:
                self._used_px -= cost_px
                self._released.notify_all()


decode_budget = DecodeBudget()


def decode_cost_px(data: object, pixels: int, stored_pixels: int) -> int:
    """Return what decoding an image costs of the budget.

    Args:
        data: The file's bytes; anything else is decoded already.
        pixels: Pixels of the decoded image, which may be smaller than the stored one.
        stored_pixels: Pixels of the stored image; a JPEG of several scans is held at this size.
    """
    if not isinstance(data, bytes):
        return pixels
    if stored_pixels > LARGE_PIXELS and jpeg.has_several_scans(data):
        return max(pixels, stored_pixels)
    if data.startswith(TIFF):
        return pixels * TIFF_COST
    if data[4:8] == b"ftyp":
        return pixels * AVIF_COST
    return pixels * WEBP_COST if data[8:12] == b"WEBP" else pixels
