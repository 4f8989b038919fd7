"""`Verdict`: what comparing two faces gave, with the threshold and the errors to expect there."""

from dataclasses import dataclass, field
from typing import Any

from facepairs.bundles.measured import EQUAL_PRIORS, describe_prior
from facepairs.bundles.rates import OperatingPoint
from facepairs.errors import BadData
from facepairs.faces.align import AlignedFace
from facepairs.verification.loading import Model

Rows = list[tuple[str, str]]  # label and text

NOT_CONFIRMED = "more likely one person than two, but not by this standard"


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


@dataclass(frozen=True)
class Verdict:
    """The result of `Verifier.verify`; true in an `if` when both photos show one person.

    Attributes:
        same: score >= threshold; None without a threshold.
        probability: P(same person) at `prior`; None without a calibration, and for a score that was
            picked as the best of several, whose probability is not that of a single pair.
        score: The network's score; higher is more alike.
        point: The threshold on the score, what it promises, and the errors measured at it.
        prior: Share of genuine pairs among those that are compared, for which `probability` holds.
        comparisons: Of how many comparisons this is the best.
        left: The face of the first photo and its quality hints; None for a score alone.
        right: The face of the second photo. Equality of verdicts ignores both faces.
    """

    same: bool | None
    probability: float | None
    score: float
    point: OperatingPoint
    prior: float = EQUAL_PRIORS
    comparisons: int = 1
    left: AlignedFace | None = field(default=None, compare=False, repr=False)
    right: AlignedFace | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        model: Model,
        score: float,
        point: OperatingPoint,
        prior: float = EQUAL_PRIORS,
        comparisons: int = 1,
    ) -> "Verdict":
        """Return what a model's score means: does it reach a threshold, and its probability."""
        calibration = model.calibration if comparisons == 1 else None
        probability = float(calibration.probability(score, prior)) if calibration else None
        same = None if point.threshold is None else score >= point.threshold
        return cls(same, probability, score, point, prior, comparisons)

    def __bool__(self) -> bool:
        """Return `same`; raise BadData where it is None. A verdict must not be true by default."""
        if self.same is None:
            raise BadData("no threshold, so no verdict; give one, or look at the score")
        return self.same

    @property
    def threshold(self) -> float | None:
        """The threshold on the score; None for an external embedder without one."""
        return self.point.threshold

    @property
    def words(self) -> str:
        """`same person`, `different people`, or `not confirmed`, in between.

        That is a score below the threshold, although one person is more likely than two.
        Of several comparisons it is `match` or `no match`.
        """
        if self.same is None:
            return "none: no threshold"
        if self.comparisons > 1:
            return "match" if self.same else "no match"
        if self.same:
            return "same person"
        likely = self.probability is not None and self.probability >= 0.5
        return "not confirmed" if likely else "different people"

    def describe_probability(self) -> str:
        """Return the probability and its prior in words: `0.970 (at equal priors)`."""
        if self.comparisons > 1:
            return f"none: this is the best of {self.comparisons:,} comparisons"
        if self.probability is None:
            return "none: not calibrated"
        edge = f"{self.probability:.3f}"
        edge = {"1.000": "above 0.999", "0.000": "below 0.001"}.get(edge, edge)
        return f"{edge} (at {describe_prior(self.prior)})"

    @property
    def expected_matches(self) -> ExpectedMatches | None:
        """How many of the comparisons strangers would match by chance; None where not known."""
        return expected_matches(self.point, self.comparisons)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: both faces as the network saw them, and the verdict."""
        from facepairs.support.html import html_image, html_table

        faces = [face.crop for face in (self.left, self.right) if face is not None]
        images = (html_image(crop, side) for crop, side in zip(faces, "AB", strict=False))
        return " ".join(images) + html_table(verdict_rows(self))

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict: verdict, probability, score, operating point and both faces."""
        return {
            "verdict": None if self.same is None else self.words,
            "same": self.same,
            "probability": self.probability,
            "prior": self.prior,
            "score": self.score,
            "operating_point": self.point.to_json(),
            "faces": self.faces_json(),
        }

    def faces_json(self) -> dict[str, Any]:
        """Return a plain dict of left and right, each as `AlignedFace.to_json` or None."""
        sides = {"left": self.left, "right": self.right}
        return {side: face.to_json() if face else None for side, face in sides.items()}


def verdict_rows(verdict: Verdict) -> Rows:
    """Return the verdict on two photos, the best of some comparisons, and the face of each."""
    unsure = verdict.words == "not confirmed"
    sides = (("A", verdict.left), ("B", verdict.right))
    return [
        ("verdict", verdict.words + (f": {NOT_CONFIRMED}" if unsure else "")),
        *detail_rows(verdict),
        *((name, face.describe()) for name, face in sides if face),
    ]


def detail_rows(verdict: Verdict) -> Rows:
    """Return the probability, the errors to expect, and the score."""
    several = verdict.comparisons > 1
    return [
        ("probability", verdict.describe_probability()),
        *(_false_match_rows(verdict) if several else error_rows(verdict.point)),
        ("score", f"{verdict.score:.4f}{_threshold(verdict.point)}"),
    ]


def error_rows(point: OperatingPoint) -> Rows:
    """Return the errors at the threshold, strangers and genuine pairs on a line each."""
    first, *others = point.errors.lines()
    known = "at this threshold " if point.errors.fmr else ""
    return [("errors", known + first), *(("", line) for line in others)]


def _false_match_rows(verdict: Verdict) -> Rows:
    expected = verdict.expected_matches
    text = expected.describe("comparisons") if expected else verdict.point.describe()
    return [("false matches", text)]


def _threshold(point: OperatingPoint) -> str:
    if point.threshold is None:
        return ""
    return f" (threshold {point.threshold:.4f}: {point.label})"
