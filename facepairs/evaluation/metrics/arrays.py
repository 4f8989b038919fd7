"""Array types of the metrics, and the checks that every metric makes of its input, once.

Everywhere `genuine` is bool[N], `score` is float[N], a higher score means more alike, and a pair is
accepted when `score >= threshold`.
"""

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadData, NotEnough

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Interval = tuple[float, float]
PairPeople = tuple[Ints, Ints]
"""The people on the left and on the right of N pairs, int[N] each; any numbers."""


def check_scores(score: npt.ArrayLike) -> Floats:
    """Return scores as float64[N].

    Raises:
        NotEnough: There is no score.
        BadData: The array is not flat, or a score is not finite.
    """
    scores = np.asarray(score, np.float64)
    if scores.ndim != 1:
        raise BadData(f"scores must be a flat array, not one of shape {scores.shape}")
    if not len(scores):
        raise NotEnough("has 0 pairs; needs at least 1 to measure anything")
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise BadData(f"score {bad[0]} is {scores[bad[0]]}; every score must be a finite number")
    return scores


def check_flags(values: npt.ArrayLike, shape: tuple[int, ...], name: str = "genuine") -> Bools:
    """Return an array of truth values, given as booleans or as 1 and 0, as bool[N].

    Args:
        values: Booleans, or 1 and 0.
        shape: The shape they must have.
        name: What messages call them.

    Raises:
        BadData: The array has another shape, or another value.
    """
    flags = np.asarray(values)
    if flags.shape != shape:
        raise BadData(
            f"{name} has shape {flags.shape}, the other values {shape}; they must be of one length"
        )
    if flags.dtype != np.bool_ and not np.isin(flags, (0, 1)).all():
        raise BadData(f"{name} must be True (1) or False (0) for every pair")
    return flags.astype(np.bool_)


def check_pairs(genuine: npt.ArrayLike, score: npt.ArrayLike) -> tuple[Bools, Floats]:
    """Return `genuine` as bool[N] and `score` as float64[N]; one class alone is allowed.

    Raises:
        NotEnough: There is no pair.
        BadData: The arrays are not flat or of one length, or hold unusable values.
    """
    scores = check_scores(score)
    return check_flags(genuine, scores.shape), scores


def check_two_classes(genuine: npt.ArrayLike, score: npt.ArrayLike) -> tuple[Bools, Floats]:
    """Return `genuine` as bool[N] and `score` as float64[N], with at least one pair of each class.

    Raises:
        NotEnough: A class is missing.
        BadData: The arrays are not flat or of one length, or hold unusable values.
    """
    labels, scores = check_pairs(genuine, score)
    count = int(labels.sum())
    if count in (0, len(labels)):
        raise NotEnough(
            "needs at least 1 genuine and 1 impostor pair, "
            f"has {count} genuine and {len(labels) - count} impostor"
        )
    return labels, scores


def check_folds(fold: npt.ArrayLike | None, pairs: int) -> Ints:
    """Return the fold of each pair as int64[pairs]; without folds all are 0.

    Raises:
        BadData: There is not one number for each pair.
    """
    folds = np.zeros(pairs, np.int64) if fold is None else np.asarray(fold, np.int64)
    if folds.shape != (pairs,):
        raise BadData(
            f"fold has shape {folds.shape}; give one number for each of the {pairs} pairs"
        )
    return folds
