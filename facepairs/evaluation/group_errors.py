"""Errors of groups of people: within them, between two of them, and how far they differ.

Which differences are larger than chance is judged for every two groups at once, with Bonferroni's
correction, so that of many groups none differs by chance alone in 95 of 100 studies.

References:
    Grother, *Face Recognition Vendor Test Part 8: Summarizing Demographic Differentials*, NIST IR
    8429, 2022: the ratios of the worst rate to the best one, and to the geometric mean.
    Zou and Donner, "Construction of confidence intervals about effect measures", Statistics in
    Medicine 27, 2008: the interval of a ratio of rates from the intervals of the rates.
"""

import math
from collections.abc import Mapping
from itertools import combinations

import msgspec
import numpy as np

from facepairs.bundles.rates import Errors, Rate
from facepairs.data.groups import PeopleGroups
from facepairs.data.pairs import person_name
from facepairs.errors import BadData
from facepairs.evaluation.error_rates import (
    MIN_IMPOSTORS,
    MIN_PEOPLE,
    AttemptedPhotos,
    errors_by_group,
    is_small,
    pairs_of_labels,
    rate_of,
)
from facepairs.evaluation.metrics.arrays import Bools, Floats
from facepairs.evaluation.metrics.intervals import LEVEL, PeopleOfPairs
from facepairs.evaluation.scores import ScoredPairs
from facepairs.support import console


