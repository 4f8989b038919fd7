"""Compare verifiers on the same pairs: is one better, or may the difference be chance?

All verifiers decide the same pairs, so only pairs on which they differ carry information. Pairs are
treated as independent; pairs that share people are less so, and the true uncertainty is somewhat
larger.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadData
from facepairs.evaluation.metrics.arrays import Bools, Floats, Interval, Ints, check_two_classes
from facepairs.evaluation.metrics.thresholds import pairs_needed
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.support.random_streams import Stream, generator

DRAWS = 1_000
MIN_DRAWS = 200
MAX_WORK = 400_000_000  # pairs times draws, for each verifier: about ten seconds


class McNemar(NamedTuple):
    """Pairs that only one of two verifiers decides correctly, and the exact two-sided p-value."""

    only_first_right: int
    only_second_right: int
    p: float


@dataclass(frozen=True)
class Difference:
    """A difference of two figures, the middle 95 % of its bootstrap draws, and its p-value."""

    difference: float
    interval: Interval
    p: float


@dataclass(frozen=True, kw_only=True)
class PairwiseTest:
    """Two verifiers compared: differences are the first less the second.

    `p` is McNemar's and `p_adjusted` Holm's for the number of tests; `tar_at_far` is by FAR, such
    as "0.01".
    """

    first: str
    second: str
    accuracy_difference: float
    only_first_right: int
    only_second_right: int
    p: float
    p_adjusted: float
    auc: Difference
    tar_at_far: dict[str, Difference]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Every two verifiers compared on `pairs` pairs, with `draws` bootstrap draws from `seed`.

    `fars_left_out` are target FARs for which there are too few impostor pairs.
    """

    pairs: int
    draws: int
    seed: int
    fars_left_out: list[float]
    tests: list[PairwiseTest]


def mcnemar(first_right: npt.ArrayLike, second_right: npt.ArrayLike) -> McNemar:
    """Test whether two verifiers are correct equally often on the same pairs: bool[N] each.

    Exact and two-sided: if they are equally good, each pair on which they differ is a fair coin.
    The p-value is 1 where they never differ.

    Raises:
        BadData: The arrays are not flat or of one length.

    References:
        McNemar, Psychometrika 12, 1947; Dietterich, Neural Computation 10, 1998.
    """
    from scipy.stats import binomtest

    first, second = np.asarray(first_right, np.bool_), np.asarray(second_right, np.bool_)
    if first.ndim != 1 or first.shape != second.shape:
        raise BadData(f"answers of shapes {first.shape} and {second.shape} are not paired")
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    differing = only_first + only_second
    p = float(binomtest(only_first, differing).pvalue) if differing else 1.0
    return McNemar(only_first, only_second, p)


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


def _ranks(score: Floats) -> Ints:
    """Return the rank of each pair by falling score, from 0; equal scores share one."""
    values, rising = np.unique(score, return_inverse=True)
    return len(values) - 1 - rising


def _figures(rank: Ints, genuine: Bools, weight: Ints, fars: Sequence[float]) -> list[float]:
    """Return the AUC, then the TAR at each FAR, of pairs that count `weight` times."""
    hits, misses = np.bincount(rank, weight * genuine), np.bincount(rank, weight * ~genuine)
    accepted, false_accepts = np.cumsum(hits), np.cumsum(misses)
    wins = float(np.sum(misses * (accepted - hits / 2)))
    figures = [float(wins / (accepted[-1] * false_accepts[-1]))]
    for far in fars:
        # As `threshold_at_fmr`: the last rank at which the rate still keeps to its target.
        place = int(np.searchsorted(false_accepts / false_accepts[-1], far, "right"))
        figures.append(float(accepted[place - 1] / accepted[-1]) if place else 0.0)
    return figures


