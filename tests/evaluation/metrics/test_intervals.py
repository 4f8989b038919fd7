"""Intervals over people against slow, independent versions, and what no interval may break."""

import math

import numpy as np
import pytest
from by_hand import slow_rate_interval, slow_spread
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from facepairs.evaluation.metrics.estimates import (
    area,
    balanced_accuracy,
    difference,
    equal_error,
    tar_at_far,
)
from facepairs.evaluation.metrics.intervals import (
    PeopleOfPairs,
    Spread,
    clopper_pearson,
    difference_interval,
    rate_interval,
    rate_intervals,
    spread_over_people,
)

unhurried = settings(deadline=None, max_examples=60)  # the first call imports SciPy


@st.composite
def recurring(draw, people=8, most=60):
    """Return (people on both sides, genuine, score) of pairs of few people who recur."""
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, people - 1), st.integers(0, people - 1), st.integers(-3, 3)),
            min_size=4,
            max_size=most,
        )
    )
    left, right, score = np.array(rows, np.int64).T
    left[:2], right[:2] = [0, 1], [0, 2]
    genuine = left == right
    return (left, right), genuine, score + 1.5 * genuine


@unhurried
@given(recurring())
def test_rates_agree_with_a_slow_version(data):
    people, genuine, score = data
    pairs, events = PeopleOfPairs(people, len(score)), score >= 1
    for members in (genuine, ~genuine):
        rate = events[members].mean()
        influence = (events - rate) / members.sum()
        variance, degrees = slow_spread(people, [(members, influence)])
        found = pairs.spread((members, influence))
        assert float(found.variance) == pytest.approx(variance, abs=1e-12)
        if variance > 1e-9:
            assert float(found.degrees) == pytest.approx(degrees, rel=1e-6)
            cells = {
                tuple(sorted(pair)) for pair in zip(*(s[members] for s in people), strict=True)
            }
            wanted = slow_rate_interval(rate, variance, degrees, 1 / len(cells))
            assert pairs.interval(members, events) == pytest.approx(wanted, abs=1e-8)


@unhurried
@given(recurring(), st.integers(0, 3))
def test_estimates_agree_with_slow_versions(data, cut):
    people, genuine, score = data
    pairs, (hits, misses) = PeopleOfPairs(people, len(score)), (score[genuine], score[~genuine])
    won = [[float(a > b) + (a == b) / 2 for b in misses] for a in hits]
    auc = np.mean(won)
    influence = np.empty(len(score))
    influence[genuine] = [(np.mean(row) - auc) / len(hits) for row in won]
    influence[~genuine] = [(np.mean(row) - auc) / len(misses) for row in zip(*won, strict=True)]
    accepted = score >= cut
    rates = [accepted[~genuine].mean(), 1 - accepted[genuine].mean()]
    balanced = np.where(
        genuine,
        (rates[1] - ~accepted) / (2 * genuine.sum()),
        (rates[0] - accepted) / (2 * (~genuine).sum()),
    )
    fewest = min(pairs.trials(genuine), pairs.trials(~genuine))
    for found, value, wanted in (
        (area(pairs, genuine, score), auc, influence),
        (balanced_accuracy(pairs, genuine, accepted), 1 - sum(rates) / 2, balanced),
    ):
        assert found.value == pytest.approx(value)
        np.testing.assert_allclose(found.below, wanted, atol=1e-12)
        assert found.one_more == pytest.approx(1 / (2 * fewest))
        variance, degrees = slow_spread(people, [(genuine, wanted), (~genuine, wanted)])
        assume(variance > 1e-9)
        ends = slow_rate_interval(min(1, value), variance, degrees, found.one_more)
        assert found.interval(pairs, genuine) == pytest.approx(ends, abs=1e-7)


@unhurried
@given(recurring())
def test_rates_at_thresholds_are_those_at_each_one_and_never_rise(data):
    people, genuine, score = data
    grid = np.arange(-4.0, 6.0)
    place = np.searchsorted(grid, score, side="right")
    for known in (people, None):
        pairs = PeopleOfPairs(known, len(score))
        rates, low, high = pairs.rates_at(~genuine, place, len(grid))
        single = np.array([pairs.interval(~genuine, score >= cut) for cut in grid]).T
        np.testing.assert_allclose(rates, [(score[~genuine] >= cut).mean() for cut in grid])
        np.testing.assert_allclose(low, np.minimum.accumulate(single[0]), atol=1e-9)
        wanted = np.maximum.accumulate(single[1][::-1])[::-1]
        np.testing.assert_allclose(high, wanted, atol=1e-9)
        assert (np.diff(low) <= 0).all()
        assert (np.diff(high) <= 0).all()


