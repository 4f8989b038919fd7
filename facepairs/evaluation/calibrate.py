"""What scores of held-out people give a bundle: probability, threshold, rates to promise."""

from typing import Any

import numpy as np
import numpy.typing as npt

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
    else two halves. `source` says in words where the threshold comes from. Raises NotEnough when
    the pairs cannot carry a curve. Pairs come in an order that knows nothing of their scores.
    """
    labels, scores = np.asarray(genuine, bool), np.asarray(score, np.float64)
    curve = fit_logistic(labels, scores)
    part = _halves(labels) if fold is None else np.asarray(fold)
    probability = np.empty(len(labels))
    for number in np.unique(part):
        mine = part == number
        probability[mine] = fit_logistic(labels[~mine], scores[~mine]).probability(scores[mine])
    return {
        "calibration": {
            **curve.to_json(),
            "ece": expected_calibration_error(labels, probability, prior=0.5),
            "genuine_pairs": int(labels.sum()),
            "impostor_pairs": int((~labels).sum()),
        },
        "threshold": curve.threshold,
        "threshold_source": source,
        "thresholds": thresholds_for(labels, scores),
    }


def _halves(genuine: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Deal every class out by turns to parts 0 and 1."""
    half = np.zeros(len(genuine), np.int64)
    for kind in (genuine, ~genuine):
        half[np.flatnonzero(kind)[1::2]] = 1
    return half
