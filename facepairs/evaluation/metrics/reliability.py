"""How far probabilities are from the shares of genuine pairs that they claim, and their cost."""

import math
from typing import NamedTuple

import numpy as np

from facepairs.evaluation.metrics.arrays import Bools, Floats
from facepairs.evaluation.metrics.curves import falling_ranks

BINS = 15


class Reliability(NamedTuple):
    """Bins of a reliability diagram that hold pairs, by rising probability.

    Attributes:
        probability: float64[bins], mean probability of each bin.
        genuine_share: float64[bins], share of its pairs that is genuine.
        weight: float64[bins], share of all weight; sums to 1.
        ece: Expected calibration error, the mean gap between both, weighted.
    """

    probability: Floats
    genuine_share: Floats
    weight: Floats
    ece: float


def equal_weights(genuine: Bools, lookalike: Bools | None = None) -> Floats:
    """Return weights of pairs, float64[N], 1 on average; both classes weigh the same.

    Args:
        genuine: bool[N], with both classes.
        lookalike: bool[N], impostor pairs that look alike; they get half of the impostors' weight
            in addition to their own share of the other half. None weighs impostors alike.
    """
    impostor = ~genuine / (~genuine).sum()
    if lookalike is not None and lookalike.any():
        impostor = (impostor + lookalike / lookalike.sum()) / 2
    weight: Floats = (genuine / genuine.sum() + impostor) * len(genuine) / 2
    return weight


def reliability_curve(
    genuine: Bools,
    probability: Floats,
    lookalike: Bools | None = None,
    bins: int = BINS,
) -> Reliability:
    """Return mean probability and share of genuine pairs in bins of equally many pairs.

    Pairs weigh as in `equal_weights`, because probabilities are for equal priors. Pairs of one
    probability share a bin, the one of their median rank, so the order of pairs does not matter.
    Empty bins are dropped.

    Args:
        genuine: bool[N], with both classes.
        probability: float64[N], 0 to 1, at equal priors.
        lookalike: As for `equal_weights`.
        bins: How many, at least 1.
    """
    weight = equal_weights(genuine, lookalike)
    _, group, sizes = np.unique(probability, return_inverse=True, return_counts=True)
    middle_twice = 2 * np.cumsum(sizes) - sizes - 1  # of the ranks of each group, from 0
    bin_of = (middle_twice * bins // (2 * len(probability)))[group]
    filled = np.bincount(bin_of, minlength=bins) > 0
    mass = np.bincount(bin_of, weight, bins)[filled]
    predicted = np.bincount(bin_of, weight * probability, bins)[filled] / mass
    observed = np.bincount(bin_of, weight * genuine, bins)[filled] / mass
    share = mass / mass.sum()
    ece = float(np.sum(share * np.abs(predicted - observed)))
    return Reliability(predicted, observed, share, ece)


def expected_calibration_error(
    genuine: Bools, probability: Floats, lookalike: Bools | None = None
) -> float:
    """Return the mean gap, 0 to 1, between probability and share of genuine pairs over the bins.

    Chance alone makes it larger than 0: with n pairs in a bin, by about 0.4 / sqrt(n) where
    probabilities are near one half. Arguments are those of `reliability_curve`.

    References:
        Guo et al., *On Calibration of Modern Neural Networks*, ICML 2017; bins of equal mass as in
        Nguyen and O'Connor, EMNLP 2015.
    """
    return reliability_curve(genuine, probability, lookalike).ece


def likelihood_ratio_cost(
    genuine: Bools, log_ratio: Floats, lookalike: Bools | None = None
) -> float:
    """Return the cost of log-likelihood ratios (Cllr) in bits: 0 is perfect, 1 knows nothing.

    Pairs weigh as in `equal_weights`. The cost counts both errors: ratios that separate genuine and
    impostor pairs badly, and ratios that are too large or too small.

    Args:
        genuine: bool[N], with both classes.
        log_ratio: float64[N], natural logarithms of likelihood ratios.
        lookalike: As for `equal_weights`.

    References:
        Brümmer and du Preez, "Application-independent evaluation of speaker detection", Computer
        Speech and Language 20, 2006.
    """
    cost = np.logaddexp(0.0, np.where(genuine, -log_ratio, log_ratio)) / math.log(2)
    return float(np.average(cost, weights=equal_weights(genuine, lookalike)))


def minimum_cost(genuine: Bools, score: Floats, lookalike: Bools | None = None) -> float:
    """Return the lowest Cllr of any ratios that rise with the score: what discrimination costs.

    These ratios are fitted to the very pairs, by pooling adjacent violators. Arguments are those of
    `likelihood_ratio_cost`.
    """
    from sklearn.isotonic import IsotonicRegression

    rank, weight = -falling_ranks(score).astype(np.float64), equal_weights(genuine, lookalike)
    share = IsotonicRegression(y_min=0, y_max=1).fit(rank, genuine, weight).predict(rank)
    with np.errstate(divide="ignore"):  # where all pairs are of one class, the cost is 0
        return likelihood_ratio_cost(genuine, np.log(share) - np.log1p(-share), lookalike)
