"""Probabilities from scores: fit them, check them, and choose a bundle's thresholds.

All on pairs of people that the network was not trained on.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from facepairs.bundles.calibration import BundleCalibration, Calibration
from facepairs.bundles.thresholds import FmrThreshold
from facepairs.errors import BadConfig, BadData, NotEnough
from facepairs.evaluation.metrics.arrays import (
    Bools,
    Floats,
    Ints,
    check_open_unit,
    check_pairs,
    check_two_classes,
)
from facepairs.evaluation.metrics.parts import parts_of
from facepairs.evaluation.metrics.thresholds import thresholds_for

MIN_GAP = 1e-5  # between the classes' mean scores, in standard deviations; less is only rounding
OWN_THRESHOLD = "probability one half on held-out people"


@dataclass(frozen=True, eq=False)
class Reliability:
    """Bins of a reliability diagram that hold pairs, by rising probability.

    Attributes:
        probability: float64[bins], mean probability of each bin.
        genuine_share: float64[bins], share of its pairs that is genuine.
        weight: float64[bins], share of all weight; sums to 1.
        pairs: int64[bins], number of pairs.
        ece: Expected calibration error, the mean gap between both, weighted.
    """

    probability: Floats
    genuine_share: Floats
    weight: Floats
    pairs: Ints
    ece: float


@dataclass(frozen=True, kw_only=True)
class FittedCalibration:
    """What the scores of held-out people give a bundle; the fields are those of its manifest.

    `to_plain` gives them as the manifest holds them.
    """

    calibration: BundleCalibration
    threshold: float
    threshold_source: str
    thresholds: list[FmrThreshold]


def calibrate(
    genuine: npt.ArrayLike,
    score: npt.ArrayLike,
    fold: npt.ArrayLike | None = None,
    *,
    source: str = OWN_THRESHOLD,
) -> FittedCalibration:
    """Fit a bundle's probability and choose its thresholds.

    The threshold is where the probability is one half, so verdict and probability agree. The
    calibration error is measured on each part of the pairs with the curve of the other parts.

    Args:
        genuine: bool[N].
        score: float[N], of people that the network was not trained on.
        fold: int[N], the parts for the calibration error; without folds, two halves.
        source: Where the threshold comes from, in words.

    Raises:
        NotEnough: The pairs do not suffice to fit a curve.
        BadData: A score is not finite, or the arrays do not fit together.
    """
    labels, scores = check_two_classes(genuine, score)
    curve = fit_logistic(labels, scores)
    try:
        probability = cross_fitted_probability(labels, scores, fold)
    except NotEnough:  # a part alone does not suffice to fit a curve
        ece = None
    else:
        ece = expected_calibration_error(labels, probability, prior=0.5)
    counts = {"genuine_pairs": int(labels.sum()), "impostor_pairs": int((~labels).sum())}
    fitted = BundleCalibration(curve.scale, curve.offset, ece=ece, **counts)
    return FittedCalibration(
        calibration=fitted,
        threshold=curve.threshold,
        threshold_source=source,
        thresholds=thresholds_for(labels, scores),
    )


def cross_fitted_probability(
    genuine: Bools, score: Floats, fold: npt.ArrayLike | None = None
) -> Floats:
    """Return P(genuine | score) of each part of the pairs by the curve fitted to the other parts.

    Args:
        genuine: bool[N].
        score: float64[N].
        fold: int[N]; parts are the folds where there are two or more, and otherwise two halves.

    Returns:
        float64[N], probabilities at equal priors.

    Raises:
        NotEnough: The other parts of a part do not suffice to fit a curve.
    """
    parts, _ = parts_of(genuine, fold)
    probability = np.empty(len(genuine))
    for number in np.unique(parts):
        held_out = parts == number
        curve = fit_logistic(genuine[~held_out], score[~held_out])
        probability[held_out] = curve.probability(score[held_out])
    return probability


def fit_logistic(genuine: npt.ArrayLike, score: npt.ArrayLike, prior: float = 0.5) -> Calibration:
    """Fit P(genuine | score) by logistic regression, for a share `prior` of genuine pairs.

    Classes are weighted to the prior, whatever their numbers, so that at 0.5 a probability of one
    half means equally likely under equal priors. Targets are Platt's, (n + 1) / (n + 2) and
    1 / (n + 2), rather than 1 and 0: they bound the slope when scores separate the classes fully.

    Args:
        genuine: bool[N] or 0 and 1.
        score: float[N], finite.
        prior: Share of genuine pairs, in (0, 1).

    Raises:
        NotEnough: A class is missing, or genuine pairs do not score higher on average.
        BadData: A score is not finite, or the arrays do not fit together.
        BadConfig: The prior is outside (0, 1).

    References:
        Platt, *Probabilistic Outputs for Support Vector Machines*, 1999.
    """
    labels, scores = check_two_classes(genuine, score)
    check_open_unit("prior", prior)
    half = scores / 2  # the range of float64's largest scores would overflow
    low = float(half.min())
    spread = float(half.max()) - low
    unit = (half - low) / (spread or 1.0)
    mean, deviation = float(unit.mean()), float(unit.std())
    # The slope has the sign of this gap: both are the sign of the loss's gradient at slope 0.
    gap = float(unit[labels].mean() - unit[~labels].mean())
    if gap <= MIN_GAP * deviation:
        raise NotEnough(
            f"{int(labels.sum())} genuine pairs do not score higher on average than "
            f"{int((~labels).sum())} impostor pairs; train longer, or check that higher means more "
            "alike"
        )
    slope, intercept = _regress(labels, (unit - mean) / deviation, prior)
    scale = slope / deviation / spread / 2
    return Calibration(scale, intercept - slope / deviation * (mean + low / spread))


def _regress(genuine: Bools, x: Floats, prior: float) -> tuple[float, float]:
    """Return slope and intercept of the logit over standardised scores.

    A soft target t is the same pair twice: once genuine with weight t, once impostor with 1 - t.
    """
    from sklearn.linear_model import LogisticRegression

    weight = _prior_weights(genuine, prior)
    smoothed = 1 / (np.where(genuine, genuine.sum(), (~genuine).sum()) + 2)
    target = np.where(genuine, 1 - smoothed, smoothed)
    # C = inf: no penalty beyond the smoothing, because a penalty depends on the scale of scores.
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-6, max_iter=100)
    model.fit(
        np.tile(x, 2)[:, None],
        np.repeat([True, False], len(x)),
        sample_weight=np.concatenate([weight * target, weight * (1 - target)]),
    )
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def _prior_weights(genuine: Bools, prior: float | None) -> Floats:
    """Return weights, 1 on average, with which genuine pairs make up a share `prior`."""
    if prior is None:
        return np.ones(len(genuine))
    positive = int(genuine.sum())
    weights = (prior / positive, (1 - prior) / (len(genuine) - positive))
    return np.where(genuine, *weights) * len(genuine)


def reliability_curve(
    genuine: npt.ArrayLike,
    probability: npt.ArrayLike,
    bins: int = 15,
    prior: float | None = None,
) -> Reliability:
    """Return mean probability and share of genuine pairs in bins of equally many pairs.

    Pairs of one probability share a bin, the one of their median rank, so the order of pairs does
    not matter. Empty bins are dropped. With a `prior`, classes are weighted to it: needed when a
    calibration for equal priors is judged on pairs of other proportions.

    Args:
        genuine: bool[N] or 0 and 1.
        probability: float[N], 0 to 1.
        bins: How many, at least 1.
        prior: Share of genuine pairs to weight the classes to, in (0, 1).

    Raises:
        NotEnough: There is no pair, or with a prior, a class is missing.
        BadData: A probability is outside 0..1, or the arrays do not fit together.
        BadConfig: `bins` is below 1, or the prior outside (0, 1).
    """
    if prior is None:
        labels, chances = check_pairs(genuine, probability)
    else:
        labels, chances = check_two_classes(genuine, probability)
        check_open_unit("prior", prior)
    if bins < 1:
        raise BadConfig(f"bins must be 1 or more, not {bins}")
    if chances.min() < 0 or chances.max() > 1:
        raise BadData(f"probabilities must be 0 to 1, not {chances.min()} to {chances.max()}")
    weight = _prior_weights(labels, prior)
    _, group, sizes = np.unique(chances, return_inverse=True, return_counts=True)
    middle_twice = 2 * np.cumsum(sizes) - sizes - 1  # of the ranks of each group, from 0
    bin_of = (middle_twice * bins // (2 * len(chances)))[group]
    pairs = np.bincount(bin_of, minlength=bins)
    filled = pairs > 0
    mass = np.bincount(bin_of, weight, bins)[filled]
    predicted = np.bincount(bin_of, weight * chances, bins)[filled] / mass
    observed = np.bincount(bin_of, weight * labels, bins)[filled] / mass
    share = mass / mass.sum()
    ece = float(np.sum(share * np.abs(predicted - observed)))
    return Reliability(predicted, observed, share, pairs[filled], ece)


def expected_calibration_error(
    genuine: npt.ArrayLike,
    probability: npt.ArrayLike,
    bins: int = 15,
    prior: float | None = None,
) -> float:
    """Return the mean gap, 0 to 1, between probability and share of genuine pairs over the bins.

    Chance alone makes it larger than 0: with n pairs in a bin, by about 0.4 / sqrt(n) where
    probabilities are near one half.

    Args:
        genuine: bool[N] or 0 and 1.
        probability: float[N], 0 to 1.
        bins: How many, at least 1.
        prior: As in `reliability_curve`.

    Raises:
        NotEnough, BadData, BadConfig: As in `reliability_curve`.

    References:
        Guo et al., *On Calibration of Modern Neural Networks*, ICML 2017; bins of equal mass as in
        Nguyen and O'Connor, EMNLP 2015.
    """
    return reliability_curve(genuine, probability, bins, prior).ece
