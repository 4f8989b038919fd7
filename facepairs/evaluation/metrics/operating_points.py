"""The errors of a verifier at each of its operating points, on one set of pairs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from facepairs.evaluation.metrics.arrays import Bools, Floats, Interval, Ints, PairPeople
from facepairs.evaluation.metrics.curves import auc_interval
from facepairs.evaluation.metrics.decisions import Decisions
from facepairs.evaluation.metrics.people import (
    Statistic,
    bootstrap,
    exact_interval,
    share_of,
    wider,
)
from facepairs.evaluation.metrics.rates import ErrorRates, error_rates


@dataclass(frozen=True, kw_only=True)
class PointErrors(ErrorRates):
    """The errors at an operating point, with intervals of 95 % that know that people recur.

    Attributes:
        name, label, threshold, max_fmr, is_default: As in `Decisions`.
        lookalike_pairs: Impostor pairs that look alike; None where they are not known.
        lookalike_fmr: FMR among them; None where there are none.
        lookalike_fmr_interval: Its interval.
        balanced_accuracy: The mean of 1 - FMR and 1 - FNMR.
        balanced_accuracy_interval: Its interval.
    """

    name: str
    label: str
    threshold: float | None
    max_fmr: float | None
    is_default: bool
    lookalike_pairs: int | None
    lookalike_fmr: float | None
    lookalike_fmr_interval: Interval | None
    balanced_accuracy: float
    balanced_accuracy_interval: Interval


def measure_points(
    points: Sequence[Decisions],
    genuine: Bools,
    score: Floats,
    cluster: npt.NDArray[np.integer] | None = None,
    people: PairPeople | None = None,
) -> tuple[list[PointErrors], Interval]:
    """Measure the errors at operating points, and the interval of the AUC.

    Intervals are the wider, on each side, of those for independent pairs (Clopper-Pearson; combined
    for the balanced accuracy; DeLong for the AUC) and those of a bootstrap over people.

    Args:
        points: The decisions.
        genuine: bool[N], with both classes.
        score: float64[N].
        cluster: int[N], the cluster that both photos of a pair are in, 0 where theirs differ; None
            where it is not known.
        people: Of the pairs, or None.

    References:
        Zou and Donner, "Construction of confidence limits about effect measures", Statistics in
        Medicine 27, 2008: how the intervals of two rates combine.
    """
    alike = np.zeros(len(score), bool) if cluster is None else (cluster > 0) & ~genuine
    statistics: list[Statistic] = [_auc_of(genuine, score)]
    for point in points:
        statistics.append(share_of(~genuine, point.accepted))
        statistics.append(share_of(genuine, ~point.accepted))
        statistics.append(share_of(alike, point.accepted))
    drawn = np.empty((0, len(statistics)))
    if people is not None:
        drawn = bootstrap(people, lambda weight: [figure(weight) for figure in statistics])
    rows = []
    for place, point in enumerate(points):
        columns = drawn[:, 1 + 3 * place : 4 + 3 * place].T
        rows.append(_point_errors(point, genuine, alike, cluster is not None, people, columns))
    return rows, wider(auc_interval(genuine, score), drawn[:, 0])


def _point_errors(
    point: Decisions,
    genuine: Bools,
    alike: Bools,
    clustered: bool,
    people: PairPeople | None,
    drawn: Floats,
) -> PointErrors:
    """Return the errors at a point; `drawn` are draws of FMR, FNMR and FMR among look-alikes."""
    exact = replace(
        error_rates(genuine, point.accepted),
        fmr_interval=exact_interval(~genuine, point.accepted, people),
        fnmr_interval=exact_interval(genuine, ~point.accepted, people),
    )
    rates = {
        **vars(exact),
        "fmr_interval": wider(exact.fmr_interval, drawn[0]),
        "fnmr_interval": wider(exact.fnmr_interval, drawn[1]),
    }
    hits, among = int((alike & point.accepted).sum()), int(alike.sum())
    return PointErrors(
        **rates,
        name=point.name,
        label=point.label,
        threshold=point.threshold,
        max_fmr=point.max_fmr,
        is_default=point.is_default,
        lookalike_pairs=among if clustered else None,
        lookalike_fmr=hits / among if among else None,
        lookalike_fmr_interval=(
            wider(exact_interval(alike, point.accepted, people), drawn[2]) if among else None
        ),
        balanced_accuracy=1 - (exact.fmr + exact.fnmr) / 2,
        balanced_accuracy_interval=wider(_balanced_interval(exact), 1 - (drawn[0] + drawn[1]) / 2),
    )


def _balanced_interval(rates: ErrorRates) -> Interval:
    """Return the interval of the mean of 1 - FMR and 1 - FNMR, for independent pairs."""
    ends = ((rates.fmr, rates.fmr_interval), (rates.fnmr, rates.fnmr_interval))
    below, above = (math.hypot(*(rate - bounds[side] for rate, bounds in ends)) for side in (0, 1))
    middle = 1 - (rates.fmr + rates.fnmr) / 2
    return max(0.0, middle - above / 2), min(1.0, middle + below / 2)


def _auc_of(genuine: Bools, score: Floats) -> Statistic:
    rank = falling_ranks(score)

    def area(weight: Floats) -> float:
        return weighted_auc(*weights_by_rank(rank, genuine, weight))

    return area


def falling_ranks(score: Floats) -> Ints:
    """Return the rank of each pair by falling score, from 0; equal scores share one."""
    values, rising = np.unique(score, return_inverse=True)
    ranks: Ints = len(values) - 1 - rising
    return ranks


def weights_by_rank(rank: Ints, genuine: Bools, weight: Floats) -> tuple[Floats, Floats]:
    """Return the weight of genuine and of impostor pairs at each rank, float64[ranks] each."""
    both = np.bincount(2 * rank + genuine, weight, 2 * int(rank.max()) + 2).astype(np.float64)
    return both[1::2], both[::2]


def weighted_auc(hits: Floats, misses: Floats) -> float:
    """Return the AUC of pairs by rank, see `weights_by_rank`; NaN where a class is missing."""
    accepted = np.cumsum(hits)
    area = accepted[-1] * misses.sum()
    return float(np.sum(misses * (accepted - hits / 2)) / area) if area else math.nan
