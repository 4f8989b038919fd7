"""Rates in words that need no training in statistics."""

from facepairs.bundles.error_table import MeasuredRate

UNSURE = 2
LARGE = 0.2  # from here on, "1 in 3" would be too coarse


def one_in(rate: MeasuredRate, things: str = "") -> str:
    """Return a rate in words: `1 in 16`, `36 in 100`, or `fewer than 1 in 900`.

    Args:
        rate: The rate with its interval; where nothing was seen, the upper end counts, and where it
            is more than twice the rate, it is named too.
        things: Of what, such as `strangers`.
    """
    of = f" {things}" if things else ""
    if rate.rate >= LARGE:
        return f"{round(100 * rate.rate)} in 100{of}"
    if rate.rate > 0:
        text = f"1 in {_rounded(1 / rate.rate):,}{of}"
        wide = rate.high > UNSURE * rate.rate
        return f"{text} (at most 1 in {_rounded(1 / rate.high):,})" if wide else text
    return f"fewer than 1 in {_rounded(1 / rate.high):,}{of}" if rate.high > 0 else f"none{of}"


def _rounded(number: float) -> int:
    """Round to two significant digits."""
    return int(float(f"{number:.2g}"))
