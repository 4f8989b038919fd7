"""Thresholds: the most accurate one, and those that keep a target FMR."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.data.minimums import MIN_EXPECTED_FALSE_ACCEPTS
from facepairs.errors import BadConfig
from facepairs.evaluation.metrics.arrays import check_scores, check_two_classes
from facepairs.evaluation.metrics.curves import count_accepted

FARS = (0.1, 0.01, 0.001)  # targets of bundles and summaries


class TarAtFar(NamedTuple):
    """A threshold that keeps to a false accept rate, and the pairs accepted at it.

    Attributes:
        threshold: The lowest one that does.
        genuine_accepted: Of the genuine pairs; their share is the true accept rate (TAR).
        false_accepts: Of the impostor pairs.
    """

    threshold: float
    genuine_accepted: int
    false_accepts: int


def best_threshold(genuine: npt.ArrayLike, score: npt.ArrayLike) -> float:
    """Return the threshold of highest balanced accuracy on these pairs, midway between two scores.

    Of several equally good ones, the one in the middle. Its accuracy on these very pairs is too
    optimistic: report it on others.

    Raises:
        NotEnough: A class is missing.
        BadData: A score is not finite, or the arrays do not fit together.
    """
    labels, scores = check_two_classes(genuine, score)
    values, hits, false_accepts = count_accepted(labels, scores)
    # The gain in balanced accuracy, in whole numbers, when the 0, 1, … highest are accepted.
    gain = np.append(0, hits * false_accepts[-1] - false_accepts * hits[-1])
    best = np.flatnonzero(gain == gain.max())
    place = int(best[(len(best) - 1) // 2])
    if place == 0:
        return math.nextafter(float(values[0]), math.inf)
    lowest_accepted = float(values[place - 1])
    if place == len(values):
        return lowest_accepted
    highest_rejected = float(values[place])
    middle = lowest_accepted / 2 + highest_rejected / 2
    return middle if highest_rejected < middle <= lowest_accepted else lowest_accepted


def threshold_at_fmr(impostor_scores: npt.ArrayLike, fmr: float) -> float:
    """Return the smallest threshold whose FMR on these impostor pairs is at most `fmr`.

    It is the float64 just above the first impostor score that must be rejected. Impostor pairs of
    that same score are rejected too, so the FMR never exceeds its target. Compare in float64.

    Raises:
        BadConfig: fmr is not in [0, 1).
        NotEnough: There is no score.
        BadData: A score is not finite.
    """
    if not 0 <= fmr < 1:
        raise BadConfig(f"fmr must be from 0 to below 1, not {fmr}")
    scores = check_scores(impostor_scores)
    allowed = int(fmr * len(scores))
    while (allowed + 1) / len(scores) <= fmr:  # fmr * n may round to either side of a whole number
        allowed += 1
    while allowed / len(scores) > fmr:
        allowed -= 1
    place = len(scores) - 1 - allowed
    return math.nextafter(float(np.partition(scores, place)[place]), math.inf)


def pairs_needed(far: float) -> int:
    """Return how many impostor pairs a target FAR needs.

    Raises:
        BadConfig: `far` is not in [1e-12, 1).
    """
    if not 1e-12 <= far < 1:
        raise BadConfig(f"far must be from 1e-12 to below 1, not {far}")
    return math.ceil(MIN_EXPECTED_FALSE_ACCEPTS / far)


def tar_at_far(genuine: npt.ArrayLike, score: npt.ArrayLike, far: float) -> TarAtFar | None:
    """Return the smallest threshold whose FMR is at most `far`, and what it accepts.

    By convention the threshold comes from the same pairs: the result is a point of the ROC curve,
    not an estimate for other pairs.

    Args:
        genuine: bool[N] or 0 and 1.
        score: float[N], finite.
        far: The target, in [1e-12, 1).

    Returns:
        None with fewer than `pairs_needed(far)` impostor pairs.

    Raises:
        NotEnough: A class is missing.
        BadData: A score is not finite, or the arrays do not fit together.
        BadConfig: `far` is not in [1e-12, 1).
    """
    labels, scores = check_two_classes(genuine, score)
    if int((~labels).sum()) < pairs_needed(far):
        return None
    threshold = threshold_at_fmr(scores[~labels], far)
    accepted = scores >= threshold
    return TarAtFar(threshold, int((accepted & labels).sum()), int((accepted & ~labels).sum()))
