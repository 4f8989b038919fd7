"""How many strangers match by chance when one face is compared with many."""

from dataclasses import dataclass
from typing import Any

from facepairs.bundles.rates import OperatingPoint


@dataclass(frozen=True)
class ExpectedMatches:
    """The number of false matches to expect among some comparisons.

    Attributes:
        comparisons: How many faces are compared.
        expected: The false match rate times their number.
        low: The same with the lower end of the rate's interval of 95 %.
        high: The same with its upper end.
    """

    comparisons: int
    expected: float
    low: float
    high: float

    def describe(self, among: str) -> str:
        """Return in words: `about 0.6 expected among 622 photos, at most 1.5`."""
        return (
            f"about {_rounded(self.expected)} expected among {self.comparisons:,} {among}, at most "
            f"{_rounded(self.high)}; more where people look alike"
        )


def expected_matches(point: OperatingPoint, comparisons: int) -> ExpectedMatches | None:
    """Return how many of some comparisons with strangers would match; None where not known."""
    rate = point.errors.fmr
    if rate is None:
        return None
    return ExpectedMatches(comparisons, *(comparisons * x for x in (rate.value, *rate.interval)))


def expected_json(matches: ExpectedMatches | None) -> dict[str, Any]:
    """Return the fields of JSON; what is not known is None."""
    return {
        "expected_false_matches": matches.expected if matches else None,
        "expected_false_matches_interval": [matches.low, matches.high] if matches else None,
    }


def _rounded(number: float) -> str:
    """Return a number with two significant digits, without an exponent."""
    return f"{number:,.0f}" if number >= 10 else f"{float(f'{number:.2g}'):g}"
