"""Thresholds: the most accurate one, and those that keep a target FMR."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import MIN_EXPECTED_FALSE_ACCEPTS, Among, OperatingPoint
from facepairs.errors import BadConfig
from facepairs.evaluation.metrics.arrays import (
    Bools,
    Interval,
    PairPeople,
    check_scores,
    check_two_classes,
)
from facepairs.evaluation.metrics.curves import count_accepted
from facepairs.evaluation.metrics.people import independent_pairs
from facepairs.evaluation.metrics.rates import clopper_pearson, error_rates

FARS = (0.1, 0.01, 0.001)  # targets of bundles and summaries


@dataclass(frozen=True)
class TarAtFar:
    """True accept rate at a target false accept rate, both from 0 to 1.

    With fewer impostor pairs than `needed`, all that is measured is None and `reason` says why.
    Intervals are Clopper-Pearson, 95 %; they treat the threshold as fixed, although it was chosen
    on the same impostor pairs.
    """

    far: float
    genuine_pairs: int
    impostor_pairs: int
    needed: int
    tar: float | None = None
    threshold: float | None = None
    false_accepts: int | None = None
    tar_interval: Interval | None = None
    far_interval: Interval | None = None
    reason: str | None = None


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


def tar_at_far(genuine: npt.ArrayLike, score: npt.ArrayLike, far: float) -> TarAtFar:
    """Return the TAR at the smallest threshold whose FMR is at most `far`.

    By convention the threshold comes from the same pairs: the result is a point of the ROC curve,
    not an estimate for other pairs.

    Args:
        genuine: bool[N] or 0 and 1.
        score: float[N], finite.
        far: The target, in [1e-12, 1).

    Raises:
        NotEnough: A class is missing.
        BadData: A score is not finite, or the arrays do not fit together.
        BadConfig: `far` is not in [1e-12, 1).
    """
    labels, scores = check_two_classes(genuine, score)
    genuine_pairs = int(labels.sum())
    point = TarAtFar(far, genuine_pairs, len(labels) - genuine_pairs, pairs_needed(far))
    if point.impostor_pairs < point.needed:
        reason = (
            f"not enough pairs: needs {point.needed} impostor pairs, has {point.impostor_pairs}"
        )
        return replace(point, reason=reason)
    threshold = threshold_at_fmr(scores[~labels], far)
    rates = error_rates(labels, scores >= threshold)
    hits = genuine_pairs - rates.false_rejects
    return replace(
        point,
        tar=hits / genuine_pairs,
        threshold=threshold,
        false_accepts=rates.false_accepts,
        tar_interval=clopper_pearson(hits, genuine_pairs),
        far_interval=rates.fmr_interval,
    )


def thresholds_for(
    genuine: npt.ArrayLike,
    score: npt.ArrayLike,
    targets: Sequence[float] = FARS,
    lookalike: Bools | None = None,
    people: PairPeople | None = None,
) -> list[OperatingPoint]:
    """Return, for each target FMR, the smallest threshold that keeps to it on these pairs.

    Args:
        genuine: bool[N] or 0 and 1.
        score: float[N], finite.
        targets: Target FMRs, each in [1e-12, 1).
        lookalike: bool[N], the impostor pairs that look alike: the FMR among them keeps to the
            target. None where they are not known: that of all impostor pairs does.
        people: Of the pairs. Pairs of the same two people then count once towards the number of
            pairs that a target needs.

    Raises:
        NotEnough: A class is missing.
        BadData: A score is not finite, or the arrays do not fit together.
        BadConfig: A target is not in [1e-12, 1).
    """
    labels, scores = check_two_classes(genuine, score)
    hard = ~labels if lookalike is None else lookalike & ~labels
    available = independent_pairs(hard, people)
    among: Among = "strangers" if lookalike is None else "look-alikes"
    rows = []
    for far in targets:
        threshold = reason = None
        if available < pairs_needed(far):
            once = "" if people is None else ", where every two people count once"
            reason = (
                f"not enough pairs: needs {pairs_needed(far):,} pairs of {among}, has "
                f"{available:,}{once}"
            )
        else:
            threshold = threshold_at_fmr(scores[hard], far)
        rows.append(OperatingPoint(threshold, f"fmr-{far:g}", far, among, reason=reason))
    return rows
