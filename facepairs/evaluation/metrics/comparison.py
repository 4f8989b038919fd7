"""Compare verifiers on the same pairs: is one better, or may the difference be chance?

All verifiers decide the same pairs, so only pairs on which they differ carry information. Draws are
of people where people are known, because pairs that share people err together, and else of pairs.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from facepairs.evaluation.metrics.arrays import Bools, Floats, Interval, Ints, PairPeople
from facepairs.evaluation.metrics.curves import falling_ranks, weighted_auc, weights_by_rank
from facepairs.evaluation.metrics.intervals import SEED, bootstrap
from facepairs.evaluation.metrics.thresholds import pairs_needed


@dataclass(frozen=True)
class Difference:
    """A difference of two figures, the middle 95 % of its bootstrap draws, and its p-value."""

    difference: float
    interval: Interval
    p: float


@dataclass(frozen=True)
class PairwiseTest:
    """Two verifiers compared: differences are the first less the second.

    Attributes:
        first, second: Their names.
        balanced_accuracy: By their own decisions.
        p: McNemar's where classes are equal, otherwise that of the balanced accuracy.
        auc: Of the scores.
        tar_at_far: By FAR, such as "0.01".
        p_adjusted: Holm's for the number of tests.
    """

    first: str
    second: str
    balanced_accuracy: Difference
    p: float
    auc: Difference
    tar_at_far: dict[str, Difference]
    p_adjusted: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Every two verifiers compared on `pairs` pairs, with `draws` bootstrap draws from `seed`.

    `drawn` is what was drawn. P-values are those of McNemar's exact test, or of the balanced
    accuracy's bootstrap.
    """

    pairs: int
    drawn: Literal["people", "pairs"]
    p_from: Literal["mcnemar", "bootstrap"]
    draws: int
    seed: int
    tests: list[PairwiseTest]


def mcnemar(first_right: Bools, second_right: Bools) -> float:
    """Return the p-value that two verifiers are correct equally often: bool[N] each.

    Exact and two-sided: if they are equally good, each pair on which they differ is a fair coin.
    It is 1 where they never differ.

    References:
        McNemar, Psychometrika 12, 1947; Dietterich, Neural Computation 10, 1998.
    """
    from scipy.stats import binomtest

    only_first = int((first_right & ~second_right).sum())
    differ = int((first_right != second_right).sum())
    return float(binomtest(only_first, differ).pvalue) if differ else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number, so that any false alarm among them stays as rare.

    References:
        Holm, Scandinavian Journal of Statistics 6, 1979.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    rising = np.maximum.accumulate(np.asarray(p_values, np.float64)[order] * factors)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(rising, 1.0)
    return [float(value) for value in adjusted]


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
    equal = 2 * impostors == len(genuine)

    def figures(weight: Floats) -> list[float]:
        rows = zip(rankings, accepted, strict=True)
        return [x for rank, decided in rows for x in _figures(rank, genuine, decided, weight, kept)]

    alone = np.arange(len(genuine))  # each pair as if of a person of its own
    shape = (-1, len(names), 2 + len(kept))
    drawn = bootstrap(people or (alone, alone), figures).reshape(shape)
    (observed,) = np.array(figures(np.ones(len(genuine)))).reshape(shape)
    tests = []
    for a, b in itertools.combinations(range(len(names)), 2):
        gaps = map(_difference, observed[a] - observed[b], (drawn[:, a] - drawn[:, b]).T)
        balanced, auc, *tars = gaps
        right = accepted[a] == genuine, accepted[b] == genuine
        p = mcnemar(*right) if equal else balanced.p
        by_far = {str(far): gap for far, gap in zip(kept, tars, strict=True)}
        tests.append(PairwiseTest(names[a], names[b], balanced, p, auc, by_far))
    adjusted = holm([test.p for test in tests])
    return Comparison(
        pairs=len(genuine),
        drawn="pairs" if people is None else "people",
        p_from="mcnemar" if equal else "bootstrap",
        draws=len(drawn),
        seed=SEED,
        tests=[replace(test, p_adjusted=p) for test, p in zip(tests, adjusted, strict=True)],
    )


def _difference(observed: float, drawn: Floats) -> Difference:
    """Return a difference, the middle 95 % of its draws, and a two-sided bootstrap p-value."""
    drawn = drawn[~np.isnan(drawn)]
    if not len(drawn):
        return Difference(float(observed), (-1.0, 1.0), 1.0)
    low, high = np.quantile(drawn, [0.025, 0.975])
    beyond = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    p = min(1.0, 2 * (beyond + 1) / (len(drawn) + 1))
    return Difference(float(observed), (float(low), float(high)), p)
