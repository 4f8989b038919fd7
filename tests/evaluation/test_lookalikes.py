"""Who looks alike, errors at every threshold, and a bundle's promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facepairs.data.pairs import PairList
from facepairs.errors import NotEnough
from facepairs.evaluation.error_rates import errors_by_group, errors_of
from facepairs.evaluation.fitting import (
    calibrate,
    fit_logistic,
    is_no_better,
    measure_errors,
    thresholds_for,
)
from facepairs.evaluation.lookalikes import (
    CLUSTERS,
    LookAlikes,
    find_clusters,
    find_lookalikes,
)
from facepairs.evaluation.metrics.intervals import PeopleOfPairs, rate_interval


def drawn_pairs(people=200, looks=4, seed=0):
    """Embeddings of two photos per person, around a few looks; all pairs of people."""
    rng = np.random.default_rng(seed)
    look = np.repeat(rng.normal(size=(looks, 16)), people // looks, axis=0)
    person = look + 0.8 * rng.normal(size=(people, 16))
    photos = np.stack([person + 0.5 * rng.normal(size=person.shape) for _ in range(2)])
    photos /= np.linalg.norm(photos, axis=2, keepdims=True)
    left, right = np.triu_indices(people)
    score = (photos[0][left] * photos[1][right]).sum(1)
    return photos.astype(np.float32), left, right, left == right, score


def test_strangers_of_one_look_share_a_cluster_and_pass_more_often():
    photos, left, right, genuine, score = drawn_pairs(looks=8)
    person = np.tile(np.arange(200), 2)
    clusters = find_clusters(photos.reshape(-1, 16), person)
    assert set(clusters.tolist()) == set(range(1, CLUSTERS + 1))
    pairs = PairList.of(left, right + 200, genuine)
    found = find_lookalikes(photos.reshape(-1, 16), person, pairs)
    alike = found.pairs
    assert np.array_equal(alike, (clusters[left] == clusters[right + 200]) & ~genuine)
    assert found.again.shape == (4, len(left))
    for again in found.again:
        assert not (again & genuine).any()
        assert 0.5 < (again & alike).sum() / (again | alike).sum() < 1
    assert 0.05 < alike.mean() < 0.4
    pairs = PeopleOfPairs(None, len(genuine))
    rows = thresholds_for(genuine, score, pairs, lookalike=alike)
    for row in rows[:2]:
        accepted = score >= row.threshold
        assert accepted[alike].mean() <= row.max_fmr < accepted[alike].mean() + 0.01
        assert accepted[~genuine].mean() < accepted[alike].mean()
        assert row.among == "look-alikes"
    everyone = thresholds_for(genuine, score, pairs)
    assert [row.among for row in everyone] == ["strangers"] * 3
    assert everyone[1].threshold < rows[1].threshold


def test_too_few_people_have_no_clusters_and_bad_photos_none():
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(100, 8)).astype(np.float32)
    assert find_clusters(embeddings[:39], np.arange(39)) is None
    embeddings[7] = np.nan
    clusters = find_clusters(embeddings, np.arange(100))
    assert clusters[7] == 0
    assert len(np.unique(clusters)) == 1 + 99 // 20
    assert (find_clusters(embeddings, np.arange(100)) == clusters).all()


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6))
def test_errors_between_thresholds_lie_between_those_measured(seed):
    rng = np.random.default_rng(seed)
    genuine = rng.random(400) < 0.4
    genuine[:2] = True, False
    score = rng.normal(size=400).round(int(rng.integers(1, 6))) + genuine
    alike = (rng.integers(0, 3, 400) > 0) & ~genuine
    table = measure_errors(
        genuine,
        score,
        PeopleOfPairs(None, 400),
        lookalike=LookAlikes.of(alike),
        thresholds=[0.5],
        measured_on="drawn numbers",
    )
    for threshold in [*rng.normal(size=20), 0.5]:
        found, accepted = table.at(threshold), score >= threshold
        below = max(t for t in table.thresholds if t <= threshold or t == table.thresholds[0])
        above = min(t for t in table.thresholds if t >= threshold or t == table.thresholds[-1])
        ends = table.at(below), table.at(above)
        assert ends[0].fmr.value >= found.fmr.value >= ends[1].fmr.value
        assert ends[0].fnmr.value <= found.fnmr.value <= ends[1].fnmr.value
        assert ends[0].fmr.value + 1e-6 >= accepted[~genuine].mean() >= ends[1].fmr.value - 1e-6
        assert ends[0].fnmr.value - 1e-6 <= (~accepted)[genuine].mean() <= ends[1].fnmr.value + 1e-6
        if threshold == 0.5:
            assert found.fmr.value == pytest.approx(accepted[~genuine].mean(), abs=1e-6)
            assert found.fnmr.value == pytest.approx((~accepted)[genuine].mean(), abs=1e-6)
    for rate, low, high in (*table.fmr, *table.lookalike_fmr, *table.fnmr):
        assert 0 <= low <= rate <= high <= 1
    strict = table.threshold_for(0.05)
    assert (score[~genuine] >= strict).mean() <= 0.05


def test_groups_are_listed_with_the_worst_first():
    genuine = np.repeat([True, False], 100)
    accepted = np.r_[np.ones(100, bool), np.arange(100) < 30]
    groups = {
        "easy": np.arange(200) >= 150,
        "hard": np.arange(200) < 150,
        "nobody": genuine & False,
    }
    rows = errors_by_group(groups, genuine, accepted, PeopleOfPairs(None, 200))
    assert list(rows) == ["hard", "easy", "nobody"]
    assert (rows["hard"].fmr.value, rows["easy"].fmr.value, rows["nobody"].fmr) == (0.6, 0.0, None)
    assert (rows["hard"].fmr.count, rows["hard"].fmr.of, rows["hard"].fnmr.of) == (30, 50, 100)


def test_a_bundle_promises_the_strictest_that_accepts_most_genuine_pairs():
    _, left, right, genuine, score = drawn_pairs()
    alike = (left // 50 == right // 50) & ~genuine
    pairs = PeopleOfPairs((left, right), len(left))
    fitted = calibrate(genuine, score, pairs, lookalike=LookAlikes.of(alike))
    promised = next(row for row in fitted.thresholds if row.max_fmr == fitted.default_fmr)
    assert promised.threshold > fitted.balanced_threshold
    assert fitted.errors.at(promised.threshold).fnmr.value <= 0.5
    assert fitted.errors.at(promised.threshold).lookalike_fmr.value <= promised.max_fmr
    hopeless = np.random.default_rng(0).permutation(score) + 0.1 * genuine
    alone = PeopleOfPairs(None, len(left))
    fitted = calibrate(genuine, hopeless, alone, lookalike=LookAlikes.of(alike))
    assert fitted.default_fmr is None


def test_rates_among_look_alikes_know_that_others_would_be_found_among_other_people():
    random = np.random.default_rng(1)
    _, left, right, genuine, score = drawn_pairs(people=60, looks=3)
    alike, pairs = (left // 20 == right // 20) & ~genuine, PeopleOfPairs((left, right), len(left))
    accepted = score >= 0.3
    again = np.stack([alike & (random.random(len(left)) < share) for share in (0.2, 0.5, 0.9)])
    again[1] |= accepted & ~genuine
    rates = [accepted[part].mean() for part in again]
    rate = accepted[alike].mean()
    given_spread = pairs.spread((alike, (accepted - rate) / alike.sum()))
    spread = given_spread._replace(variance=given_spread.variance + np.var(rates, ddof=1))
    wanted = rate_interval(rate, spread, 1 / pairs.trials(alike))
    everything = np.ones(len(left), np.bool_)
    found = LookAlikes(alike, again)
    (errors,) = errors_of([(everything, accepted)], genuine, pairs, found)
    assert errors.lookalike_fmr.interval == pytest.approx(wanted)
    table = measure_errors(genuine, score, pairs, lookalike=found, thresholds=[0.3], measured_on="")
    assert table.at(0.3).lookalike_fmr.interval == pytest.approx(wanted, abs=1e-7)
    low, high = pairs.interval(alike, accepted)
    assert wanted[0] < low < high < wanted[1]
    kept = found.where(left < 30)
    assert np.array_equal(kept.again, again[:, left < 30])
    joined = LookAlikes.join([found, LookAlikes(alike, again[:2])])
    assert np.array_equal(joined.pairs, np.tile(alike, 2))
    assert np.array_equal(joined.again, np.tile(again[:2], 2))


def test_look_alikes_lower_the_probability():
    _, left, right, genuine, score = drawn_pairs()
    alike = (left // 50 == right // 50) & ~genuine
    everyone, hard = fit_logistic(genuine, score), fit_logistic(genuine, score, lookalike=alike)
    assert hard.threshold > everyone.threshold
    assert fit_logistic(genuine, score, lookalike=alike & False) == everyone
    for lookalike, says in ((None, False), (alike, True)):
        with pytest.raises(NotEnough) as caught:
            fit_logistic(genuine, -score, lookalike=lookalike)
        assert ("look-alikes" in str(caught.value)) == says


def test_a_calibration_is_compared_on_people_it_was_not_fitted_to():
    _, left, right, genuine, score = drawn_pairs()
    fitted = fit_logistic(genuine, score)
    assert not is_no_better(fitted, genuine, score - 1.0, (left, right))
    assert is_no_better(fitted, genuine, score, (left, right))
    few = (left < 30) & (right < 30)
    assert not is_no_better(fitted, genuine[few], score[few], (left[few], right[few]))
