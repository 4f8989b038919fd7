"""Error rates, and the thresholds at which they were measured, as files, JSON and Python have them.

Bundles, evaluations, verdicts and the server use the same types: `Rate`, `Errors` and
`OperatingPoint`. What is not known is None, and left out of JSON. `ErrorTable` has the errors of a
bundle at every threshold, so that every verdict can name them.

Strangers who look alike pass more often than strangers at random, so both rates are there.
Look-alikes are pairs of different people whose photos lie in the same cluster of embeddings, see
`evaluation.lookalikes`.
"""

from bisect import bisect_right
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from facepairs.data.minimums import MIN_EXPECTED_FALSE_ACCEPTS
from facepairs.errors import BadBundle
from facepairs.support.words import counted

LARGEST = 1e300
Finite = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0)]
Among = Literal["strangers", "look-alikes"]
Row = tuple[Share, Share, Share]
"""A rate, and both ends of its interval of 95 %."""
Rows = tuple[Row, ...]
BALANCED, GIVEN, GALLERY, CHOSEN = "balanced", "threshold", "gallery", "chosen"
LABELS = {
    GIVEN: "the threshold given",
    GALLERY: "by the gallery's size",
    CHOSEN: "chosen on other pairs",
}
SAMPLE_SHARES = (0.1, 0.5, 0.9)  # of `SampleFigures`
UNSURE = 2
LARGE = 0.2  # from here on, "1 in 3" would be too coarse


def smallest_fmr(impostor_pairs: int) -> float:
    """Return the smallest false match rate that a number of pairs supports."""
    return MIN_EXPECTED_FALSE_ACCEPTS / max(1, impostor_pairs)


class Rate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A measured share.

    Attributes:
        value: The share, 0 to 1.
        interval: Its interval of 95 %.
        count: How often it was seen.
        of: Among how many.
        standard_error: Of a mean over folds.
    """

    value: Share
    interval: tuple[Share, Share]
    count: Count | None = None
    of: Count | None = None
    standard_error: float | None = None

    # `server/static/words.js` says the same on the page.
    def one_in(self, things: str = "") -> str:
        """Return the rate in words: `1 in 16`, `36 in 100`, or `fewer than 1 in 900`.

        Where nothing was seen, the upper end of the interval counts; where it is more than twice
        the rate, it is named too.

        Args:
            things: Of what, such as `strangers`.
        """
        of, high = f" {things}" if things else "", self.interval[1]
        if self.value > 0:
            is_wide = self.value < LARGE and high > UNSURE * self.value
            return f"{_in_words(self.value)}{of}" + (
                f" (at most {_in_words(high)})" if is_wide else ""
            )
        return f"fewer than {_in_words(high)}{of}" if high > 0 else f"none{of}"


def _in_words(share: float) -> str:
    """Return a share above 0 in words, with two significant digits at most."""
    if share >= LARGE:
        return f"{round(100 * share)} in 100"
    if share > 0.1:  # two digits, rounded a second time, would be off by one
        return f"1 in {round(1 / share)}"
    return f"1 in {int(float(f'{1 / share:.2g}')):,}"


class Errors(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The errors of decisions.

    Attributes:
        fmr: Share of strangers accepted, impostor pairs drawn at random.
        lookalike_fmr: Share of strangers accepted among those who look alike.
        fnmr: Share of genuine pairs missed.
        gfmr: Generalised FMR: photos without a usable face count as rejected; only where there are
            some.
        gfnmr: Generalised FNMR, likewise: share of genuine pairs missed or not acquired.
        fta: Failures to acquire: share of the photos without a usable face, in a group of people.
        people: Number of people in the pairs.
        measured_on: The pairs, in words.
    """

    fmr: Rate | None = None
    lookalike_fmr: Rate | None = None
    fnmr: Rate | None = None
    gfmr: Rate | None = None
    gfnmr: Rate | None = None
    fta: Rate | None = None
    people: Count | None = None
    measured_on: str = ""

    def lines(self) -> list[str]:
        """Return the errors in words, first of strangers and then of genuine pairs."""
        if self.fmr is None:
            return ["unknown: this model brings no measured errors"]
        lines = [f"{self.fmr.one_in('strangers')} would pass"]
        if self.lookalike_fmr is not None:
            lines[0] += f", {self.lookalike_fmr.one_in('of those who look alike')}"
        if self.fnmr is not None:
            lines.append(f"{self.fnmr.one_in('genuine pairs')} would be missed")
        if self.measured_on:
            lines[-1] += f" ({self.measured_on})"
        return lines


class GroupingErrors(msgspec.Struct, frozen=True, kw_only=True):
    """How often grouping puts strangers together; see `grouping.linkage`.

    Attributes:
        people_pairs: Number of pairs of people, among whose photos it was measured.
        cuts: float64[C], rising: heights up to which groups are merged.
        linked: C shares of their pairs of photos that end up in one group.
        mixed: C numbers of groups of more than one person, per pair of groups.
    """

    people_pairs: Count
    cuts: Annotated[tuple[Finite, ...], Meta(min_length=1, max_length=10_000)]
    linked: tuple[Share, ...]
    mixed: tuple[Share, ...]


class SampleFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What photos look like, one of each person, without labels; see `evaluation.drift`.

    Attributes:
        people: Number of people.
        scores: The scores that 10, 50 and 90 % of the pairs of strangers are below.
        sides_px: The sides of faces that 10, 50 and 90 % of the photos are below; None for whole
            images.
        hints: Share of the photos with each kind of hint.
    """

    people: Annotated[int, Meta(ge=2)]
    scores: tuple[Finite, Finite, Finite]
    sides_px: tuple[Finite, Finite, Finite] | None
    hints: dict[str, Share]


class ErrorTable(msgspec.Struct, frozen=True, kw_only=True):
    """Errors at rising thresholds, measured on people that the network was not trained on.

    Attributes:
        measured_on: The pairs, in words.
        people: Number of people in the pairs; None where it is not known.
        genuine_pairs: Number of genuine pairs.
        impostor_pairs: Number of impostor pairs.
        lookalike_pairs: Number of impostor pairs that look alike; None where it is not known.
        thresholds: float[T], rising; at the first everything is accepted, at the last nothing.
        fmr: T rates with their intervals, among all impostor pairs.
        lookalike_fmr: The same among those that look alike; None where these are not known.
        fnmr: The same among genuine pairs.
        grouping: What was measured of groups of faces; None where it was not.
        sample: What the photos look like; None where it was not measured.

    Raises:
        BadBundle: The columns differ in length, or thresholds do not rise.
    """

    measured_on: str
    people: Count | None
    genuine_pairs: Count
    impostor_pairs: Count
    lookalike_pairs: Count | None
    thresholds: Annotated[tuple[Finite, ...], Meta(min_length=1, max_length=10_000)]
    fmr: Rows
    lookalike_fmr: Rows | None
    fnmr: Rows
    grouping: GroupingErrors | None = None
    sample: SampleFigures | None = None

    def __post_init__(self) -> None:
        """Refuse columns that do not fit together."""
        columns = [self.fmr, self.fnmr]
        if self.lookalike_fmr is not None:
            columns.append(self.lookalike_fmr)
        rises = all(a < b for a, b in zip(self.thresholds, self.thresholds[1:], strict=False))
        if not rises or any(len(column) != len(self.thresholds) for column in columns):
            raise BadBundle(
                "errors need one rate of each kind for each threshold, and rising thresholds; "
                "calibrate again"
            )

    def at(self, threshold: float) -> Errors:
        """Return the errors at a threshold.

        Between two thresholds of the table, rates and both ends of their intervals are interpolated
        linearly, so no threshold has a rate beside those measured around it.
        """
        threshold, last = float(threshold), len(self.thresholds) - 1
        below = max(0, bisect_right(self.thresholds, threshold) - 1)
        above = min(below + 1, last)
        low, high = self.thresholds[below], self.thresholds[above]
        share = (threshold - low) / (high - low) if low < threshold < high else 0.0

        def rate(rows: Rows, pairs: int | None) -> Rate:
            value, *ends = (
                one + share * (other - one)
                for one, other in zip(rows[below], rows[above], strict=True)
            )
            return Rate(value, (ends[0], ends[1]), of=pairs)

        alike = self.lookalike_fmr
        return Errors(
            fmr=rate(self.fmr, self.impostor_pairs),
            lookalike_fmr=rate(alike, self.lookalike_pairs) if alike else None,
            fnmr=rate(self.fnmr, self.genuine_pairs),
            people=self.people,
            measured_on=self.measured_on,
        )

    def threshold_for(self, fmr: float) -> float:
        """Return the lowest threshold at which at most that share of strangers is accepted.

        Where the pairs are too few for this share, that of the smallest share they support.

        Args:
            fmr: A false match rate over all impostor pairs, 0 to 1.
        """
        supported = max(fmr, smallest_fmr(self.impostor_pairs))
        rows = zip(self.thresholds, self.fmr, strict=True)
        return next((value for value, row in rows if row[0] <= supported), self.thresholds[-1])


class OperatingPoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A threshold on the score (accept from there on), and its errors.

    Attributes:
        threshold: None for an external embedder without one, and where pairs were too few.
        name: `balanced` (probability one half), `threshold` (one that was given), `gallery` (by
            the size of a gallery), `chosen` (on other pairs), or a promise such as `fmr-0.01`.
        max_fmr: The false match rate that is promised, 0 to 1; None without a promise.
        among: Whose false match rate that is: of strangers who look alike, or of all strangers.
        errors: What was measured at the threshold.
        own_errors: The same on the user's own people, where `calibrate` measured it and kept the
            threshold.
        reason: Why there is no threshold.
    """

    threshold: Finite | None
    name: str = ""
    max_fmr: Share | None = None
    among: Among = "strangers"
    errors: Errors = Errors()
    own_errors: Errors | None = None
    reason: str | None = None

    @property
    def label(self) -> str:
        """The name in words: `balanced`, `FMR 1 % among look-alikes`, …"""
        if self.max_fmr is None:
            return LABELS.get(self.name, self.name)
        among = " among look-alikes" if self.among == "look-alikes" else ""
        return f"FMR {100 * self.max_fmr:g} %{among}"

    def describe(self) -> str:
        """Return the errors in words, with the pairs that they were measured on."""
        return "; ".join(self.lines())

    def lines(self) -> list[str]:
        """Return the errors in words, then those on the user's own people."""
        own = self.own_errors
        if own is None:
            return self.errors.lines()
        first, *others = msgspec.structs.replace(own, measured_on="").lines()
        people = "people" if own.people is None else counted(own.people, "person", "people")
        return [*self.errors.lines(), f"on your {people}: {first}", *others]
