"""How far probabilities are from the shares of genuine pairs that they claim."""

from typing import NamedTuple

import numpy as np

from facepairs.evaluation.metrics.arrays import Bools, Floats

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
