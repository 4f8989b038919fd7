import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facepairs.errors import BadConfig, BadData, FacepairsError, NotEnough
from facepairs.evaluation import metrics

unhurried = settings(deadline=None)  # the first call imports SciPy
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TIED = st.integers(-3, 3).map(float)


@st.composite
def pairs(draw, values=FINITE | TIED, max_size=24):
    """Give genuine bool[N] and score float64[N] with a pair of either class, often with ties."""
    rows = draw(st.lists(st.tuples(st.booleans(), values), min_size=2, max_size=max_size))
    genuine = np.array([row[0] for row in rows])
    genuine[:2] = draw(st.sampled_from([(True, False), (False, True)]))
    return genuine, np.array([row[1] for row in rows])


# Slow, independent versions.


def slow_auc(genuine, score):
    won = Fraction(0)
    for a in score[genuine]:
        for b in score[~genuine]:
            won += Fraction(int(a > b)) + Fraction(int(a == b), 2)
    return won / (int(genuine.sum()) * int((~genuine).sum()))


def slow_rates(genuine, score, threshold):
    accepts = [s >= threshold for s in score]
    impostors = [a for a, g in zip(accepts, genuine, strict=True) if not g]
    hits = [a for a, g in zip(accepts, genuine, strict=True) if g]
    return Fraction(sum(impostors), len(impostors)), Fraction(len(hits) - sum(hits), len(hits))


def slow_eer(genuine, score):
    points = [slow_rates(genuine, score, t) for t in [math.inf, *sorted(set(score), reverse=True)]]
    for (fmr0, fnmr0), (fmr1, fnmr1) in pairwise(points):
        if fmr1 >= fnmr1:  # fmr0 + t (fmr1 - fmr0) = fnmr0 + t (fnmr1 - fnmr0)
            t = (fnmr0 - fmr0) / ((fmr1 - fmr0) - (fnmr1 - fnmr0))
            return fmr0 + t * (fmr1 - fmr0)
    raise AssertionError("the curve ends at FMR 1, FNMR 0")


def slow_delong_variance(genuine, score):
    def kernel(a, b):
        return float(a > b) + 0.5 * float(a == b)

    positive, negative = score[genuine], score[~genuine]
    v10 = [sum(kernel(a, b) for b in negative) / len(negative) for a in positive]
    v01 = [sum(kernel(a, b) for a in positive) / len(positive) for b in negative]
    area = float(slow_auc(genuine, score))
    s10 = sum((v - area) ** 2 for v in v10) / (len(v10) - 1)
    s01 = sum((v - area) ** 2 for v in v01) / (len(v01) - 1)
    return s10 / len(v10) + s01 / len(v01)


# ROC, AUC, EER.


def test_roc_by_hand():
    curve = metrics.roc([1, 0, 1, 0, 1], [5.0, 5.0, 4.0, 3.0, 1.0])
    assert curve.thresholds.tolist() == [math.inf, 5, 4, 3, 1]
    assert curve.fmr.tolist() == [0, 0.5, 0.5, 1, 1]
    assert curve.tmr.tolist() == [0, 1 / 3, 2 / 3, 2 / 3, 1]


@unhurried
@given(pairs())
def test_roc_and_auc_agree_with_scikit_learn(data):
    from sklearn.metrics import roc_auc_score, roc_curve

    fmr, tmr, thresholds = roc_curve(*data, drop_intermediate=False)
    curve = metrics.roc(*data)
    np.testing.assert_array_equal(curve.thresholds, thresholds)
    np.testing.assert_allclose(curve.fmr, fmr, atol=1e-12)
    np.testing.assert_allclose(curve.tmr, tmr, atol=1e-12)
    assert metrics.auc(*data) == pytest.approx(roc_auc_score(*data), abs=1e-12)


@unhurried
@given(pairs())
def test_every_roc_point_is_what_its_threshold_does(data):
    curve = metrics.roc(*data)
    for threshold, fmr, tmr in zip(*curve, strict=True):
        rates = metrics.fmr_fnmr(*data, threshold)
        assert (rates.fmr, rates.fnmr) == (fmr, pytest.approx(1 - tmr, abs=1e-12))