@unhurried
@given(recurring(), st.data())
def test_one_error_never_looks_more_certain_than_none(data, more):
    people, genuine, _ = data
    for known in (people, None):
        pairs = PeopleOfPairs(known, len(genuine))
        for members in (genuine, ~genuine):
            events = np.zeros(len(genuine), np.bool_)
            none = pairs.interval(members, events)
            count = more.draw(st.integers(1, int(members.sum())))
            events[more.draw(st.permutations(np.flatnonzero(members).tolist()))[:count]] = True
            low, high = pairs.interval(members, events)
            assert none == (0, pytest.approx(1 - 0.025 ** (1 / pairs.trials(members))))
            assert high >= none[1] - 1e-12
            assert low <= 1 - none[1] + 1e-12 or events[members].all()
            if events[members].all():
                assert (low, high) == (pytest.approx(1 - none[1]), 1)


def test_nothing_accepted_is_not_uncertain_because_other_look_alikes_are_accepted():
    # 200 people, every two of them a pair; the halves call one pair more alike, which is accepted.
    people = np.triu_indices(200, 1)
    accepted = (people[0] == 0) & (people[1] < 3)
    alike, place = ~accepted, np.where(accepted, 2, np.where(people[0] == 5, 1, 0))
    pairs = PeopleOfPairs(people, len(place))
    again = [alike, alike | accepted]
    rates, low, high = pairs.rates_at(alike, place, 2, again)
    assert rates.tolist() == [pytest.approx(194 / 19_898), 0]
    assert (low[0], low[1]) == (pytest.approx(0, abs=1e-3), 0)
    searched = math.sqrt(0.5) * 2 / 19_900
    exact = 1 - 0.025 ** (1 / pairs.trials(alike))
    assert exact < high[1] < exact + 6 * searched
    assert high[1] < high[0] < 0.1
    ends = rate_interval(0.0, Spread(searched**2, math.inf), 1e-9)
    assert ends == (0, pytest.approx(5.02 * searched, rel=0.01))  # of half an event


@unhurried
@given(
    st.floats(0, 1).map(lambda rate: round(rate, 9)),  # one minus it is exact enough to mirror
    st.floats(0, 0.3),
    st.floats(2, 1e6),
    st.floats(1e-6, 1),
)
def test_intervals_contain_the_rate_and_are_symmetric(rate, variance, degrees, one_more):
    spread = Spread(variance, degrees)
    low, high = rate_interval(rate, spread, one_more)
    assert 0 <= low <= rate <= high <= 1
    mirrored = rate_interval(1 - rate, spread, one_more)
    assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=1e-6)
    wider = rate_interval(rate, spread, min(1, 2 * one_more))
    assert wider[0] <= low + 1e-9
    assert wider[1] >= high - 1e-9


@unhurried
@given(recurring(), st.integers(-3, 4), st.sampled_from([0.1, 0.3, 0.6]))
def test_estimates_contain_their_value(data, cut, far):
    people, genuine, score = data
    for known in (people, None):
        pairs = PeopleOfPairs(known, len(score))
        estimates = [
            area(pairs, genuine, score),
            balanced_accuracy(pairs, genuine, score >= cut),
            tar_at_far(pairs, genuine, score, far),
            equal_error(pairs, genuine, score),
        ]
        for estimate in estimates:
            low, high = estimate.interval(pairs, genuine)
            assert 0 <= low <= estimate.value + 1e-12
            assert estimate.value - 1e-12 <= high <= 1
            gap, ends = difference(estimate, estimates[0], pairs, genuine)
            assert -1 <= ends[0] <= gap <= ends[1] <= 1
            back, mirrored = difference(estimates[0], estimate, pairs, genuine)
            assert (back, -mirrored[1], -mirrored[0]) == pytest.approx((-gap, *ends), abs=1e-12)


