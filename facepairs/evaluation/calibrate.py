"""What scores of held-out people give a bundle: probability, threshold, rates to promise."""

from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.evaluation.calibration import (
    expected_calibration_error,
    fit_logistic,
    thresholds_for,
)


def calibrate(genuine: npt.ArrayLike, score: npt.ArrayLike) -> dict[str, Any]:
    """Give the manifest's `calibration`, `threshold`, `threshold_source` and `thresholds`.

    `genuine` bool[N], `score` float[N] of people that the network was not trained on. The threshold
    is where the probability is one half, so verdict and probability agree. The calibration error is
    measured on each half of the pairs with the curve of the other half. Raises NotEnough when the
    pairs cannot carry a curve. Pairs come in an order that knows nothing of their scores.
    """
    labels, scores = np.asarray(genuine, bool), np.asarray(score, np.float64)
    curve = fit_logistic(labels, scores)
    half = np.zeros(len(labels), bool)
    for kind in (labels, ~labels):
        half[np.flatnonzero(kind)[::2]] = True
    probability = np.empty(len(labels))
    for part in (half, ~half):
        probability[part] = fit_logistic(labels[~part], scores[~part]).probability(scores[part])
    return {
        "calibration": {
            **curve.to_json(),
            "ece": expected_calibration_error(labels, probability, prior=0.5),
            "genuine_pairs": int(labels.sum()),
            "impostor_pairs": int((~labels).sum()),
        },
        "threshold": curve.threshold,
        "threshold_source": "probability one half on held-out people",
        "thresholds": thresholds_for(labels, scores),
    }
