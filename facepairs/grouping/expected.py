"""Expected errors of grouping, and the merge height that keeps the wanted precision.

Strangers multiply with the square of a collection's size. How many of their pairs end up in one
group was measured of the model, so the height follows from the collection itself: from how many
pairs of strangers it may hold, and how many pairs of faces a height would join.
"""

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import ErrorTable, GroupingErrors, smallest_fmr
from facepairs.errors import NotEnough

# In a large collection more of the wrong pairs meet in one group, so fewer groups are mixed per
# pair of groups: in parts of LFW from 200 photos to all 13,233, and at cuts from .06 to .09, their
# share falls with the number of people to the power of .22 to .33.
MIXED_FALLS = 0.3
FEW_FACES = 20  # of which more than half may well show one person
Ints = npt.NDArray[np.int64]


class ExpectedErrors(msgspec.Struct, frozen=True, kw_only=True):
    """What to expect of groups, from what was measured of the model.

    Attributes:
        precision: Expected share of joined pairs of faces that show one person.
        joined_pairs: Pairs of faces that are in one group.
        wrong_pairs: Those of them that are expected to show two people.
        mixed_people: Groups that are expected to hold more than one person.
        cut: The height up to which faces were grouped.
        rate: Share of strangers' pairs that are joined at this height, or at that of an earlier run
            whose people were kept, if that is larger.
        measured_on: The photos that this was measured on, in words.
        is_valid: Whether faces of this collection differ as those did; else these figures mean
            nothing.
    """

    precision: float
    joined_pairs: int
    wrong_pairs: float
    mixed_people: float
    cut: float
    rate: float
    measured_on: str
    is_valid: bool = True

    def describe(self) -> str:
        """Return in words how many pairs and people are expected to be wrong."""
        if not self.is_valid:
            return (
                "not known; more than half of all pairs look like one person: calibrate this model "
                "on photos of this kind"
            )
        wrong, mixed = map(_about, (self.wrong_pairs, self.mixed_people))
        group = "groups" if self.mixed_people >= 1.5 else "group"
        return (
            f"{wrong} of {self.joined_pairs:,} pairs, in {mixed} {group} of more than one person; "
            f"precision {self.precision:.4f} ({self.measured_on})"
        )


def _about(count: float) -> str:
    return "fewer than 1" if count < 1 else f"about {count:,.0f}"


def choose_cut(errors: ErrorTable, faces: int, pairs: float, joined: Ints, precision: float) -> int:
    """Return which of the measured heights is the largest that keeps the expected precision.

    Args:
        errors: What was measured of the model, with its grouping.
        faces: How many faces are grouped.
        pairs: How many pairs of faces may be joined.
        joined: int64[cuts], how many of them each height joins.
        precision: The share of joined pairs that should show one person, in (0, 1).

    Raises:
        NotEnough: No height keeps it, by the pairs that were measured.
    """
    grouping = errors.grouping
    assert grouping
    share = _rates(grouping) * pairs / np.maximum(1, joined)
    kept = np.flatnonzero((share <= 1 - precision) | (joined == 0))
    if not len(kept):
        best = max(0.01, np.floor(100 * (1 - share.min())) / 100)
        raise NotEnough(
            f"precision {precision:g} cannot be promised for {faces:,} faces: of their "
            f"{pairs:,.0f} pairs only {joined.max():,} look like one person, and the model was "
            f"measured on {grouping.people_pairs:,} pairs of people ({errors.measured_on}); give "
            f"precision {best:g} or less, or a model calibrated on more people"
        )
    return int(kept[-1])


def expect_errors(
    errors: ErrorTable,
    at: int,
    faces: int,
    pairs: float,
    joined: int,
    groups: int,
    earlier_rate: float = 0,
) -> ExpectedErrors:
    """Return the errors to expect of groups.

    Args:
        errors: What was measured of the model, with its grouping.
        at: Which of the measured heights they are grouped up to.
        faces: How many faces are grouped.
        pairs: How many pairs of faces might have been joined.
        joined: How many were.
        groups: Number of groups, those of one face included.
        earlier_rate: The largest rate of earlier runs whose people are among them; 0 for none.
    """
    grouping = errors.grouping
    assert grouping
    rates = _rates(grouping)
    rate = max(float(rates[at]), earlier_rate)
    mixed_at = min(int(np.searchsorted(rates, rate)), len(rates) - 1)
    wrong = min(joined, rate * pairs)
    measured_people = np.sqrt(2 * grouping.people_pairs)
    mixed = max(grouping.mixed[at], grouping.mixed[mixed_at]) * groups * (groups - 1) / 2
    mixed *= (measured_people / max(1, groups)) ** MIXED_FALLS
    return ExpectedErrors(
        precision=1 - wrong / max(1, joined),
        joined_pairs=joined,
        wrong_pairs=wrong,
        mixed_people=float(min(wrong, mixed)),
        cut=grouping.cuts[at],
        rate=rate,
        measured_on=errors.measured_on,
        is_valid=faces < FEW_FACES or 2 * joined <= pairs,
    )


def _rates(grouping: GroupingErrors) -> npt.NDArray[np.float64]:
    """Return the share of strangers' pairs that each height joins, at least what is measurable."""
    return np.maximum(grouping.linked, smallest_fmr(grouping.people_pairs))