@unhurried
@given(pairs())
def test_auc_and_eer_agree_with_slow_versions(data):
    assert metrics.auc(*data) == float(slow_auc(*data))
    assert metrics.eer(*data) == pytest.approx(float(slow_eer(*data)), abs=1e-12)


@unhurried
@given(pairs(), st.randoms(use_true_random=False))
def test_order_does_not_matter(data, random):
    genuine, score = data
    order = list(range(len(score)))
    random.shuffle(order)
    other = genuine[order], score[order]
    for far in (0.3, 0.6):
        assert metrics.tar_at_far(*data, far) == metrics.tar_at_far(*other, far)
    for measure in (metrics.auc, metrics.eer, metrics.best_threshold):
        assert measure(*data) == measure(*other)
    assert metrics.auc_interval(*data) == pytest.approx(metrics.auc_interval(*other), abs=1e-12)
    np.testing.assert_array_equal(metrics.roc(*data), metrics.roc(*other))


@unhurried
@given(pairs(), st.data())
def test_strictly_monotone_maps_of_scores_change_no_rate(data, more):
    genuine, score = data
    values, rank = np.unique(score, return_inverse=True)
    images = more.draw(
        st.lists(FINITE, min_size=len(values), max_size=len(values), unique=True).map(sorted)
    )
    mapped = genuine, np.array(images)[rank]
    assert metrics.auc(*data) == metrics.auc(*mapped)
    assert metrics.eer(*data) == metrics.eer(*mapped)
    assert metrics.auc_interval(*data) == metrics.auc_interval(*mapped)
    for far in (0.3, 0.6):
        before, after = metrics.tar_at_far(*data, far), metrics.tar_at_far(*mapped, far)
        assert (before.tar, before.false_accepts) == (after.tar, after.false_accepts)


@unhurried
@given(pairs())
def test_swapped_labels_and_negated_scores_are_the_mirror_image(data):
    genuine, score = data
    mirrored = ~genuine, -score
    assert metrics.auc(*data) == metrics.auc(*mirrored)
    assert metrics.auc(~genuine, score) == pytest.approx(1 - metrics.auc(*data), abs=1e-15)
    assert metrics.eer(*data) == pytest.approx(metrics.eer(*mirrored), abs=1e-12)
    assert metrics.auc_interval(*data) == pytest.approx(metrics.auc_interval(*mirrored), abs=1e-9)


@unhurried
@given(pairs(values=st.integers(-1000, 1000).map(float)), st.integers(-(2**40), 2**40))
def test_a_shift_of_scores_shifts_thresholds_and_nothing_else(data, shift):
    genuine, score = data
    shifted = genuine, score + shift
    assert metrics.auc(*data) == metrics.auc(*shifted)
    assert metrics.eer(*data) == metrics.eer(*shifted)
    assert metrics.accuracy(*data, 0.5) == metrics.accuracy(*shifted, 0.5 + shift)
    assert metrics.best_threshold(*data) + shift == pytest.approx(
        metrics.best_threshold(*shifted), rel=1e-15
    )


def test_scores_apart_reversed_and_constant():
    genuine = [True, True, False, False, False]
    apart = [3.0, 2.0, 1.0, 0.0, 0.0]
    assert (metrics.auc(genuine, apart), metrics.eer(genuine, apart)) == (1, 0)
    reverse = [-s for s in apart]
    assert (metrics.auc(genuine, reverse), metrics.eer(genuine, reverse)) == (0, 1)
    same = [0.1] * 5
    assert (metrics.auc(genuine, same), metrics.eer(genuine, same)) == (0.5, 0.5)
    assert metrics.accuracy(genuine, same, metrics.best_threshold(genuine, same)) == 0.6


def test_auc_counts_beyond_32_bits():
    genuine = np.repeat([True, False], 100_000)
    score = np.arange(200_000)[::-1]
    assert metrics.auc(genuine, score) == 1
    assert metrics.auc(~genuine, score) == 0


# Thresholds.


