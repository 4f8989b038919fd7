"""Points to draw: the error curves and score histograms of scored pairs, few enough for a page."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.evaluation.metrics import Floats, Roc, both_classes, roc

MOST_POINTS = 600


class Histogram(NamedTuple):
    """`edges` float64[bins + 1]; `genuine`, `impostor` float64[bins]: each class's share a bin."""

    edges: Floats
    genuine: Floats
    impostor: Floats


def drawn_roc(genuine: npt.ArrayLike, score: npt.ArrayLike, points: int = MOST_POINTS) -> Roc:
    """Give the ROC curve in at most some `points` points; whole where it has no more.

    What is left out lies between neighbours that differ by less than an eye can see, whether rates
    are drawn as they are or on logarithmic or normal-deviate axes: a fifth of the points is spread
    evenly over each of FMR and TMR and over the logarithms of FMR and FNMR. Raises as `roc`.
    """
    curve = roc(genuine, score)
    if len(curve.fmr) <= points:
        return curve
    share = points // 5
    even = np.linspace(0, 1, share)
    steep = np.geomspace(1 / len(curve.fmr), 1, share)
    chosen = np.concatenate(
        [
            np.searchsorted(curve.fmr, even),
            np.searchsorted(curve.tmr, even),
            np.searchsorted(curve.fmr, steep),
            np.searchsorted(curve.tmr, 1 - steep),
            [0, len(curve.fmr) - 1],
        ]
    )
    kept = np.unique(np.minimum(chosen, len(curve.fmr) - 1))
    return Roc(*(part[kept] for part in curve))


def score_histogram(genuine: npt.ArrayLike, score: npt.ArrayLike, bins: int = 50) -> Histogram:
    """Count both classes in bins of equal width from the lowest to the highest score.

    Each class's shares sum to 1, whatever their numbers. Raises as `roc`.
    """
    labels, scores = both_classes(genuine, score)
    half = scores / 2  # the range of float64's largest scores would overflow
    low, high = float(half.min()), float(half.max())
    unit = (half - low) / ((high - low) or 1.0)
    place = np.minimum((unit * bins).astype(np.int64), bins - 1)
    counts = [np.bincount(place[kind], minlength=bins) for kind in (labels, ~labels)]
    steps = np.arange(bins + 1) / bins
    edges = 2 * (low * (1 - steps) + high * steps)
    if high == low:
        edges = edges + steps * (abs(low) or 1.0) * 1e-3  # one score alone still has a width
    return Histogram(edges, counts[0] / counts[0].sum(), counts[1] / counts[1].sum())
