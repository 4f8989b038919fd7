"""Array types of the metrics, and the check of scored pairs where they enter.

Everywhere `genuine` is bool[N], `score` is finite float64[N], a higher score means more alike, and
a pair is accepted when `score >= threshold`. Metrics trust their arrays: whoever brings pairs from
outside passes them through `check_two_classes` once.
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


def check_two_classes(genuine: npt.ArrayLike, score: npt.ArrayLike) -> tuple[Bools, Floats]:
    """Return `genuine` as bool[N] and `score` as float64[N], with at least one pair of each class.

    Args:
        genuine: Booleans, or 1 and 0.
        score: Numbers, as many.

    Raises:
        NotEnough: A class is missing.
        BadData: The arrays are not flat or of one length, or hold unusable values.
    """
    flags, scores = np.asarray(genuine), np.asarray(score, np.float64)
    if scores.ndim != 1 or flags.shape != scores.shape:
        raise BadData(
            f"genuine has shape {flags.shape}, scores {scores.shape}; both must be flat and of one "
            "length"
        )
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise BadData(f"score {bad[0]} is {scores[bad[0]]}; every score must be a finite number")
    if not np.isin(flags, (0, 1)).all():
        raise BadData("genuine must be True (1) or False (0) for every pair")
    labels = flags.astype(np.bool_)
    count = int(labels.sum())
    if count in (0, len(labels)):
        raise NotEnough(
            "needs at least 1 genuine and 1 impostor pair, "
            f"has {count} genuine and {len(labels) - count} impostor"
        )
    return labels, scores