def test_a_pair_at_the_threshold_is_accepted():
    genuine, score = [True, True, False, False], [2.0, 1.0, 1.0, 0.0]
    assert metrics.accuracy(genuine, score, 1.0) == 0.75
    assert metrics.accuracy(genuine, score, np.nextafter(1.0, 2)) == 0.75
    assert metrics.accuracy(genuine, score, 2.0) == 0.75
    assert metrics.accuracy(genuine, score, math.inf) == 0.5
    assert metrics.accuracy(genuine, score, -math.inf) == 0.5
    at_one = metrics.fmr_fnmr(genuine, score, 1.0)
    assert at_one == metrics.ErrorRates(1, 0, 2, 2)
    assert (at_one.fmr, at_one.fnmr) == (0.5, 0.0)


@unhurried
@given(pairs(), FINITE | TIED)
def test_error_rates_agree_with_a_slow_version_and_lie_in_their_intervals(data, threshold):
    rates = metrics.fmr_fnmr(*data, threshold)
    fmr, fnmr = slow_rates(*data, threshold)
    assert (rates.fmr, rates.fnmr) == (float(fmr), float(fnmr))
    assert rates.fmr_interval[0] <= rates.fmr <= rates.fmr_interval[1]
    assert rates.fnmr_interval[0] <= rates.fnmr <= rates.fnmr_interval[1]
    errors = rates.false_accepts + rates.false_rejects
    assert metrics.accuracy(*data, threshold) == pytest.approx(1 - errors / len(data[0]))


@unhurried
@given(pairs())
def test_no_threshold_is_better_than_the_best(data):
    best = metrics.accuracy(*data, metrics.best_threshold(*data))
    for threshold in [*data[1], math.inf]:
        assert metrics.accuracy(*data, threshold) <= best


def test_best_threshold_is_midway_and_in_the_middle_of_equals():
    assert metrics.best_threshold([1, 1, 0, 0], [9.0, 5.0, 2.0, 0.0]) == 3.5
    assert metrics.best_threshold([1, 0, 1, 0, 1, 0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]) == 3.5
    assert metrics.best_threshold([1, 0, 0], [0.0, 0.0, 0.0]) > 0  # best refuse all
    assert metrics.best_threshold([1, 1, 0], [0.0, 0.0, 0.0]) == 0  # best accept all
    close = 1.0, np.nextafter(1.0, 2)
    assert metrics.best_threshold([0, 1], close) == close[1]  # nothing lies between
    huge = -1.7e308, 1.7e308
    assert metrics.best_threshold([0, 1], huge) == 0


@unhurried
@given(st.lists(FINITE | TIED, min_size=1, max_size=40), st.floats(0, 1, exclude_max=True))
def test_threshold_at_fmr_is_the_smallest_that_keeps_to_it(scores, fmr):
    def measured(threshold):
        return sum(s >= threshold for s in scores) / len(scores)

    threshold = metrics.threshold_at_fmr(scores, fmr)
    assert measured(threshold) <= fmr
    assert measured(math.nextafter(threshold, -math.inf)) > fmr


@pytest.mark.parametrize(("fmr", "accepted"), [(0, 0), (0.29, 29), (0.57, 57), (0.1, 10)])
def test_threshold_at_fmr_allows_whole_numbers_of_pairs_exactly(fmr, accepted):
    # 0.29 * 100 is 28.999999999999996
    threshold = metrics.threshold_at_fmr(np.arange(100.0), fmr)
    assert int((np.arange(100.0) >= threshold).sum()) == accepted


