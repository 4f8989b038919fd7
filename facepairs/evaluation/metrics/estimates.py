"""Shares of both kinds of pairs with their intervals: balanced accuracy, AUC, TAR at FAR.

Each estimate has the influence of every pair; `intervals` turns influences into intervals.
Differences of two verifiers follow from the differences of influences, because both are measured on
the same pairs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from facepairs.evaluation.metrics.arrays import Bools, Floats, Interval
from facepairs.evaluation.metrics.curves import auc, eer, share_below, threshold_at_fmr
from facepairs.evaluation.metrics.intervals import (
    LEVEL,
    PeopleOfPairs,
    difference_interval,
    rate_interval,
)

CHANCE = 0.5  # the AUC of a verifier that knows nothing
STEPS = 32  # thresholds on either side of the one at a FAR
ALL_BUT_ONE = 1 - 1e-12  # a FAR is below 1
FARTHEST = 30  # times the FAR, or a part of it: the last of these thresholds


@dataclass(frozen=True, eq=False)
class Estimate:
    """A share, and the influence of N pairs on it.

    Attributes:
        value: The share.
        below: float64[N], the influences that give the lower end of its interval.
        above: float64[N], those that give the upper end; the same array where the share changes as
            fast in both directions.
        one_more: What one more event would add, see `intervals.rate_interval`.
    """

    value: float
    below: Floats
    above: Floats
    one_more: float

    def interval(self, pairs: PeopleOfPairs, genuine: Bools) -> Interval:
        """Return the interval of 95 %.

        Args:
            pairs: Who is in the pairs.
            genuine: bool[N].
        """
        ends = [
            rate_interval(
                self.value, pairs.spread((genuine, side), (~genuine, side)), self.one_more
            )
            for side in ([self.below] if self.above is self.below else [self.below, self.above])
        ]
        return ends[0][0], ends[-1][1]


def difference(
    first: Estimate, second: Estimate, pairs: PeopleOfPairs, genuine: Bools
) -> tuple[float, Interval]:
    """Return the first share less the second, and the interval of 95 % of the difference."""
    gap, one_more = first.value - second.value, max(first.one_more, second.one_more)
    # Thresholds of both move together: both become stricter, or laxer.
    sides = [first.below - second.below, first.above - second.above]
    spreads = [pairs.spread((genuine, side), (~genuine, side)) for side in sides]
    ends = [difference_interval(gap, spread, one_more) for spread in spreads]
    return gap, (min(low for low, _ in ends), max(high for _, high in ends))


def difference_of_rates(
    first: Estimate, second: Estimate, pairs: PeopleOfPairs, genuine: Bools
) -> tuple[float, Interval]:
    """Return a difference as `difference` does, of rates that may be small.

    Few people decide a small rate, so its interval is wider above it than below. Each end of the
    interval of the difference combines the ends of both, by how much the rates vary together.

    References:
        Zou and Donner, "Construction of confidence limits about effect measures", Statistics in
        Medicine 27, 2008.
    """
    gap, (low, high) = difference(first, second, pairs, genuine)
    influences = (first.below, second.below, first.below - second.below)
    one, other, both = (pairs.spread((genuine, i), (~genuine, i)).variance for i in influences)
    scale = 2 * math.sqrt(one * other)
    together = min(1.0, max(-1.0, (one + other - both) / scale)) if scale else 0.0
    ends = [estimate.interval(pairs, genuine) for estimate in (first, second)]
    below, above = zip(
        *(
            (e.value - low, high - e.value)
            for e, (low, high) in zip((first, second), ends, strict=True)
        ),
        strict=True,
    )
    reaches = [
        math.sqrt(max(0.0, a * a + b * b - 2 * together * a * b))
        for a, b in ((below[0], above[1]), (above[0], below[1]))
    ]
    return gap, (max(-1.0, min(low, gap - reaches[0])), min(1.0, max(high, gap + reaches[1])))


def balanced_accuracy(pairs: PeopleOfPairs, genuine: Bools, accepted: Bools) -> Estimate:
    """Return the mean of 1 - FMR and 1 - FNMR.

    Args:
        pairs: Who is in the pairs.
        genuine: bool[N], with both classes.
        accepted: bool[N], the decisions.
    """
    influence, rates = np.empty(len(genuine)), []
    for members, wrong in ((~genuine, accepted), (genuine, ~accepted)):
        of = int(members.sum())
        rates.append(int((members & wrong).sum()) / of)
        influence[members] = (rates[-1] - wrong[members]) / (2 * of)
    one_more = 1 / (2 * _fewest(pairs, genuine))
    return Estimate(1 - sum(rates) / 2, influence, influence, one_more)


def share_of(pairs: PeopleOfPairs, members: Bools, events: Bools) -> Estimate:
    """Return the share of some pairs with an event, such as the FMR.

    Args:
        pairs: Who is in the pairs.
        members: bool[N], the pairs that count, at least one.
        events: bool[N], the pairs with the event.
    """
    of = int(members.sum())
    rate = int((members & events).sum()) / of
    influence = np.where(members, (events - rate) / of, 0.0)
    return Estimate(rate, influence, influence, 1 / pairs.trials(members))


def area(pairs: PeopleOfPairs, genuine: Bools, score: Floats) -> Estimate:
    """Return the AUC.

    The influence of a pair is DeLong's component: the share of pairs of the other class that it is
    in the right order with, less the AUC. One more person is taken to be no better than chance.

    Args:
        pairs: Who is in the pairs.
        genuine: bool[N], with both classes.
        score: float64[N].

    References:
        DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988; computed in O(n log n) as by Sun and
        Xu, IEEE Signal Processing Letters 21, 2014.
    """
    positive, negative = score[genuine], score[~genuine]
    influence = np.empty(len(score))
    influence[genuine] = share_below(np.sort(negative), positive)
    influence[~genuine] = 1 - share_below(np.sort(positive), negative)
    for members in (genuine, ~genuine):
        influence[members] -= influence[members].mean()
        influence[members] /= members.sum()
    return Estimate(auc(genuine, score), influence, influence, CHANCE / _fewest(pairs, genuine))


def _fewest(pairs: PeopleOfPairs, genuine: Bools) -> int:
    """Return the number of independent trials of the rarer class."""
    return min(pairs.trials(genuine), pairs.trials(~genuine))


def tar_at_far(pairs: PeopleOfPairs, genuine: Bools, score: Floats, far: float) -> Estimate:
    """Return the share of genuine pairs accepted at the lowest threshold that keeps to a FAR.

    The threshold comes from the same impostor pairs, so it is uncertain, too: an impostor pair
    moves it, and with it the TAR, by the slope of the ROC curve. The slope is that of the chord to
    the nearest stricter threshold (for the lower end) or laxer one (for the upper end) whose own
    interval of the FMR does not contain the FAR; none is stricter than just above the highest
    impostor score.

    Args:
        pairs: Who is in the pairs.
        genuine: bool[N], with both classes.
        score: float64[N].
        far: The share of strangers, in (0, 1).

    References:
        Hsieh and Turnbull, "Nonparametric and semiparametric estimation of the receiver operating
        characteristic curve", Annals of Statistics 24, 1996: the influence of both classes.
    """
    threshold, ends = _around(pairs, genuine, score, far)
    accepted = score >= threshold
    rates = [float(accepted[members].mean()) for members in (genuine, ~genuine)]
    sides = []
    for end in ends:
        there = score >= end
        gaps = [there[m].mean() - rate for m, rate in zip((genuine, ~genuine), rates, strict=True)]
        slope = gaps[0] / gaps[1] if gaps[1] else 0.0
        influence = np.where(
            genuine,
            (accepted - rates[0]) / genuine.sum(),
            -slope * (accepted - rates[1]) / (~genuine).sum(),
        )
        sides.append(influence)
    return Estimate(rates[0], sides[0], sides[1], 1 / pairs.trials(genuine))


def equal_error(pairs: PeopleOfPairs, genuine: Bools, score: Floats) -> Estimate:
    """Return the equal error rate.

    Where one error rate rises, the threshold moves until both are equal again. So the influence of
    a pair is weighted by how fast the other class's error changes there: the slope of the ROC
    curve, that of the chord between the strictest and the laxest threshold whose own interval of
    the FMR contains the EER.

    Args:
        pairs: Who is in the pairs.
        genuine: bool[N], with both classes.
        score: float64[N].
    """
    value = eer(genuine, score)
    threshold, ends = _around(pairs, genuine, score, min(value, ALL_BUT_ONE))
    between = (score >= min(ends)) & (score < max(ends))
    tar, far = (float(between[members].mean()) for members in (genuine, ~genuine))
    weight = far / (tar + far) if tar + far else 0.5  # of genuine pairs
    accepted, influence = score >= threshold, np.empty(len(score))
    for members, change in ((genuine, -weight), (~genuine, 1 - weight)):
        influence[members] = change * (accepted - accepted[members].mean())[members] / members.sum()
    return Estimate(value, influence, influence, 1 / _fewest(pairs, genuine))


def _around(
    pairs: PeopleOfPairs, genuine: Bools, score: Floats, far: float
) -> tuple[float, Interval]:
    """Return the lowest threshold that keeps to a FAR, and the strictest and laxest around it."""
    impostor = np.sort(score[~genuine])[::-1]
    threshold = threshold_at_fmr(impostor, far)
    factors = np.geomspace(1 / FARTHEST, FARTHEST, 2 * STEPS)
    ranks = np.unique(np.append(0, (factors * far * len(impostor)).astype(np.int64)))
    ranks = ranks[ranks < len(impostor)]
    with np.errstate(over="ignore"):  # of the largest float
        grid = np.unique(np.append(np.nextafter(impostor[ranks], np.inf), threshold))
    place = np.searchsorted(grid, score, side="right")
    _, low, high = pairs.rates_at(~genuine, place, len(grid))
    return threshold, thresholds_around(grid, low, high, far)


def thresholds_around(grid: Floats, low: Floats, high: Floats, target: float) -> Interval:
    """Return the nearest thresholds whose rate is surely below a target, and surely above it.

    The ends of the grid where none is.

    Args:
        grid: float64[T], rising thresholds.
        low: float64[T], lower ends of the intervals of the rate at each threshold, not rising.
        high: float64[T], their upper ends, not rising.
        target: The rate.

    Returns:
        The stricter threshold and the laxer one.
    """
    stricter = min(int((high >= target).sum()), len(grid) - 1)
    laxer = max(int((low > target).sum()) - 1, 0)
    return float(grid[stricter]), float(grid[laxer])


def over_folds(values: Sequence[float]) -> tuple[float, float, Interval]:
    """Return the mean of rates of folds, its standard error, and Student's interval of 95 %.

    The standard error is the standard deviation (n - 1) over the root of n.

    Args:
        values: A rate of each fold, 0 to 1; two or more.
    """
    from scipy.special import stdtrit

    mean, error = float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))
    reach = float(stdtrit(len(values) - 1, LEVEL)) * error
    return mean, error, (max(0.0, mean - reach), min(1.0, mean + reach))
