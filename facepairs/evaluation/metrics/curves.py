"""Area under the ROC curve with its interval, and equal error rate."""

import math
from statistics import NormalDist

import numpy as np

from facepairs.evaluation.metrics.arrays import Bools, Floats, Interval, Ints
from facepairs.evaluation.metrics.intervals import clopper_pearson


def count_accepted(genuine: Bools, score: Floats) -> tuple[Floats, Ints, Ints]:
    """Return the distinct scores, falling, and the genuine and impostor pairs accepted at each."""
    order = np.argsort(score)[::-1]
    ranked = score[order]
    last = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    genuine_accepted = np.cumsum(genuine[order], dtype=np.int64)[last]
    return ranked[last], genuine_accepted, last + 1 - genuine_accepted


def auc(genuine: Bools, score: Floats) -> float:
    """Return the area under the ROC curve: P(genuine > impostor) + P(genuine = impostor) / 2.

    Counted in whole numbers, hence exact up to the last division; constant scores have 0.5.

    References:
        Hanley and McNeil, Radiology 143, 1982.
    """
    _, hits, false_accepts = count_accepted(genuine, score)
    wins_twice = np.sum(np.diff(false_accepts, prepend=0) * (hits + np.append(0, hits[:-1])))
    return int(wins_twice) / (2 * int(hits[-1]) * int(false_accepts[-1]))


def eer(genuine: Bools, score: Floats) -> float:
    """Return the equal error rate: where the ROC curve, points joined by lines, has FMR = FNMR.

    (Not the ROC's convex hull, which is lower.) Constant scores have 0.5.
    """
    from sklearn.metrics import roc_curve

    fmr, tmr, _ = roc_curve(genuine, score, drop_intermediate=False)
    gap = fmr - (1 - tmr)  # rises from -1 to 1 at every point
    after = int(np.argmax(gap >= 0))
    share = gap[after] / (gap[after] - gap[after - 1])
    return float(fmr[after] - share * (fmr[after] - fmr[after - 1]))


def auc_interval(genuine: Bools, score: Floats) -> Interval:
    """Return the AUC's interval of 95 %: DeLong's variance, a normal interval on the logit scale.

    Where DeLong's variance is 0 (classes fully separated, constant scores) the interval is the
    exact binomial one of min(genuine, impostor) disjoint comparisons. With a single pair of a class
    it is (0, 1).

    Args:
        genuine: bool[N], with both classes.
        score: float64[N].

    References:
        DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988; computed in O(n log n) as by Sun and
        Xu, IEEE Signal Processing Letters 21, 2014.
    """
    positive, negative = np.sort(score[genuine]), np.sort(score[~genuine])
    fewest = min(len(positive), len(negative))
    if fewest == 1:
        return 0.0, 1.0
    below_genuine = share_below(negative, positive)
    above_impostor = 1 - share_below(positive, negative)
    area = auc(genuine, score)
    variance = below_genuine.var(ddof=1) / len(positive) + above_impostor.var(ddof=1) / len(
        negative
    )
    if not variance:
        return clopper_pearson(area * fewest, fewest)
    centre = math.log(area / (1 - area))
    reach = NormalDist().inv_cdf(0.975) * math.sqrt(variance) / (area * (1 - area))
    low, high = ((1 + math.tanh(end / 2)) / 2 for end in (centre - reach, centre + reach))
    return low, high


def share_below(sorted_scores: Floats, values: Floats) -> Floats:
    """Return, for each value, the share of `sorted_scores` below it; ties count half."""
    below = np.searchsorted(sorted_scores, values, "left")
    return (below + np.searchsorted(sorted_scores, values, "right")) / (2 * len(sorted_scores))


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
