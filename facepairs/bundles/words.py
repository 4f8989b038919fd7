"""Rates in words that need no training in statistics."""

from facepairs.bundles.error_table import MeasuredRate

LARGE = 0.2  # from here on, "1 in 3" would be too coarse


def one_in(rate: MeasuredRate) -> str:
    """Return a rate in words: `1 in 16`, `36 in 100`, or `fewer than 1 in 900`.

    Args:
        rate: The rate with its interval; where nothing was seen, the upper end counts.
    """
    if rate.rate >= LARGE:
        return f"{round(100 * rate.rate)} in 100"
    if rate.rate > 0:
        return f"1 in {_rounded(1 / rate.rate):,}"
    return f"fewer than 1 in {_rounded(1 / rate.high):,}" if rate.high > 0 else "none"


def _rounded(number: float) -> int:
    """Round to two significant digits."""
    return int(float(f"{number:.2g}"))
