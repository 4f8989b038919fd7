import math

import msgspec
import numpy as np
import pytest
from by_hand import error_rates
from figures import figures_of
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from facepairs.bundles.error_profile import Calibration
from facepairs.bundles.rates import OperatingPoint
from facepairs.errors import BadData, FacepairsError, NotEnough
from facepairs.evaluation.error_rates import halves
from facepairs.evaluation.fitting import (
    calibrate,
    cross_fitted_probability,
    fit_logistic,
    thresholds_for,
)
from facepairs.evaluation.measurement import measure_scores
from facepairs.evaluation.metrics.curves import best_threshold, threshold_at_fmr
from facepairs.evaluation.metrics.intervals import PeopleOfPairs, clopper_pearson
from facepairs.evaluation.metrics.reliability import (
    equal_weights,
    expected_calibration_error,
    likelihood_ratio_cost,
    minimum_cost,
    reliability_curve,
)
from facepairs.evaluation.scores import ScoredPairs, write_scores
from facepairs.verification.provenance import Provenance

unhurried = settings(deadline=None)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def drawn(seed, genuine_pairs=400, impostor_pairs=400, apart=2.0):
    rng = np.random.Generator(np.random.Philox(seed))
    genuine = np.repeat([True, False], [genuine_pairs, impostor_pairs])
    return genuine, rng.normal(size=len(genuine)) + apart * genuine


# Calibration.


def test_probability_by_hand():
    calibration = Calibration(2.0, -1.0)
    assert calibration.threshold == 0.5
    assert calibration.probability(0.5) == 0.5
    assert calibration.probability(1.0) == pytest.approx(1 / (1 + math.exp(-1)))
    many = calibration.probability(np.array([0.5, 1.0], np.float32))
    assert many.dtype == np.float64
    assert many.tolist() == [0.5, calibration.probability(1.0)]


def test_probability_of_extreme_scores_does_not_overflow():
    ends = np.array([-1.7e308, -1e4, 0, 1e4, 1.7e308])
    assert Calibration(100.0, 0.0).probability(ends).tolist() == [0, 0, 0.5, 1, 1]
    assert Calibration(1.0, 0.0).probability(-700.0) == pytest.approx(math.exp(-700))


@unhurried
@given(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3), FINITE, FINITE)
def test_probability_rises_with_the_score(scale, offset, a, b):
    calibration = Calibration(scale, offset)
    low, high = sorted([a, b])
    assert 0 <= calibration.probability(low) <= calibration.probability(high) <= 1
    assert calibration.probability(calibration.threshold) == pytest.approx(0.5, abs=1e-9)


# Fitting.


@unhurried
@given(st.floats(1e-6, 1e6), st.floats(-1e6, 1e6))
def test_fit_is_equivariant_to_scale_and_shift_of_scores(stretch, shift):
    genuine, score = drawn(6, 40, 60)
    plain = fit_logistic(genuine, score)
    moved = fit_logistic(genuine, stretch * score + shift)
    lost = 1e-15 * abs(shift) / stretch  # digits of the score that the shift has rounded away
    near = pytest.approx(plain.probability(score), abs=1e-6 + 100 * lost)
    assert moved.probability(stretch * score + shift) == near


@unhurried
@given(st.lists(FINITE | st.integers(-2, 2).map(float), min_size=2, max_size=20), st.data())
def test_fit_returns_a_rising_curve_with_platts_mean_target(scores, data):
    labels = st.lists(st.booleans(), min_size=len(scores), max_size=len(scores))
    genuine = np.array([True, False, *data.draw(labels)[2:]])
    score = np.array(scores)
    try:
        fitted = fit_logistic(genuine, score)
    except FacepairsError:
        reject()
    assert fitted.scale > 0
    positive, negative = int(genuine.sum()), int((~genuine).sum())
    targets = ((positive + 1) / (positive + 2) + 1 / (negative + 2)) / 2
    means = fitted.probability(score[genuine]).mean() + fitted.probability(score[~genuine]).mean()
    assert means / 2 == pytest.approx(targets, abs=1e-4)  # where the loss is flat


def test_fit_refuses_scores_that_do_not_separate_the_classes():
    genuine, score = drawn(8, 20, 30)
    for useless in (-score, np.full(50, 0.1), np.where(np.arange(50) % 2, 1.0, 0.0)):
        with pytest.raises(NotEnough):
            fit_logistic(genuine, useless)
    with pytest.raises(NotEnough):
        fit_logistic(genuine[:20], score[:20])
    with pytest.raises(BadData):
        fit_logistic([True, False], [math.nan, 0.0])


