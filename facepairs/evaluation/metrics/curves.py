"""The ROC curve: its area, the equal error rate, and thresholds at its points."""

import math

import numpy as np

from facepairs.data.minimums import MIN_EXPECTED_FALSE_ACCEPTS
from facepairs.errors import BadConfig
from facepairs.evaluation.metrics.arrays import Bools, Floats, Ints

FARS = (0.1, 0.01, 0.001)  # targets of bundles and summaries


def auc(genuine: Bools, score: Floats) -> float:
    """Return the area under the ROC curve: P(genuine > impostor) + P(genuine = impostor) / 2.

    Exact up to the last division: counts of pairs are whole, also as floats. Constant scores have
    0.5.

    References:
        Hanley and McNeil, Radiology 143, 1982.
    """
    return weighted_auc(*weights_by_rank(falling_ranks(score), genuine, np.ones(len(score))))


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


def best_threshold(genuine: Bools, score: Floats) -> float:
    """Return the threshold of highest balanced accuracy on these pairs, midway between two scores.

    Of several equally good ones, the one in the middle. Its accuracy on these very pairs is too
    optimistic: report it on others.
    """
    values = np.unique(score)[::-1]
    counts = weights_by_rank(falling_ranks(score), genuine, np.ones(len(score)))
    hits, false_accepts = map(np.cumsum, counts)
    # The gain in balanced accuracy, in whole numbers, when the 0, 1, … highest are accepted.
    gain = np.append(0, hits * false_accepts[-1] - false_accepts * hits[-1])
    best = np.flatnonzero(gain == gain.max())
    place = int(best[(len(best) - 1) // 2])
    if place == 0:
        return math.nextafter(float(values[0]), math.inf)
    # Accepting all gains no more than accepting none, so some score is rejected here.
    lowest_accepted, highest_rejected = (float(value) for value in values[place - 1 : place + 1])
    middle = lowest_accepted / 2 + highest_rejected / 2
    return middle if highest_rejected < middle <= lowest_accepted else lowest_accepted


def threshold_at_fmr(impostor_scores: Floats, fmr: float) -> float:
    """Return the smallest threshold whose FMR on these impostor pairs is at most `fmr`.

    It is the float64 just above the first impostor score that must be rejected. Impostor pairs of
    that same score are rejected too, so the FMR never exceeds its target. Compare in float64.

    Args:
        impostor_scores: float64[N], at least one.
        fmr: The target, in [0, 1).
    """
    pairs = len(impostor_scores)
    allowed = int(fmr * pairs)
    while (allowed + 1) / pairs <= fmr:  # fmr * n may round to either side of a whole number
        allowed += 1
    while allowed / pairs > fmr:
        allowed -= 1
    place = pairs - 1 - allowed
    return math.nextafter(float(np.partition(impostor_scores, place)[place]), math.inf)


def pairs_needed(far: float) -> int:
    """Return how many impostor pairs a target FAR needs.

    Raises:
        BadConfig: `far` is not in [1e-12, 1).
    """
    if not 1e-12 <= far < 1:
        raise BadConfig(f"far must be from 1e-12 to below 1, not {far}")
    return math.ceil(MIN_EXPECTED_FALSE_ACCEPTS / far)


def threshold_at_far(genuine: Bools, score: Floats, far: float) -> float | None:
    """Return the smallest threshold whose FMR is at most `far`; None with too few impostor pairs.

    By convention it comes from the same pairs: the result is a point of the ROC curve, not an
    estimate for other pairs.

    Args:
        genuine: bool[N].
        score: float64[N].
        far: The target, in [1e-12, 1).

    Raises:
        BadConfig: `far` is not in [1e-12, 1).
    """
    impostor = score[~genuine]
    return threshold_at_fmr(impostor, far) if len(impostor) >= pairs_needed(far) else None
