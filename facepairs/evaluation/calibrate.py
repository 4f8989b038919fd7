"""What scores of held-out people give a bundle: probability, threshold, rates to promise."""

from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.errors import NotEnough
from facepairs.evaluation.calibration import (
    expected_calibration_error,
    fit_logistic,
    thresholds_for,
)


def calibrate(
    genuine: npt.ArrayLike,
    score: npt.ArrayLike,
    fold: npt.ArrayLike | None = None,
    *,
    source: str = "probability one half on held-out people",
) -> dict[str, Any]:
    """Give the manifest's `calibration`, `threshold`, `threshold_source` and `thresholds`.

    `genuine` bool[N], `score` float[N] of people that the network was not trained on. The threshold
    is where the probability is one half, so verdict and probability agree. The calibration error is
    measured on each part of the pairs with the curve of the others: parts are the folds, int[N], or
    else two halves; it is None where one part alone carries no curve. `source` says in words where
    the threshold comes from. Raises NotEnough when all pairs together cannot carry a curve. Pairs
    come in an order that knows nothing of their scores.
    """
    labels, scores = np.asarray(genuine, bool), np.asarray(score, np.float64)
    curve = fit_logistic(labels, scores)
    return {
        "calibration": {
            **curve.to_json(),
            "ece": _cross_fitted_error(labels, scores, fold),
            "genuine_pairs": int(labels.sum()),
            "impostor_pairs": int((~labels).sum()),
        },
        "threshold": curve.threshold,
        "threshold_source": source,
        "thresholds": thresholds_for(labels, scores),
    }


def _cross_fitted_error(
    genuine: npt.NDArray[np.bool_],
    score: npt.NDArray[np.float64],
    fold: npt.ArrayLike | None,
) -> float | None:
    try:
        probability = cross_fitted_probability(genuine, score, fold)
    except NotEnough:
        return None
    return expected_calibration_error(genuine, probability, prior=0.5)


def cross_fitted_probability(
    genuine: npt.NDArray[np.bool_],
    score: npt.NDArray[np.float64],
    fold: npt.ArrayLike | None = None,
) -> npt.NDArray[np.float64]:
    """Give P(genuine | score) of each part of the pairs by the curve of the others: float64[N].

    Parts are the folds, int[N], where there are two or more, else two halves. Raises NotEnough
    where one part alone carries no curve.
    """
    part = np.zeros(0) if fold is None else np.asarray(fold)
    if len(np.unique(part)) < 2:
        part = _halves(genuine)
    probability = np.empty(len(genuine))
    for number in np.unique(part):
        mine = part == number
        probability[mine] = fit_logistic(genuine[~mine], score[~mine]).probability(score[mine])
    return probability


def _halves(genuine: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Deal every class out by turns to parts 0 and 1."""
    half = np.zeros(len(genuine), np.int64)
    for kind in (genuine, ~genuine):
        half[np.flatnonzero(kind)[1::2]] = 1
    return half