def paired_bootstrap(
    genuine: npt.ArrayLike,
    scores: Sequence[npt.ArrayLike],
    fars: Sequence[float] = (),
    draws: int = DRAWS,
    seed: int = 0,
    progress: ProgressCallback = ignore_progress,
) -> Floats:
    """Resample the pairs with replacement, each class separately, the same for all verifiers.

    Args:
        genuine: bool[N].
        scores: float[N] for each verifier.
        fars: Target FARs; thresholds come from the resampled pairs.
        draws: Number of resamples.
        seed: The result is a pure function of it.
        progress: Called after every draw.

    Returns:
        float64[draws, verifiers, 1 + fars]: AUC and TAR at each FAR.

    Raises:
        NotEnough: A class is missing.
        BadData: A score is not finite, or the arrays do not fit together.

    References:
        Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993.
    """
    rankings = []
    for score in scores:
        labels, values = check_two_classes(genuine, score)
        rankings.append(_ranks(values))
    drawn = np.empty((draws, len(rankings), 1 + len(fars)))
    for draw in range(draws):
        weight = _resample(labels, seed, draw)
        drawn[draw] = [_figures(ranks, labels, weight, fars) for ranks in rankings]
        progress(draw + 1, draws)
    return drawn


def _resample(genuine: Bools, seed: int, draw: int) -> Ints:
    """Return how often each pair is drawn, int64[N]; each class keeps its number of pairs."""
    random = generator(seed, Stream.BOOTSTRAP, draw)
    weight = np.empty(len(genuine), np.int64)
    for kind in (genuine, ~genuine):
        members = np.flatnonzero(kind)
        picked = random.integers(len(members), size=len(members))
        weight[members] = np.bincount(picked, minlength=len(members))
    return weight


def compare(
    names: Sequence[str],
    genuine: npt.ArrayLike,
    scores: Sequence[npt.ArrayLike],
    right: Sequence[npt.ArrayLike],
    fars: Sequence[float],
    seed: int = 0,
    progress: ProgressCallback = ignore_progress,
) -> Comparison:
    """Compare every two verifiers on the same pairs.

    Args:
        names: Names of the verifiers.
        genuine: bool[N].
        scores: float[N] for each verifier.
        right: bool[N] for each verifier: is the pair decided correctly?
        fars: Target FARs; those with too few impostor pairs are left out.
        seed: Of the bootstrap.
        progress: Called after every draw.

    Raises:
        NotEnough: A class is missing.
        BadData: A score is not finite, or the arrays do not fit together.
    """
    labels, _ = check_two_classes(genuine, scores[0])
    impostors = int((~labels).sum())
    kept = [far for far in fars if pairs_needed(far) <= impostors]
    draws = max(MIN_DRAWS, min(DRAWS, MAX_WORK // len(labels)))
    drawn = paired_bootstrap(labels, scores, kept, draws, seed, progress)
    once = np.ones(len(labels), np.int64)
    figures = np.array(
        [_figures(_ranks(np.asarray(score)), labels, once, kept) for score in scores]
    )
    correct = [np.asarray(answers, np.bool_) for answers in right]
    tests = []
    for a, b in itertools.combinations(range(len(names)), 2):
        observed, draws_of = figures[a] - figures[b], (drawn[:, a] - drawn[:, b]).T
        auc, *tars = map(_difference, observed, draws_of)
        test = mcnemar(correct[a], correct[b])
        tests.append(
            PairwiseTest(
                first=names[a],
                second=names[b],
                accuracy_difference=float(correct[a].mean() - correct[b].mean()),
                **test._asdict(),
                p_adjusted=test.p,
                auc=auc,
                tar_at_far={str(far): gap for far, gap in zip(kept, tars, strict=True)},
            )
        )
    adjusted = holm([test.p for test in tests])
    return Comparison(
        pairs=len(labels),
        draws=draws,
        seed=seed,
        fars_left_out=[far for far in fars if far not in kept],
        tests=[replace(test, p_adjusted=p) for test, p in zip(tests, adjusted, strict=True)],
    )


def _difference(observed: float, drawn: Floats) -> Difference:
    """Return a difference, the middle 95 % of its draws, and a two-sided bootstrap p-value."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    beyond = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    p = min(1.0, 2 * (beyond + 1) / (len(drawn) + 1))
    return Difference(float(observed), (float(low), float(high)), p)