def test_threshold_at_fmr_refuses_all_that_tie_with_one_too_many():
    scores = [5.0, 4.0, 4.0, 4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert metrics.threshold_at_fmr(scores, 0.2) == math.nextafter(4.0, 5)


# TAR at FAR.


def test_tar_at_far_counts():
    score = np.concatenate([np.arange(100.0), [200.0, 95.5, 90.0, 10.0]])
    genuine = np.arange(104) >= 100
    point = metrics.tar_at_far(genuine, score, 0.05)  # five impostors: 95 to 99
    assert (point.tar, point.false_accepts, point.needed) == (0.5, 5, 60)
    assert point.threshold == math.nextafter(94.0, 95)
    assert (point.genuine_pairs, point.impostor_pairs, point.reason) == (4, 100, None)
    assert point.tar_interval == metrics.clopper_pearson(2, 4)
    assert point.far_interval == metrics.clopper_pearson(5, 100)


@pytest.mark.parametrize(
    ("far", "needed"),
    [(0.1, 30), (0.01, 300), (0.001, 3000), (0.3, 10), (0.07, 43)],
)
def test_tar_needs_three_expected_false_accepts(far, needed):
    genuine = np.arange(needed + 1) == needed
    score = np.arange(needed + 1.0)
    assert metrics.tar_at_far(genuine, score, far).tar == 1
    short = metrics.tar_at_far(genuine[1:], score[1:], far)
    assert (short.tar, short.threshold, short.tar_interval) == (None, None, None)
    assert (short.needed, short.impostor_pairs) == (needed, needed - 1)
    told = f"not enough pairs: needs {needed} impostor pairs, has {needed - 1}"
    assert short.reason == told


@unhurried
@given(pairs(max_size=40), st.sampled_from([0.2, 0.3, 0.5, 0.9]))
def test_tar_is_the_best_tmr_of_the_roc_within_the_far(data, far):
    point = metrics.tar_at_far(*data, far)
    curve = metrics.roc(*data)
    if point.tar is None:
        assert point.impostor_pairs * far < metrics.MIN_EXPECTED_FALSE_ACCEPTS
        return
    assert point.tar == pytest.approx(curve.tmr[curve.fmr <= far].max(), abs=1e-12)
    assert point.false_accepts <= far * point.impostor_pairs
    assert point.tar_interval[0] <= point.tar <= point.tar_interval[1]
    measured = point.false_accepts / point.impostor_pairs
    assert point.far_interval[0] <= measured <= point.far_interval[1]


# Intervals.


def test_clopper_pearson_by_its_definition_and_known_values():
    assert metrics.clopper_pearson(5, 10) == pytest.approx((0.18708603, 0.81291397), abs=1e-8)
    assert metrics.clopper_pearson(0, 10) == pytest.approx((0, 1 - 0.025**0.1))
    assert metrics.clopper_pearson(10, 10) == pytest.approx((0.025**0.1, 1))
    low, high = metrics.clopper_pearson(3, 20, 0.9)

    def at_least(k, p):
        return sum(math.comb(20, i) * p**i * (1 - p) ** (20 - i) for i in range(k, 21))

    assert at_least(3, low) == pytest.approx(0.05)
    assert 1 - at_least(4, high) == pytest.approx(0.05)


@unhurried
@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_clopper_pearson_contains_the_share_and_mirrors(kn):
    k, n = kn
    low, high = metrics.clopper_pearson(k, n)
    assert 0 <= low <= k / n <= high <= 1
    assert low < high
    mirrored = metrics.clopper_pearson(n - k, n)
    assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=1e-9)
    wide = metrics.clopper_pearson(k, n, 0.99)
    assert wide[0] <= low
    assert high <= wide[1]


@unhurried
@given(pairs())
def test_auc_interval_contains_the_auc(data):
    low, high = metrics.auc_interval(*data)
    assert 0 <= low <= metrics.auc(*data) + 1e-12
    assert metrics.auc(*data) - 1e-12 <= high <= 1


@unhurried
@given(pairs())
def test_auc_interval_has_delong_variance(data):
    area = metrics.auc(*data)
    if min(data[0].sum(), (~data[0]).sum()) < 2 or slow_delong_variance(*data) < 1e-9:
        return
    low, high = metrics.auc_interval(*data)
    reach = 1.959963984540054 * math.sqrt(slow_delong_variance(*data)) / (area * (1 - area))
    if reach < 30:  # else both ends round to 0 and 1
        assert math.log(area / (1 - area)) - reach == pytest.approx(
            math.log(low / (1 - low)), rel=1e-6, abs=1e-6
        )
    assert low < area < high


def test_auc_interval_without_variance_is_binomial():
    genuine = np.repeat([True, False], [30, 50])
    low, high = metrics.auc_interval(genuine, genuine.astype(float))
    assert (low, high) == pytest.approx((0.025 ** (1 / 30), 1))
    low, high = metrics.auc_interval(genuine, np.zeros(80))
    assert 0.3 < low < 0.5 < high < 0.7
    assert metrics.auc_interval([True, False, False], [1.0, 0.0, 2.0]) == (0, 1)


