"""How pairs are decided: with given thresholds, with those of other parts, or as a file says.

No threshold is judged on the pairs it was chosen on. Either the caller brings thresholds, or each
part of the pairs is decided with a threshold chosen on the other parts.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from facepairs.bundles.calibration import Calibration
from facepairs.bundles.rates import BALANCED, CHOSEN, FILE, GIVEN, OperatingPoint
from facepairs.errors import BadConfig, BadData, NotEnough
from facepairs.evaluation.metrics.arrays import Bools, Floats, Ints, check_folds
from facepairs.evaluation.metrics.thresholds import best_threshold


class ThresholdFrom(StrEnum):
    """Where the thresholds of decisions come from, in words."""

    CALLER = "given by the caller"
    VERIFIER = "the bundle's own"
    SIDECAR = "the model's own, recorded beside the scores"
    OTHER_FOLDS = "each fold's from the other folds, LFW's standard rule"
    OTHER_HALF = "each half's from the other half of the pairs"
    OWN_NETWORKS = "each fold's from its own network"
    FILE = "decided as in the file"
    PROMISE = "promised by the model"


# Of the random order of `halves`; any other key would be as fair. Its words are those of
# `random_streams` for this seed, stream 0 (the pairs), epoch 0, block 0; it stays, because
# published figures depend on it.
HALVES_KEY = 20071001


@dataclass(frozen=True, eq=False, kw_only=True)
class Decisions:
    """Decisions on N pairs at an operating point.

    Attributes:
        point: Its name and its threshold, None where parts have their own, or where the decisions
            of a file follow none. Its errors are not measured yet.
        accepted: bool[N].
        by_pair: float64[N], the threshold of each pair.
        source: Where thresholds come from.
        parts: int64[N], the folds or halves of the pairs, if there are any.
    """

    point: OperatingPoint
    accepted: Bools
    by_pair: Floats
    source: ThresholdFrom
    parts: Ints | None = None


def decide_at(
    score: Floats,
    point: OperatingPoint,
    source: ThresholdFrom = ThresholdFrom.PROMISE,
    parts: Ints | None = None,
    by_pair: Floats | None = None,
) -> Decisions:
    """Return the decisions on scores, float64[N], at a point or at a threshold for each pair."""
    if by_pair is None:
        by_pair = np.broadcast_to(np.asarray(point.threshold, np.float64), score.shape)
    accepted = score >= by_pair
    return Decisions(point=point, accepted=accepted, by_pair=by_pair, source=source, parts=parts)


def decide(
    genuine: Bools,
    score: Floats,
    threshold: float | Mapping[int, float] | None,
    fold: npt.ArrayLike | None = None,
    source: ThresholdFrom = ThresholdFrom.CALLER,
) -> Decisions:
    """Decide each pair without a threshold that it took part in choosing.

    Args:
        genuine: bool[N].
        score: float64[N].
        threshold: One for all pairs, or one for each fold number. With None, each part of the pairs
            gets the most accurate threshold of the other parts: the folds where there are two or
            more, and otherwise two halves drawn by position and class, never by score. Halves may
            share people.
        fold: int[N], or None.
        source: Where a single threshold comes from.

    Raises:
        NotEnough: A class is too rare outside one of the parts.
        BadData: `fold` does not have one number for each pair, or a fold has no threshold.
        BadConfig: The threshold is not finite.
    """
    if isinstance(threshold, Mapping):
        folds = check_folds(fold, len(score))
        by_pair = np.empty(len(score))
        for number, members in _members_of_folds(folds, threshold, "threshold"):
            by_pair[members] = threshold[number]
        point = OperatingPoint(None, BALANCED)
        return decide_at(score, point, ThresholdFrom.OWN_NETWORKS, folds, by_pair)
    parts, are_folds = parts_of(genuine, fold)
    if threshold is None:
        by_pair = _held_out_thresholds(genuine, score, parts, are_folds)
        source = ThresholdFrom.OTHER_FOLDS if are_folds else ThresholdFrom.OTHER_HALF
        return decide_at(score, OperatingPoint(None, CHOSEN), source, parts, by_pair)
    if not math.isfinite(threshold):
        raise BadConfig(f"threshold is {threshold}; give a finite number")
    name = GIVEN if source is ThresholdFrom.CALLER else BALANCED
    point = OperatingPoint(float(threshold), name)
    return decide_at(score, point, source, parts if are_folds else None)


def decisions_of_file(
    score: Floats, accepted: Bools, fold: npt.ArrayLike | None, threshold: float | None
) -> Decisions:
    """Return the decisions that a file carries, with the threshold that they follow.

    Args:
        score: float64[N].
        accepted: bool[N].
        fold: int[N], or None.
        threshold: What the file's origin says decided; None where it is not known. The threshold
            that fits the decisions best is found then, for reports.
    """
    if threshold is None and accepted.any() and not accepted.all():
        threshold = best_threshold(accepted, score)
    elif threshold is None:
        threshold = float(score.min()) if accepted.all() else math.nextafter(score.max(), math.inf)
    parts, are_folds = parts_of(accepted, fold)
    by_pair = np.full(len(score), threshold)
    follows = ((score >= threshold) == accepted).all()
    return Decisions(
        point=OperatingPoint(threshold if follows else None, FILE),
        accepted=accepted,
        by_pair=by_pair,
        source=ThresholdFrom.FILE,
        parts=parts if are_folds else None,
    )


def _held_out_thresholds(genuine: Bools, score: Floats, parts: Ints, are_folds: bool) -> Floats:
    counts = int(genuine.sum()), int((~genuine).sum())
    if not are_folds and min(counts) < 2:
        raise NotEnough(
            "without a threshold, half of the pairs sets it for the other half: needs 2 genuine "
            f"and 2 impostor pairs, has {counts[0]} and {counts[1]}"
        )
    by_pair = np.empty(len(score))
    for number in np.unique(parts).tolist():
        held_out = parts == number
        try:
            by_pair[held_out] = best_threshold(genuine[~held_out], score[~held_out])
        except NotEnough as error:
            raise NotEnough(f"the pairs outside fold {number} set its threshold: {error}") from None
    return by_pair


def parts_of(genuine: Bools, fold: npt.ArrayLike | None = None) -> tuple[Ints, bool]:
    """Return the folds as parts where there are two or more, and otherwise two halves.

    Args:
        genuine: bool[N].
        fold: int[N], or None without folds.

    Returns:
        int64[N], the part of each pair, and whether the parts are the folds.

    Raises:
        BadData: `fold` does not have one number for each pair.
    """
    folds = check_folds(fold, len(genuine))
    if len(np.unique(folds)) > 1:
        return folds, True
    return halves(genuine), False


def halves(genuine: Bools) -> Ints:
    """Assign each pair to half 1 or 2, each class by a fixed random order of positions.

    Alternating positions would be unfair in a file sorted by score: neighbours that hardly differ
    would always lie in different halves, so that each half knows the other. Raw random bits keep
    the assignment the same in every version of NumPy.

    Args:
        genuine: bool[N].

    Returns:
        int64[N] of 1 and 2.
    """
    half = np.empty(len(genuine), np.int64)
    keys = np.random.Philox(key=HALVES_KEY).random_raw(len(genuine))
    for label in (True, False):
        members = np.flatnonzero(genuine == label)
        half[members[np.argsort(keys[members], kind="stable")]] = np.arange(len(members)) % 2 + 1
    return half


def calibrated_probability(
    score: Floats,
    fold: npt.ArrayLike | None,
    calibration: Calibration | Mapping[int, Calibration] | None,
) -> Floats | None:
    """Return the probability of each pair, float64[N], by one calibration or that of its fold.

    Args:
        score: float64[N].
        fold: int[N], needed when there is a calibration for each fold.
        calibration: One for all pairs, one for each fold, or None.

    Raises:
        BadData: A fold has no calibration.
    """
    if not isinstance(calibration, Mapping):
        return None if calibration is None else calibration.probability(score)
    probability = np.empty(len(score))
    folds = check_folds(fold, len(score))
    for number, members in _members_of_folds(folds, calibration, "calibration"):
        probability[members] = calibration[number].probability(score[members])
    return probability


def _members_of_folds(
    folds: Ints, values: Mapping[int, object], what: str
) -> list[tuple[int, Bools]]:
    """Return the number and the pairs of each fold; BadData where a fold has no value."""
    numbers = np.unique(folds).tolist()
    missing = [number for number in numbers if number not in values]
    if missing:
        raise BadData(f"fold {missing[0]} has scores and no {what}")
    return [(number, folds == number) for number in numbers]
