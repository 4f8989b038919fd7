"""Metrics by hand, and what they refuse."""

import math

import numpy as np
import pytest
from by_hand import accuracy
from figures import checked, figures_of

from facepairs.errors import BadConfig, BadData
from facepairs.evaluation.metrics import curves
from facepairs.evaluation.metrics.arrays import check_two_classes
from facepairs.evaluation.metrics.curves import pairs_needed, threshold_at_fmr
from facepairs.evaluation.metrics.estimates import over_folds
from facepairs.evaluation.metrics.intervals import clopper_pearson

auc, eer = checked(curves.auc), checked(curves.eer)
best_threshold = checked(curves.best_threshold)
threshold_at_far = checked(curves.threshold_at_far)

# ROC, AUC, EER.


def test_separated_reversed_and_constant_scores():
    genuine = [True, True, False, False, False]
    apart = [3.0, 2.0, 1.0, 0.0, 0.0]
    assert (auc(genuine, apart), eer(genuine, apart)) == (1, 0)
    reverse = [-s for s in apart]
    assert (auc(genuine, reverse), eer(genuine, reverse)) == (0, 1)
    same = [0.1] * 5
    assert (auc(genuine, same), eer(genuine, same)) == (0.5, 0.5)
    assert accuracy(genuine, same, best_threshold(genuine, same)) == 0.6


def test_auc_counts_beyond_32_bits():
    genuine = np.repeat([True, False], 100_000)
    score = np.arange(200_000)[::-1]
    assert auc(genuine, score) == 1
    assert auc(~genuine, score) == 0


# Thresholds.


def test_a_pair_at_the_threshold_is_accepted():
    genuine, score = [True, True, False, False], [2.0, 1.0, 1.0, 0.0]
    for threshold, passed, missed in ((1.0, 1, 0), (np.nextafter(1.0, 2), 0, 1), (2.0, 0, 1)):
        errors = figures_of(genuine, score, threshold).point.errors
        assert (errors.fmr.count, errors.fnmr.count) == (passed, missed)


def test_best_threshold_is_midway_between_scores_and_in_the_middle_of_ties():
    assert best_threshold([1, 1, 0, 0], [9.0, 5.0, 2.0, 0.0]) == 3.5
    assert best_threshold([1, 0, 1, 0, 1, 0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]) == 3.5
    assert best_threshold([1, 0, 0, 0], [2.0, 2.0, 1.0, 0.0]) == 1.5  # classes count equally
    assert best_threshold([1, 1, 1, 0], [2.0, 1.0, 0.0, 0.0]) == 0.5
    close = 1.0, np.nextafter(1.0, 2)
    assert best_threshold([0, 1], close) == close[1]  # nothing lies between
    huge = -1.7e308, 1.7e308
    assert best_threshold([0, 1], huge) == 0


@pytest.mark.parametrize(("fmr", "accepted"), [(0, 0), (0.29, 29), (0.57, 57), (0.1, 10)])
def test_threshold_at_fmr_allows_whole_numbers_of_pairs_exactly(fmr, accepted):
    # 0.29 * 100 is 28.999999999999996
    threshold = threshold_at_fmr(np.arange(100.0), fmr)
    assert int((np.arange(100.0) >= threshold).sum()) == accepted


# TAR at FAR.


@pytest.mark.parametrize(
    ("far", "needed"),
    [(0.1, 30), (0.01, 300), (0.001, 3000), (0.3, 10), (0.07, 43)],
)
def test_tar_needs_three_expected_false_accepts(far, needed):
    genuine = np.arange(needed + 1) == needed
    score = np.arange(needed + 1.0)
    assert (score[~genuine] >= threshold_at_far(genuine, score, far)).sum() == 3
    assert threshold_at_far(genuine[1:], score[1:], far) is None
    assert pairs_needed(far) == needed


# Intervals.


def test_clopper_pearson_by_its_definition_and_known_values():
    assert clopper_pearson(5, 10) == pytest.approx((0.18708603, 0.81291397), abs=1e-8)
    assert clopper_pearson(0, 10) == pytest.approx((0, 1 - 0.025**0.1))
    assert clopper_pearson(10, 10) == pytest.approx((0.025**0.1, 1))
    low, high = clopper_pearson(3, 20)

    def at_least(k, p):
        return sum(math.comb(20, i) * p**i * (1 - p) ** (20 - i) for i in range(k, 21))

    assert at_least(3, low) == pytest.approx(0.025)
    assert 1 - at_least(4, high) == pytest.approx(0.025)


def test_figures_over_folds_by_hand():
    mean, error, (low, high) = over_folds([0.1, 0.2, 0.3, 0.6])
    assert mean == pytest.approx(0.3)
    assert error == pytest.approx(math.sqrt((4 + 1 + 0 + 9) / 3) / 20)
    assert (low, high) == (0, pytest.approx(0.3 + 3.1824463 * error))  # Student's, 3 degrees
    assert over_folds([0.5] * 10) == (0.5, 0, (0.5, 0.5))


# What is refused.

ENTRIES = [check_two_classes, lambda genuine, score: figures_of(genuine, score, 0.0)]


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("genuine", "score"),
    [
        ([True, False], [1.0, math.nan]),
        ([True, False], [-math.inf, 1.0]),
        ([True, False], [1.0]),
        ([[True, False]], [[1.0, 2.0]]),
        ([1, 2], [1.0, 2.0]),
        ([1, math.nan], [1.0, 2.0]),
    ],
)
def test_bad_arrays_are_refused(entry, genuine, score):
    with pytest.raises(BadData):
        entry(genuine, score)


@pytest.mark.parametrize(
    "call",
    [
        lambda: threshold_at_far([True, False], [1.0, 0.0], 0.0),
        lambda: threshold_at_far([True, False], [1.0, 0.0], 1.0),
        lambda: threshold_at_far([True, False], [1.0, 0.0], 5e-324),
    ],
)
def test_bad_parameters_are_refused(call):
    with pytest.raises(BadConfig):
        call()
