"""How pairs are decided: with given thresholds, or with those of other parts.

No threshold is judged on the pairs it was chosen on. Either the caller brings thresholds, or each
part of the pairs is decided with a threshold chosen on the other parts.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import BALANCED, CHOSEN, OperatingPoint
from facepairs.errors import NotEnough
from facepairs.evaluation.metrics.arrays import Bools, Floats, Ints
from facepairs.evaluation.metrics.curves import best_threshold


class ThresholdFrom(StrEnum):
    """Where the thresholds of decisions come from."""

    MODEL = "model"
    OTHER_FOLDS = "other_folds"
    OTHER_HALF = "other_half"
    OWN_NETWORKS = "own_networks"


# Of the random order of `halves`; any other key would be as fair. Its words are those of
# `random_streams` for this seed, stream 0 (the pairs), epoch 0, block 0; it stays, because
# published figures depend on it.
HALVES_KEY = 20071001


@dataclass(frozen=True, eq=False, kw_only=True)
class Decisions:
    """Decisions on N pairs at an operating point.

    Attributes:
        point: Its name and its threshold, None where parts have their own. Its errors are not
            measured yet.
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
    source: ThresholdFrom = ThresholdFrom.MODEL,
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
    threshold: float | None,
    fold: npt.ArrayLike | None = None,
) -> Decisions:
    """Decide each pair without a threshold that it took part in choosing.

    Args:
        genuine: bool[N].
        score: float64[N].
        threshold: The model's own, for all pairs. With None, each part of the pairs gets the most
            accurate threshold of the other parts: the folds where there are two or more, and
            otherwise two halves drawn by position and class, never by score. Halves may share
            people.
        fold: int[N], or None.

    Raises:
        NotEnough: A class is too rare outside one of the parts.
    """
    parts, are_folds = parts_of(genuine, fold)
    if threshold is None:
        by_pair = _held_out_thresholds(genuine, score, parts, are_folds)
        source = ThresholdFrom.OTHER_FOLDS if are_folds else ThresholdFrom.OTHER_HALF
        return decide_at(score, OperatingPoint(None, CHOSEN), source, parts, by_pair)
    point = OperatingPoint(float(threshold), BALANCED)
    return decide_at(score, point, parts=parts if are_folds else None)


def _held_out_thresholds(genuine: Bools, score: Floats, parts: Ints, are_folds: bool) -> Floats:
    by_pair = np.empty(len(score))
    for number in np.unique(parts).tolist():
        held_out = parts == number
        others = genuine[~held_out]
        if others.all() or not others.any():
            among, place = genuine, "half of the pairs"
            if are_folds:
                among, place = others, f"the pairs outside fold {number}"
            raise NotEnough(
                f"too few pairs to choose a threshold on {place}: {int(among.sum())} genuine and "
                f"{int((~among).sum())} impostor in all; give at least 2 of each"
            )
        by_pair[held_out] = best_threshold(others, score[~held_out])
    return by_pair


def parts_of(genuine: Bools, fold: npt.ArrayLike | None = None) -> tuple[Ints, bool]:
    """Return the folds as parts where there are two or more, and otherwise two halves.

    Args:
        genuine: bool[N].
        fold: int[N], or None without folds.

    Returns:
        int64[N], the part of each pair, and whether the parts are the folds.
    """
    folds = np.zeros(len(genuine), np.int64) if fold is None else np.asarray(fold, np.int64)
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