def test_ends_by_hand():
    # Ten people with two pairs each, all of one person wrong: one event among ten.
    person = np.repeat(np.arange(10), 2)
    members = np.ones(20, np.bool_)
    low, high = PeopleOfPairs((person, person), 20).interval(members, person == 3)
    exact = clopper_pearson(1, 10)
    assert exact == pytest.approx((0.002529, 0.445016), abs=1e-6)
    assert low < exact[0]  # the variance of so few people is itself uncertain
    assert exact[1] < high < 0.75
    assert (low, high) == pytest.approx((0.0000071265, 0.7248458), rel=1e-4)
    independent = PeopleOfPairs(None, 20).interval(members, person == 3)
    assert independent == pytest.approx((0.0123485, 0.3169827), abs=1e-6)
    assert difference_interval(0.1, Spread(0.01, math.inf), 1e-9) == pytest.approx(
        (0.1 - 0.1959964, 0.1 + 0.1959964)
    )
    assert difference_interval(0.0, Spread(0.0, 5.0), 0.1) == pytest.approx(
        (-(1 - 0.025**0.1), 1 - 0.025**0.1)
    )


def test_a_far_threshold_adds_what_it_is_uncertain_by():
    random = np.random.default_rng(5)
    genuine = np.arange(1_300) < 300
    score = random.normal(size=1_300) + 2 * genuine
    pairs = PeopleOfPairs(None, 1_300)
    found = tar_at_far(pairs, genuine, score, 0.1)
    threshold = np.sort(score[~genuine])[-101]
    assert found.value == (score[genuine] > threshold).mean()
    fixed = clopper_pearson(int((score[genuine] > threshold).sum()), 300)
    low, high = found.interval(pairs, genuine)
    # Normal scores two apart: the TAR falls by 1.8 where the FAR does by 1.
    slope = math.exp(2 * (1.2816 - 1))
    half = 1.96 * math.hypot(math.sqrt(0.76 * 0.24 / 300), slope * math.sqrt(0.09 / 1_000))
    assert low < fixed[0]
    assert high > fixed[1]
    assert high - low == pytest.approx(2 * half, rel=0.1)


@pytest.mark.parametrize(("genuine_pairs", "spread"), [(1_000, 1.0), (200, 1.0), (1_000, 2.0)])
def test_both_classes_share_in_the_equal_error_rate(genuine_pairs, spread):
    random = np.random.default_rng(6)
    genuine = np.arange(genuine_pairs + 1_000) < genuine_pairs
    score = random.normal(size=len(genuine)) * np.where(genuine, spread, 1) + 2 * genuine
    found = equal_error(pairs := PeopleOfPairs(None, len(genuine)), genuine, score)
    # Normal scores: the FMR rises `spread` times as fast as the FNMR at the threshold of the EER.
    rate, weight = found.value, spread / (1 + spread)
    variance = weight**2 / genuine_pairs + (1 - weight) ** 2 / 1_000
    trials = 1 / variance
    low, high = found.interval(pairs, genuine)
    wanted = clopper_pearson(rate * trials, round(trials))
    assert (low, high) == pytest.approx(wanted, abs=0.12 * (wanted[1] - wanted[0]))


def test_an_equal_error_rate_of_nothing_has_the_bound_of_the_rarer_class():
    genuine = np.arange(110) < 10
    for score, value, ends in ((1.0 * genuine, 0, (0, 1 - 0.025**0.1)), (-1.0 * genuine, 1, None)):
        found = equal_error(pairs := PeopleOfPairs(None, 110), genuine, score)
        assert found.value == value
        wanted = ends or (0.025**0.1, 1)
        assert found.interval(pairs, genuine) == pytest.approx(wanted)


def test_intervals_cover_where_people_differ():
    # 60 people, each with one to six pairs and an error rate of their own; 500 draws at once.
    random = np.random.Generator(np.random.Philox(3))
    people, draws, truth = 60, 500, 0.2
    pairs = random.integers(1, 7, (people, draws)).astype(np.float64)
    errors = random.binomial(pairs.astype(np.int64), random.beta(0.5, 2, (people, draws)))
    of = pairs.sum(axis=0)
    rates = errors.sum(axis=0) / of
    spread = spread_over_people((errors - rates * pairs) / of, pairs / of)
    low, high = rate_intervals(rates, spread, 1 / people)
    assert 0.94 < ((low <= truth) & (truth <= high)).mean() < 0.985