class BetweenGroups(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs of strangers, one of either group.

    Attributes:
        groups: The two groups.
        fmr: Share of the strangers accepted; None without pairs.
        people: Number of people in the pairs.
    """

    groups: tuple[str, str]
    fmr: Rate | None
    people: int

    @property
    def is_small(self) -> bool:
        """Whether there are so few people or pairs that the rate says little."""
        return self.people < MIN_PEOPLE or ((self.fmr and self.fmr.of) or 0) < MIN_IMPOSTORS


class GroupRatio(msgspec.Struct, frozen=True, kw_only=True):
    """How many times as large the rate of one group is as that of another.

    Attributes:
        larger: The group with the larger rate.
        smaller: The group with the smaller rate; None for the geometric mean of all groups.
        value: The ratio; None where the smaller rate is 0.
        interval: Its interval; the upper end is None where nothing bounds it.
    """

    larger: str
    smaller: str | None
    value: float | None
    interval: tuple[float, float | None]


class Differential(msgspec.Struct, frozen=True, kw_only=True):
    """How far a rate differs between groups that are large enough; all intervals hold together.

    Attributes:
        worst_to_best: The ratio of the largest rate to the smallest one.
        worst_to_geometric_mean: The ratio of the largest rate to the geometric mean of all.
        comparisons: How many pairs of groups are compared; the intervals are corrected for it.
        larger_than_chance: The pairs of groups whose ratio is above 1 with its whole interval.
    """

    worst_to_best: GroupRatio
    worst_to_geometric_mean: GroupRatio
    comparisons: int
    larger_than_chance: list[GroupRatio]


class GroupDifferences(msgspec.Struct, frozen=True, kw_only=True):
    """How groups of people differ.

    Attributes:
        between: The errors between every two groups.
        fmr: The differential of the FMR within groups; None without two groups that are large
            enough, or where no error was seen.
        fnmr: The same of the FNMR.
    """

    between: list[BetweenGroups]
    fmr: Differential | None
    fnmr: Differential | None


def measure_groups(
    groups: PeopleGroups, pairs: ScoredPairs, accepted: Bools
) -> tuple[dict[str, Errors], GroupDifferences]:
    """Return the errors within each group whose people both are in, the worst first, and more.

    Args:
        groups: The groups that the user named.
        pairs: N pairs.
        accepted: bool[N], the decisions.

    Raises:
        BadData: The people of the pairs are not known.
    """
    if pairs.people is None:
        raise BadData(
            f"{groups.path}: the people of the pairs are unknown; groups need photos named "
            "Person_Name/photo.jpg",
            "groups",
        )
    sides = [groups.among([person_name(name) for name in side]) for side in pairs.sides]
    cells, strangers = pairs_of_labels(*sides), ~pairs.genuine
    inside = {one: members for (one, other), members in cells.items() if one == other}
    sample = pairs.sample
    within = errors_by_group(inside, pairs.genuine, accepted, sample)
    photos = AttemptedPhotos.of(pairs)
    ftas = photos.by_group(groups) if photos else {}
    within = {
        name: msgspec.structs.replace(errors, fta=ftas.get(name)) for name, errors in within.items()
    }
    between, progress = list[BetweenGroups](), console.progress("comparing groups")
    for done, (names, members) in enumerate(cells.items(), 1):
        if names[0] != names[1]:
            fmr = rate_of(sample, members & strangers, accepted)
            people = sample.people(members & strangers)
            between.append(BetweenGroups(groups=names, fmr=fmr, people=people))
        progress(done, len(cells))
    large = {name: inside[name] for name, errors in within.items() if not is_small(errors)}
    return within, GroupDifferences(
        between=between,
        fmr=differential({k: m & strangers for k, m in large.items()}, accepted, sample),
        fnmr=differential({k: m & ~strangers for k, m in large.items()}, ~accepted, sample),
    )


def differential(
    groups: Mapping[str, Bools], events: Bools, sample: PeopleOfPairs
) -> Differential | None:
    """Return how far a rate differs between groups; None without two groups or without events.

    Args:
        groups: bool[N], the pairs of each group, at least one.
        events: bool[N], the pairs with an error.
        sample: Who is in the pairs.
    """
    comparisons = math.comb(len(groups), 2)
    level = 1 - (1 - LEVEL) / max(1, comparisons)
    found = [rate_of(sample, members, events, level=level) for members in groups.values()]
    rates = {name: rate for name, rate in zip(groups, found, strict=True) if rate}
    names = sorted(rates, key=lambda name: -rates[name].value)
    if comparisons < 1 or not rates[names[0]].value:
        return None
    ordered, alone = [rates[name] for name in names], np.eye(len(names))
    ratios = {
        (one, other): _contrast(alone[one] - alone[other], ordered)
        for one, other in combinations(range(len(names)), 2)
    }
    means = [_contrast(row, ordered) for row in alone - 1 / len(names)]
    chance = [_ratio(names[one], names[other], *row) for (one, other), row in ratios.items()]
    best = _ratio(
        names[0],
        names[-1],
        ratios[0, len(names) - 1][0],
        max(low for _, low, _ in ratios.values()),
        max(max(high, -low) for _, low, high in ratios.values()),
    )
    lows, highs = zip(*(row[1:] for row in means), strict=True)
    return Differential(
        worst_to_best=best,
        worst_to_geometric_mean=_ratio(names[0], None, means[0][0], max(lows), max(highs)),
        comparisons=comparisons,
        larger_than_chance=[ratio for ratio in chance if ratio.interval[0] > 1],
    )


def _contrast(weights: Floats, rates: list[Rate]) -> tuple[float, float, float]:
    """Return a sum of weighted logarithms of independent rates, and both ends of its interval.

    A rate of 0 may be anywhere below its upper end.
    """
    used = np.flatnonzero(weights)
    weights, rates = weights[used], [rates[place] for place in used.tolist()]
    with np.errstate(divide="ignore"):
        values, low, high = np.log([(rate.value, *rate.interval) for rate in rates]).T
    middle = np.where(np.isfinite(values), values, high)
    up = weights * np.where(weights > 0, high - middle, middle - low)
    down = weights * np.where(weights > 0, middle - low, high - middle)
    centre = float(weights @ middle)
    value = centre if np.isfinite(values).all() else math.inf
    return value, centre - math.hypot(*down), centre + math.hypot(*up)


def _ratio(
    larger: str, smaller: str | None, log_value: float, log_low: float, log_high: float
) -> GroupRatio:
    """Return a ratio from logarithms: its interval begins at 1 or above."""
    value, high = (None if math.isinf(log) else math.exp(log) for log in (log_value, log_high))
    interval = math.exp(max(0.0, log_low)), high
    return GroupRatio(larger=larger, smaller=smaller, value=value, interval=interval)
