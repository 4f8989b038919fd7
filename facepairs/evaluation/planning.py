"""How many people and photos a study needs to show an error rate.

A study shows a rate where the upper end of the interval that it prints is not above it. So the
method of the intervals (`metrics.intervals`) is inverted. Without an error, that end depends only
on the number of people, or of pairs of people. With errors it depends on how much pairs that share
people depend on each other. That was measured (`scripts/studies/dependence.py`) on LFW with the
included model, and on the population of our simulations; the larger figures are used.
"""

import math
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.data.findings import ShownRates
from facepairs.data.minimums import MAX_PAIRS_PER_PERSON
from facepairs.errors import BadConfig, NotEnough
from facepairs.evaluation.metrics.intervals import (
    FEWEST_DEGREES,
    Spread,
    effective_number,
    rate_intervals,
)
from facepairs.evaluation.protocols import IMPOSTORS
from facepairs.support.extras import require_extra
from facepairs.support.results import Result

Kind = Literal["fmr", "fnmr"]
POWER, SHARE = 0.8, 0.5  # of the studies that show the rate; of the true rate in the claimed one
# By the FMR: its variance between people, in squares of the FMR, with one photo each and with many;
# and the correlation of the pairs of the same two people.
FMRS = (0.0001, 0.001, 0.01, 0.1)
ONE_PHOTO, MANY_PHOTOS, CELL = (16, 3.4, 1.6, 0.6), (12, 3.4, 1.0, 0.4), (0.2, 0.27, 0.32, 0.48)
WITHIN = 0.28  # correlation of one person's genuine pairs
DEGREES = {"fmr": 0.6, "fnmr": 1.3}  # of freedom of the variance, for each independent error
MOST_PEOPLE = 10_000_000
STEPS = 200  # numbers of errors that are tried
SMALLEST_RATE, STEPS_OF_RATE = 1e-6, 30  # of the search for a rate


class StudySize(msgspec.Struct, frozen=True):
    """The size of a study.

    Attributes:
        people: Number of people, with at least two photos each.
        photos: Number of photos.
        pairs: Number of pairs of the kind that the rate is of. Of more than 300,000 pairs of
            strangers `evaluate` draws so many, and takes all from a list.
    """

    people: int
    photos: int
    pairs: int


class ShownRate(msgspec.Struct, frozen=True, kw_only=True):
    """The studies that show a rate.

    Attributes:
        rate: `fmr` or `fnmr`.
        claimed: The rate to be shown, in (0, 1): the upper end of the interval of 95 % is not above
            it.
        without_errors: The smallest study that shows it if it sees no error.
        true_rate: The rate that is expected in truth, below the claimed one.
        with_errors: The smallest study that shows it with the plan's power if the true rate is
            `true_rate`.
    """

    rate: Kind
    claimed: float
    without_errors: StudySize
    true_rate: float
    with_errors: StudySize


class StudyPlan(Result, frozen=True, kw_only=True):
    """How many people and photos show an error rate.

    Attributes:
        photos_per_person: Photos of each person.
        power: The share of studies with errors that are to show the rate, 0 to 1.
        rates: The rates asked for.
    """

    photos_per_person: int
    power: float
    rates: list[ShownRate]


class Study(NamedTuple):
    """A study of one kind of pairs.

    Attributes:
        kind: Of the rate.
        people: Number of people.
        photos: Photos of each, where they differ of a typical one.
    """

    kind: Kind
    people: float
    photos: float

    @property
    def genuine_each(self) -> float:
        """Genuine pairs of each person."""
        return min(MAX_PAIRS_PER_PERSON, self.photos * (self.photos - 1) / 2)

    @property
    def trials(self) -> float:
        """Number of independent trials: people, or pairs of people."""
        pairs = self.people * (self.people - 1) / 2
        return self.people if self.kind == "fnmr" else min(pairs, self.pairs)

    @property
    def pairs(self) -> float:
        """Number of pairs: of strangers, one of every two people, as `evaluate` draws them."""
        if self.kind == "fnmr":
            return self.people * self.genuine_each
        cells = self.people * (self.people - 1) / 2
        return min(cells * self.photos**2, max(IMPOSTORS, cells))

    def variance(self, rate: float) -> float:
        """Return the variance of a measured rate."""
        independent = rate * (1 - rate)
        if self.kind == "fnmr":
            pairs = self.genuine_each
            return independent * (WITHIN + (1 - WITHIN) / pairs) / self.people
        one, many, cell = (
            float(np.interp(math.log10(rate), np.log10(FMRS), column))
            for column in (ONE_PHOTO, MANY_PHOTOS, CELL)
        )
        by_person = 4 * independent**2 * (many + (one - many) / self.photos) / self.people
        return by_person + independent * (cell / self.trials + (1 - cell) / self.pairs)

    def power(self, claimed: float, true_rate: float) -> float:
        """Return the share of studies whose interval ends at a claimed rate or below.

        Args:
            claimed: The rate, in (0, 1).
            true_rate: The true one; 0 for studies that see no error.
        """
        from scipy.special import betainc

        without_errors = float(rate_intervals(0.0, Spread(0.0, math.inf), 1 / self.trials)[1])
        if without_errors > claimed or not true_rate:
            return float(without_errors <= claimed)
        number = true_rate * (1 - true_rate) / self.variance(true_rate)  # of independent trials
        events = np.linspace(0, number * claimed, STEPS)
        rates = events / number
        most = max(FEWEST_DEGREES, self.people - 1)
        degrees = np.clip(DEGREES[self.kind] * events, FEWEST_DEGREES, most)
        spread = Spread(rates * (1 - rates) / number, degrees)
        shown = rate_intervals(rates, spread, 1 / self.trials)[1] <= claimed
        few = float(events[shown][-1])
        return float(betainc(number - few, few + 1, 1 - true_rate))  # the binomial distribution


