"""Compare verifiers on the same pairs: is one better, or may the difference be chance?

All verifiers decide the same pairs, so only pairs on which they differ carry information. Draws are
of people where people are known, because pairs that share people err together, and else of pairs.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from facepairs.evaluation.metrics.arrays import Bools, Floats, Interval, Ints, PairPeople
from facepairs.evaluation.metrics.curves import (
    falling_ranks,
    pairs_needed,
    weighted_auc,
    weights_by_rank,
)
from facepairs.evaluation.metrics.intervals import TAILS, bootstrap


@dataclass(frozen=True)
class Difference:
    """A difference of two figures, and the middle 95 % of its bootstrap draws."""

    difference: float
    interval: Interval


@dataclass(frozen=True)
class PairwiseComparison:
    """Two verifiers compared: differences are the first less the second.

    Attributes:
        first, second: Their names.
        balanced_accuracy: By their own decisions.
        auc: Of the scores.
        tar_at_far: By FAR, such as "0.01".
    """

    first: str
    second: str
    balanced_accuracy: Difference
    auc: Difference
    tar_at_far: dict[str, Difference]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Every two verifiers compared on `pairs` pairs, with `draws` bootstrap draws of `drawn`."""

    pairs: int
    drawn: Literal["people", "pairs"]
    draws: int
    differences: list[PairwiseComparison]


def _figures(
    rank: Ints, genuine: Bools, accepted: Bools, weight: Floats, fars: Sequence[float]
) -> list[float]:
    """Return balanced accuracy, AUC, then the TAR at each FAR, of pairs that count `weight` times.

    NaN where a class is missing.
    """
    hits, misses = weights_by_rank(rank, genuine, weight)
    positive, negative = hits.sum(), misses.sum()
    if not positive or not negative:
        return [np.nan] * (2 + len(fars))
    right = weight[genuine & accepted].sum() / positive
    wrong = weight[~genuine & accepted].sum() / negative
    figures = [float(1 + right - wrong) / 2, weighted_auc(hits, misses)]
    tar, far_at = np.cumsum(hits) / positive, np.cumsum(misses) / negative
    for far in fars:
        # As `threshold_at_fmr`: the last rank at which the rate still keeps to its target.
        place = int(np.searchsorted(far_at, far, "right"))
        figures.append(float(tar[place - 1]) if place else 0.0)
    return figures


def compare(
    names: Sequence[str],
    genuine: Bools,
    scores: Sequence[Floats],
    accepted: Sequence[Bools],
    fars: Sequence[float],
    people: PairPeople | None = None,
) -> Comparison:
    """Compare every two verifiers on the same pairs.

    Args:
        names: Names of the verifiers.
        genuine: bool[N], with both classes.
        scores: float64[N] for each verifier.
        accepted: bool[N] for each verifier, its decisions.
        fars: Target FARs; those with too few impostor pairs are left out.
        people: Of the pairs; None where they are not known.
    """
    rankings = [falling_ranks(score) for score in scores]
    impostors = int((~genuine).sum())
    kept = [far for far in fars if pairs_needed(far) <= impostors]

    def figures(weight: Floats) -> list[float]:
        rows = zip(rankings, accepted, strict=True)
        return [x for rank, decided in rows for x in _figures(rank, genuine, decided, weight, kept)]

    alone = np.arange(len(genuine))  # each pair as if of a person of its own
    shape = (-1, len(names), 2 + len(kept))
    drawn = bootstrap(people or (alone, alone), figures).reshape(shape)
    (observed,) = np.array(figures(np.ones(len(genuine)))).reshape(shape)
    differences = []
    for a, b in itertools.combinations(range(len(names)), 2):
        gaps = map(_difference, observed[a] - observed[b], (drawn[:, a] - drawn[:, b]).T)
        balanced, area, *tars = gaps
        by_far = {str(far): gap for far, gap in zip(kept, tars, strict=True)}
        differences.append(PairwiseComparison(names[a], names[b], balanced, area, by_far))
    return Comparison(
        pairs=len(genuine),
        drawn="pairs" if people is None else "people",
        draws=len(drawn),
        differences=differences,
    )


def _difference(observed: float, drawn: Floats) -> Difference:
    """Return a difference and the middle 95 % of its draws."""
    drawn = drawn[~np.isnan(drawn)]
    low, high = np.percentile(drawn, TAILS).tolist() if len(drawn) else (-1.0, 1.0)
    return Difference(float(observed), (low, high))