def test_auc_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.Generator(np.random.Philox(1))
    genuine = np.repeat([True, False], [60, 90])
    truth = 0.8413447460685429  # Phi(1): normal scores sqrt(2) apart
    inside = 0
    for _ in range(400):
        low, high = metrics.auc_interval(genuine, rng.normal(size=150) + math.sqrt(2) * genuine)
        inside += low <= truth <= high
    assert 0.92 < inside / 400 < 0.98


def test_mean_and_standard_error_by_hand():
    mean, error = metrics.mean_and_standard_error([1.0, 2.0, 3.0, 6.0])
    assert mean == 3
    assert error == pytest.approx(math.sqrt((4 + 1 + 0 + 9) / 3) / 2)
    assert metrics.mean_and_standard_error([0.5] * 10) == (0.5, 0)
    with pytest.raises(NotEnough, match="at least 2 values, has 1"):
        metrics.mean_and_standard_error([1.0])
    with pytest.raises(BadData):
        metrics.mean_and_standard_error([1.0, math.nan])


# What is refused.

MEASURES = [
    metrics.roc,
    metrics.auc,
    metrics.eer,
    metrics.best_threshold,
    metrics.auc_interval,
    lambda genuine, score: metrics.fmr_fnmr(genuine, score, 0.0),
    lambda genuine, score: metrics.tar_at_far(genuine, score, 0.5),
]


@pytest.mark.parametrize("measure", MEASURES)
def test_a_missing_class_is_told_in_numbers(measure):
    with pytest.raises(NotEnough, match="has 3 genuine and 0 impostor"):
        measure([True] * 3, [1.0, 2.0, 3.0])
    with pytest.raises(NotEnough, match="has 0 genuine and 2 impostor"):
        measure([False] * 2, [1.0, 2.0])
    with pytest.raises(NotEnough, match="0 pairs"):
        measure([], [])


@pytest.mark.parametrize(
    "measure", [*MEASURES, lambda genuine, score: metrics.accuracy(genuine, score, 0.0)]
)
@pytest.mark.parametrize(
    ("genuine", "score", "said"),
    [
        ([True, False], [1.0, math.nan], "score 1 is nan"),
        ([True, False], [-math.inf, 1.0], "score 0 is -inf"),
        ([True, False], [1.0], "one length"),
        ([[True, False]], [[1.0, 2.0]], "flat"),
        ([1, 2], [1.0, 2.0], "True"),
        ([1, math.nan], [1.0, 2.0], "True"),
    ],
)
def test_bad_arrays_are_refused(measure, genuine, score, said):
    with pytest.raises(BadData, match=said):
        measure(genuine, score)


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.accuracy([True], [1.0], math.nan),
        lambda: metrics.fmr_fnmr([True, False], [1.0, 0.0], math.nan),
        lambda: metrics.threshold_at_fmr([1.0], 1.0),
        lambda: metrics.threshold_at_fmr([1.0], -0.1),
        lambda: metrics.threshold_at_fmr([1.0], math.nan),
        lambda: metrics.tar_at_far([True, False], [1.0, 0.0], 0.0),
        lambda: metrics.tar_at_far([True, False], [1.0, 0.0], 1.0),
        lambda: metrics.tar_at_far([True, False], [1.0, 0.0], 5e-324),
        lambda: metrics.clopper_pearson(3, 2),
        lambda: metrics.clopper_pearson(-1, 2),
        lambda: metrics.clopper_pearson(1, 2, 1.0),
        lambda: metrics.auc_interval([True, False], [1.0, 0.0], 0.0),
        lambda: metrics.auc_interval([True, False], [1.0, 0.0], 95),
    ],
)
def test_bad_parameters_are_refused(call):
    with pytest.raises(BadConfig):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.threshold_at_fmr([], 0.1),
        lambda: metrics.threshold_at_fmr([math.nan], 0.1),
        lambda: metrics.clopper_pearson(0, 0),
    ],
)
def test_other_bad_input_is_an_error_of_ours(call):
    with pytest.raises(FacepairsError):
        call()
