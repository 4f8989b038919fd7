"""Fit and check probabilities, and choose thresholds: on held-out identities, then frozen."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.bundles.calibration import Calibration
from facepairs.errors import BadConfig, BadData, NotEnough
from facepairs.evaluation.metrics import (
    Counts,
    Floats,
    both_classes,
    checked_pairs,
    fmr_fnmr,
    tar_at_far,
)

LEAST_GAP = 1e-5  # between the classes' mean scores, in standard deviations: below, mere rounding


class Reliability(NamedTuple):
    """Filled bins, probabilities rising: each field one number a bin.

    `probability` and `genuine_share` are means, `weight` the bin's part of all weight (sum 1),
    float64; `pairs` int64.
    """

    probability: Floats
    genuine_share: Floats
    weight: Floats
    pairs: Counts


def fit_logistic(genuine: npt.ArrayLike, score: npt.ArrayLike, prior: float = 0.5) -> Calibration:
    """Fit P(genuine | score) by logistic regression, for a share `prior` of genuine pairs.

    Classes are weighted to the prior, whatever their numbers, so that at 0.5 a probability of one
    half means equally likely under equal priors. Targets are Platt's, (n + 1) / (n + 2) and
    1 / (n + 2), rather than 1 and 0: they bound the slope when scores separate the classes wholly.
    Raises NotEnough when a class is missing or genuine pairs do not score higher on average,
    BadData for scores that are not finite, BadConfig unless 0 < prior < 1.
    Source: Platt, *Probabilistic Outputs for Support Vector Machines*, 1999.
    """
    labels, scores = both_classes(genuine, score)
    _check_prior(prior)
    half = scores / 2  # the range of float64's largest scores would overflow
    low = float(half.min())
    spread = float(half.max()) - low
    unit = (half - low) / (spread or 1.0)
    mean, deviation = float(unit.mean()), float(unit.std())
    # The slope has the sign of this gap: both are the sign of the loss's gradient at slope 0.
    gap = float(unit[labels].mean() - unit[~labels].mean())
    if gap <= LEAST_GAP * deviation:
        raise NotEnough(
            f"{int(labels.sum())} genuine pairs do not score higher on average than "
            f"{int((~labels).sum())} impostor pairs; train longer, or check that higher means more "
            "alike"
        )
    slope, height = _regress(labels, (unit - mean) / deviation, prior)
    scale = slope / deviation / spread / 2
    return Calibration(scale, height - slope / deviation * (mean + low / spread))


def _regress(genuine: npt.NDArray[np.bool_], x: Floats, prior: float) -> tuple[float, float]:
    """Give slope and height of the logit over standardised scores.

    A soft target t is the same pair twice: once genuine with weight t, once impostor with 1 - t.
    """
    from sklearn.linear_model import LogisticRegression

    weight = _prior_weights(genuine, prior)
    smoothed = 1 / (np.where(genuine, genuine.sum(), (~genuine).sum()) + 2)
    target = np.where(genuine, 1 - smoothed, smoothed)
    # C = inf: no penalty beyond the smoothing, which would depend on how scores are scaled
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-6, max_iter=100)
    model.fit(
        np.tile(x, 2)[:, None],
        np.repeat([True, False], len(x)),
        sample_weight=np.concatenate([weight * target, weight * (1 - target)]),
    )
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def _check_prior(prior: float | None) -> None:
    if prior is not None and not 0 < prior < 1:
        raise BadConfig(f"prior must lie between 0 and 1, not be {prior}")


def _prior_weights(genuine: npt.NDArray[np.bool_], prior: float | None) -> Floats:
    """Give weights, 1 on average, with which genuine pairs make up a share `prior`."""
    if prior is None:
        return np.ones(len(genuine))
    positive = int(genuine.sum())
    each = (prior / positive, (1 - prior) / (len(genuine) - positive))
    return np.where(genuine, *each) * len(genuine)


def reliability_curve(
    genuine: npt.ArrayLike,
    probability: npt.ArrayLike,
    bins: int = 15,
    prior: float | None = None,
) -> Reliability:
    """Give mean probability and share of genuine pairs in bins of equally many pairs.

    Pairs of one probability share a bin, the one that the middle of them falls into, so the order
    of pairs does not matter; bins left empty are dropped. With a `prior`, classes are weighted to
    it: needed when a calibration for equal priors is judged on pairs of other proportions.
    Raises NotEnough without pairs (or, given a prior, without either class), BadData for
    probabilities outside 0..1, BadConfig for bins below 1 or a prior outside (0, 1).
    """
    labels, chances = (checked_pairs if prior is None else both_classes)(genuine, probability)
    _check_prior(prior)
    if bins < 1:
        raise BadConfig(f"bins must be 1 or more, not {bins}")
    if chances.min() < 0 or chances.max() > 1:
        raise BadData(f"probabilities must be 0 to 1, not {chances.min()} to {chances.max()}")
    weight = _prior_weights(labels, prior)
    _, group, sizes = np.unique(chances, return_inverse=True, return_counts=True)
    middle_twice = 2 * np.cumsum(sizes) - sizes - 1  # of each group's ranks, counted from 0
    bin_of = (middle_twice * bins // (2 * len(chances)))[group]
    pairs = np.bincount(bin_of, minlength=bins)
    filled = pairs > 0
    mass = np.bincount(bin_of, weight, bins)[filled]
    return Reliability(
        np.bincount(bin_of, weight * chances, bins)[filled] / mass,
        np.bincount(bin_of, weight * labels, bins)[filled] / mass,
        mass / mass.sum(),
        pairs[filled],
    )


def expected_calibration_error(
    genuine: npt.ArrayLike,
    probability: npt.ArrayLike,
    bins: int = 15,
    prior: float | None = None,
) -> float:
    """Give the mean gap, 0 to 1, between probability and share of genuine pairs over the bins.

    Bins and `prior` as in `reliability_curve`, which it raises like. Chance alone makes it larger
    than 0: with n pairs a bin, by some 0.4 / sqrt(n) where probabilities are near one half.
    Sources: Guo et al., *On Calibration of Modern Neural Networks*, ICML 2017; bins of equal mass
    as Nguyen and O'Connor, EMNLP 2015.
    """
    curve = reliability_curve(genuine, probability, bins, prior)
    return float(np.sum(curve.weight * np.abs(curve.probability - curve.genuine_share)))


def thresholds_for(
    genuine: npt.ArrayLike,
    score: npt.ArrayLike,
    targets: Sequence[float] = (0.1, 0.01, 0.001),
) -> list[dict[str, Any]]:
    """Give, for each target FMR, the smallest threshold that keeps to it here; ready for JSON.

    Each dict has `fmr` (the target), `threshold`, `measured_fmr`, `fmr_interval` [low, high],
    `fnmr`, `fnmr_interval`, `genuine_pairs`, `impostor_pairs`; or, with too few impostor pairs,
    `fmr`, `threshold` None, `reason` and the counts. Raises as `tar_at_far`.
    """
    found: list[dict[str, Any]] = []
    for target in targets:
        point = tar_at_far(genuine, score, target)
        counts = {"genuine_pairs": point.genuine_pairs, "impostor_pairs": point.impostor_pairs}
        if point.threshold is None:
            found.append({"fmr": target, "threshold": None, "reason": point.reason, **counts})
            continue
        rates = fmr_fnmr(genuine, score, point.threshold)
        found.append(
            {
                "fmr": target,
                "threshold": point.threshold,
                "measured_fmr": rates.fmr,
                "fmr_interval": list(rates.fmr_interval),
                "fnmr": rates.fnmr,
                "fnmr_interval": list(rates.fnmr_interval),
                **counts,
            }
        )
    return found