@unhurried
@given(st.integers(0, 10_000))
def test_a_curve_of_weighted_pairs_rises_or_is_refused(seed):
    rng = np.random.default_rng(seed)
    genuine, score = np.arange(40) < 15, rng.normal(size=40)
    lookalike = ~genuine & (rng.random(40) < 0.3)
    weight = equal_weights(genuine, lookalike)
    means = [np.average(score[side], weights=weight[side]) for side in (genuine, ~genuine)]
    if means[0] > means[1]:
        assert fit_logistic(genuine, score, lookalike).scale > 0
    else:
        with pytest.raises(NotEnough):
            fit_logistic(genuine, score, lookalike)


# Calibration error.


def test_pairs_weigh_one_on_average_and_look_alikes_make_up_half_of_the_strangers():
    genuine, alike = np.array([True, False, False]), np.array([False, True, False])
    assert equal_weights(genuine).tolist() == [1.5, 0.75, 0.75]
    assert equal_weights(genuine, alike).tolist() == [1.5, 1.125, 0.375]


def test_ece_by_hand():
    genuine, probability = np.array([True, False]), np.array([0.8, 0.4])
    assert reliability_curve(genuine, probability, bins=1).ece == pytest.approx(0.1)
    assert reliability_curve(genuine, probability, bins=2).ece == pytest.approx(0.3)


@unhurried
@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.25, 0.3, 1.0])), min_size=1),
    st.integers(1, 20),
    st.randoms(use_true_random=False),
)
def test_ties_share_a_bin_and_pair_order_does_not_matter(rows, bins, random):
    rows += [(True, 0.3), (False, 0.3)]
    genuine, probability = (np.array(column) for column in zip(*rows, strict=True))
    curve = reliability_curve(genuine, probability, bins=bins)
    assert curve.weight.sum() == pytest.approx(1)
    assert len(curve.weight) <= min(bins, len(np.unique(probability)))
    assert (np.diff(curve.probability) > 0).all()
    random.shuffle(rows)
    again = reliability_curve(*map(np.array, zip(*rows, strict=True)), bins=bins).ece
    assert 0 <= again <= 1
    assert again == pytest.approx(curve.ece)


def test_ece_of_the_true_calibration_is_near_zero_at_any_class_sizes():
    genuine, score = drawn(10, 500, 20_000)
    probability = Calibration(2.0, -2.0).probability(score)  # the truth for equal priors
    assert expected_calibration_error(genuine, probability) < 0.03


# Cross-fitting.


def test_halves_of_a_sorted_file_do_not_alternate():
    genuine, score = drawn(12, 300, 300)
    order = np.argsort(score)
    genuine, score = genuine[order], score[order]
    half = halves(genuine)
    for kind in (genuine, ~genuine):  # neighbours in score: alternation would separate them all
        assert 0.4 < (np.diff(half[kind]) != 0).mean() < 0.6
        assert np.bincount(half[kind]).tolist() == [0, 150, 150]
    probability = cross_fitted_probability(genuine, score)
    np.testing.assert_array_equal(probability, cross_fitted_probability(genuine, score, half))
    folds = figures_of(genuine, score, None).folds  # the same halves set each other's threshold
    assert [part.threshold for part in folds] == [
        best_threshold(genuine[half != number], score[half != number]) for number in (1, 2)
    ]


# Thresholds by target FMR.


def test_thresholds_for_returns_a_threshold_or_a_reason():
    genuine, score = drawn(11, 200, 300)
    pairs = PeopleOfPairs(None, len(genuine))
    tenth, hundredth, thousandth = thresholds_for(genuine, score, pairs)
    fitted = calibrate(genuine, score, pairs)
    for entry, target in ((tenth, 0.1), (hundredth, 0.01)):
        threshold = threshold_at_fmr(score[~genuine], target)
        assert entry == OperatingPoint(threshold, f"fmr-{target:g}", target)
        rates, table = error_rates(genuine, score >= threshold), fitted.errors.at(threshold)
        for rate, count, pairs in (
            (table.fmr, round(300 * target), 300),
            (table.fnmr, rates.false_rejects, 200),
        ):
            assert rate.value == pytest.approx(count / pairs, abs=1e-6)
            assert rate.interval == pytest.approx(clopper_pearson(count, pairs), abs=1e-6)
    assert (fitted.errors.genuine_pairs, fitted.errors.impostor_pairs) == (200, 300)
    assert tenth.threshold < hundredth.threshold
    assert (thousandth.max_fmr, thousandth.threshold) == (0.001, None)
    assert thousandth.reason.endswith("needs 3,000 pairs of strangers, has 300")
    people = PeopleOfPairs((np.arange(500) * 2, np.arange(500) * 2 + ~genuine), 500)
    assert "same two people count once" in thresholds_for(genuine, score, people)[2].reason
    rows = list(fitted.summary()["thresholds"])
    assert rows == [msgspec.to_builtins(entry) for entry in (tenth, hundredth, thousandth)]