def plan(
    fmr: float | None = None,
    fnmr: float | None = None,
    photos: int = 4,
    share: float = SHARE,
    power: float = POWER,
) -> StudyPlan:
    """Return how many people and photos a study needs to show error rates.

    Args:
        fmr: The false match rate to be shown, in (0, 1).
        fnmr: The false non-match rate to be shown, in (0, 1).
        photos: Photos of each person, at least 2.
        share: The true rate that is expected, as a share of the one to be shown, in (0, 1).
        power: The share of studies that are to show it if that is the true rate, in (0, 1).

    Raises:
        BadConfig: A value is outside its range, or there is no rate.
        NotEnough: No study shows the rate.
    """
    require_extra("measure", "facepairs plan")
    given: dict[Kind, float | None] = {"fmr": fmr, "fnmr": fnmr}
    if fmr is None and fnmr is None:
        raise BadConfig("give the rate to be shown, such as 0.001", "fmr", "fnmr")
    for name, value in (*given.items(), ("share", share), ("power", power)):
        if value is not None and not 0 < value < 1:
            raise BadConfig(f"{name} is {value:g}; use a number between 0 and 1", name)
    if photos < 2:
        raise BadConfig(f"photos is {photos}; a genuine pair needs 2 photos of a person", "photos")
    rates = [
        ShownRate(
            rate=kind,
            claimed=claimed,
            without_errors=_smallest_study(kind, photos, claimed, 0.0, power),
            true_rate=share * claimed,
            with_errors=_smallest_study(kind, photos, claimed, share * claimed, power),
        )
        for kind, claimed in given.items()
        if claimed is not None
    ]
    return StudyPlan(photos_per_person=photos, power=power, rates=rates)


def _smallest_study(
    kind: Kind, photos: int, claimed: float, true_rate: float, power: float
) -> StudySize:
    """Return the size of the smallest study that shows a rate with some power."""

    def shows(people: int) -> bool:
        return Study(kind, people, photos).power(claimed, true_rate) >= power

    low, high = 1, 2
    while not shows(high):
        low, high = high, 2 * high
        if high > MOST_PEOPLE:
            raise NotEnough(
                f"{kind.upper()} {claimed:g} needs more than {MOST_PEOPLE:,} people; give a larger "
                "rate",
                kind,
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return StudySize(high, high * photos, round(Study(kind, high, photos).pairs))


def shown_rates(photos: npt.NDArray[np.integer]) -> ShownRates:
    """Return the smallest rates that a study of a folder can show.

    Args:
        photos: int[people], usable photos of each person.
    """
    photos = photos[photos > 0]
    several = photos[photos > 1]
    genuine = np.minimum(MAX_PAIRS_PER_PERSON, several * (several - 1) / 2)
    studies = []
    if len(photos) > 1:
        studies.append(Study("fmr", len(photos), 1 / float(np.mean(1 / photos))))
    if len(several):  # as many people, with as many pairs each
        each = 0.5 + math.sqrt(0.25 + 2 * float(genuine.mean()))
        studies.append(Study("fnmr", effective_number(genuine), each))
    found = {
        name: _smallest_rate(study, true_share)
        for study in studies
        for name, true_share in ((f"{study.kind}_without_errors", 0.0), (study.kind, SHARE))
    }
    return ShownRates(**found)


def _smallest_rate(study: Study, share: float) -> float | None:
    """Return the smallest rate that a study shows; None where it shows none."""
    low, high = math.log(SMALLEST_RATE), 0.0
    for _ in range(STEPS_OF_RATE):
        middle = math.exp((low + high) / 2)
        is_shown = study.power(middle, share * middle) >= POWER
        low, high = (low, math.log(middle)) if is_shown else (math.log(middle), high)
    return math.exp(high) if high < 0 else None
