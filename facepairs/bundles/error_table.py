"""The errors of a bundle at every threshold, `errors.json`: so that every verdict can name them.

Strangers who look alike pass more often than strangers at random, so both rates are there.
Look-alikes are pairs of different people whose photos lie in the same cluster of embeddings, see
`evaluation.lookalikes`.
"""

from bisect import bisect_left, bisect_right
from typing import Annotated

import msgspec
from msgspec import Meta

from facepairs.bundles.calibration import Count, Finite, Share
from facepairs.errors import BadBundle

MIN_EXPECTED_FALSE_ACCEPTS = 3
"""A rate is promised only where at least this many false accepts are expected among the pairs that
measured it: with fewer, a single pair changes the figure by half."""


def smallest_fmr(impostor_pairs: int) -> float:
    """Return the smallest false match rate that a number of pairs supports."""
    return MIN_EXPECTED_FALSE_ACCEPTS / max(1, impostor_pairs)


class MeasuredRate(msgspec.Struct, frozen=True, array_like=True):
    """A measured share, 0 to 1, and its interval of 95 %."""

    rate: Share
    low: Share
    high: Share

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of 95 %."""
        return self.low, self.high


class ExpectedErrors(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a threshold's errors; None where it was not measured.

    Attributes:
        fmr: Share of strangers accepted, impostor pairs drawn at random.
        lookalike_fmr: Share of strangers accepted among those who look alike.
        fnmr: Share of genuine pairs missed.
    """

    fmr: MeasuredRate | None = None
    lookalike_fmr: MeasuredRate | None = None
    fnmr: MeasuredRate | None = None


class GroupErrors(msgspec.Struct, frozen=True, kw_only=True):
    """Errors within a group of people, or within a cluster of look-alikes, at one threshold.

    Attributes:
        name: The group's name; of a cluster, its number.
        people: How many people are in it.
        genuine_pairs: Pairs of one person of the group.
        impostor_pairs: Pairs of two people of the group.
        fmr: Share of the impostor pairs accepted; None without any.
        fnmr: Share of the genuine pairs missed; None without any.
    """

    name: str
    people: Count
    genuine_pairs: Count
    impostor_pairs: Count
    fmr: MeasuredRate | None = None
    fnmr: MeasuredRate | None = None


Rates = Annotated[tuple[MeasuredRate, ...], Meta(min_length=1, max_length=10_000)]


class ErrorTable(msgspec.Struct, frozen=True, kw_only=True):
    """Errors at rising thresholds, measured on people that the network was not trained on.

    Attributes:
        measured_on: The pairs, in words.
        people: Number of people in the pairs; None where it is not known.
        genuine_pairs: Number of genuine pairs.
        impostor_pairs: Number of impostor pairs.
        lookalike_pairs: Number of impostor pairs that look alike; None where it is not known.
        thresholds: float[T], rising; at the first everything is accepted, at the last nothing.
        fmr: T rates, among all impostor pairs.
        lookalike_fmr: T rates, among those that look alike; None where these are not known.
        fnmr: T rates.
        clusters: Errors within each cluster at the default operating point, the worst first.
        groups: The same for groups of people that the user named.
        small_faces: Tables of pairs of small faces, the smallest first.

    Raises:
        BadBundle: The columns differ in length, or thresholds do not rise.
    """

    measured_on: str
    people: Count | None
    genuine_pairs: Count
    impostor_pairs: Count
    lookalike_pairs: Count | None
    thresholds: Annotated[tuple[Finite, ...], Meta(min_length=1, max_length=10_000)]
    fmr: Rates
    lookalike_fmr: Rates | None
    fnmr: Rates
    clusters: tuple[GroupErrors, ...] = ()
    groups: tuple[GroupErrors, ...] = ()
    small_faces: tuple["SmallFaces", ...] = ()

    def __post_init__(self) -> None:
        """Refuse columns that do not fit together."""
        columns = [self.fmr, self.fnmr, self.lookalike_fmr or self.fmr]
        rises = all(a < b for a, b in zip(self.thresholds, self.thresholds[1:], strict=False))
        if not rises or any(len(column) != len(self.thresholds) for column in columns):
            raise BadBundle(
                "errors need as many rates of each kind as thresholds, and thresholds that rise; "
                "calibrate again"
            )

    def for_face(self, side_px: float) -> "ErrorTable":
        """Return the errors of pairs whose smaller face has that side.

        Args:
            side_px: Side of the square around the face, from the brows to the chin.
        """
        tables = (row.errors for row in self.small_faces if side_px < row.below_px)
        return next(tables, self)

    def at(self, threshold: float) -> ExpectedErrors:
        """Return the errors at a threshold; between two of the table, the larger of each rate."""
        last = len(self.thresholds) - 1
        below = max(0, bisect_right(self.thresholds, threshold) - 1)
        above = min(last, bisect_left(self.thresholds, threshold))
        alike = self.lookalike_fmr[below] if self.lookalike_fmr else None
        return ExpectedErrors(fmr=self.fmr[below], lookalike_fmr=alike, fnmr=self.fnmr[above])

    def threshold_for(self, fmr: float) -> float:
        """Return the lowest threshold at which at most that share of strangers is accepted.

        Where the pairs are too few for this share, that of the smallest share they support.

        Args:
            fmr: A false match rate over all impostor pairs, 0 to 1.
        """
        supported = max(fmr, smallest_fmr(self.impostor_pairs))
        rows = zip(self.thresholds, self.fmr, strict=True)
        return next((value for value, rate in rows if rate.rate <= supported), self.thresholds[-1])


class SmallFaces(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of pairs whose smaller face is below a size.

    Attributes:
        below_px: Side of the square around the smaller face, from the brows to the chin.
        errors: What was measured of them; its own `small_faces` are empty.
    """

    below_px: Annotated[float, Meta(gt=0)]
    errors: ErrorTable