# The cost of likelihood ratios.


def slow_cost(genuine, log_ratio, lookalike=None):
    """Return Cllr, pair after pair."""
    sums, counts = [0.0, 0.0, 0.0], [0, 0, 0]
    for place, (same, value) in enumerate(zip(genuine, log_ratio, strict=True)):
        cost = math.log2(1 + math.exp(-value if same else value))
        for kind in [0] if same else [1, 2] if lookalike is not None and lookalike[place] else [1]:
            sums[kind] += cost
            counts[kind] += 1
    means = [total / count if count else 0 for total, count in zip(sums, counts, strict=True)]
    among = (means[1] + means[2]) / 2 if counts[2] else means[1]
    return (means[0] + among) / 2


def slow_minimum(genuine, score):
    """Return the lowest Cllr: pool blocks of pairs by rising score until their shares rise."""
    weight = [1 / genuine.sum() if same else 1 / (~genuine).sum() for same in genuine]
    blocks: list[list[int]] = []
    for value in sorted(set(score.tolist())):
        blocks.append([k for k in range(len(score)) if score[k] == value])
        while len(blocks) > 1 and share(blocks[-2], genuine, weight) >= share(
            blocks[-1], genuine, weight
        ):
            last = blocks.pop()
            blocks[-1] = blocks[-1] + last
    cost = 0.0
    for block in blocks:
        part = share(block, genuine, weight)
        for k in block:
            cost -= weight[k] * math.log2(part if genuine[k] else 1 - part) / 2
    return cost


def share(block, genuine, weight):
    return sum(weight[k] for k in block if genuine[k]) / sum(weight[k] for k in block)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_cost_of_likelihood_ratios_agrees_with_a_slow_version(seed):
    genuine, score = drawn(seed, 60, 90, apart=1.5)
    score = score.round(1)  # with ties
    alike = ~genuine & (np.arange(150) % 3 == 0)
    assert likelihood_ratio_cost(genuine, score) == pytest.approx(slow_cost(genuine, score))
    wanted = slow_cost(genuine, score, alike)
    assert likelihood_ratio_cost(genuine, score, alike) == pytest.approx(wanted)
    assert minimum_cost(genuine, score) == pytest.approx(slow_minimum(genuine, score), abs=1e-9)


def test_the_cost_of_knowing_nothing_is_one_bit_and_of_order_alone_none():
    genuine, score = drawn(4)
    assert likelihood_ratio_cost(genuine, np.zeros(800)) == 1
    assert minimum_cost(genuine, np.zeros(800)) == pytest.approx(1)
    assert minimum_cost(genuine, genuine + 0.1 * np.tanh(score)) == 0
    right, wrong = (likelihood_ratio_cost(genuine, sign * 2 * (score - 1)) for sign in (1, -1))
    assert minimum_cost(genuine, score) <= right < 1 < wrong


def test_a_summary_has_the_cost_of_its_calibration(tmp_path):
    genuine, score = drawn(5)
    curve = Calibration(2.0, -2.0)
    origin = Provenance(model="m", pairs="p", calibration=curve)
    nothing = [""] * len(score)
    pairs = ScoredPairs(nothing, nothing, genuine, np.zeros(800, np.int16), score, origin=origin)
    write_scores(tmp_path / "s.csv", pairs)
    summary = measure_scores(tmp_path / "s.csv").summary
    assert summary.cllr == pytest.approx(slow_cost(genuine, 2 * score - 2))
    assert summary.min_cllr == pytest.approx(slow_minimum(genuine, score), abs=1e-9)
    assert summary.min_cllr < summary.cllr
