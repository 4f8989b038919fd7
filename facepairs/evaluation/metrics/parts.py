"""Parts of scored pairs: whatever is chosen for one part is chosen on the other parts."""

import numpy as np
import numpy.typing as npt

from facepairs.evaluation.metrics.arrays import Bools, Ints, check_folds

# Of the fixed random order; any other key would be as fair. Its words are those of
# `random_streams` for this seed, stream 0 (the pairs), epoch 0, block 0; it stays, because
# published figures depend on it.
HALVES_KEY = 20071001


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
