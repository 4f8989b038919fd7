"""Errors on every pair of photos are those that counting one by one gives."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from all_pairs import AllPairs

PEOPLE, CLUSTERS = 40, 4


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    person = np.sort(rng.integers(0, PEOPLE, 150)).astype(np.int64)
    rows = rng.normal(size=(PEOPLE, 8))[person] + rng.normal(0, 0.7, (150, 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cluster = person % CLUSTERS + 1
    return AllPairs(rows.astype(np.float32), person, cluster, np.tile(cluster, (4, 1)))


def counted(pairs):
    """Return the scores of genuine pairs by person, of impostor pairs, and of look-alikes."""
    genuine, impostor, alike = {}, [], []
    for left, right in combinations(range(len(pairs.person)), 2):
        score = float(pairs.embeddings[left] @ pairs.embeddings[right])
        if pairs.person[left] == pairs.person[right]:
            genuine.setdefault(int(pairs.person[left]), []).append(score)
        else:
            impostor.append(score)
            if pairs.cluster[left] == pairs.cluster[right]:
                alike.append(score)
    return genuine, np.array(impostor), np.array(alike)


def test_rates_are_those_of_all_pairs_and_nobody_has_more_than_ten(pairs):
    genuine, impostor, alike = counted(pairs)
    table = pairs.errors([0.2, 0.5], "here")
    assert table.genuine_pairs == sum(map(len, genuine.values()))
    assert (table.impostor_pairs, table.lookalike_pairs) == (len(impostor), len(alike))
    limit = {person: min(1, 10 / len(scores)) for person, scores in genuine.items()}
    for threshold in (0.2, 0.5):
        rates = table.at(threshold)
        assert rates.fmr.value == pytest.approx((impostor >= threshold).mean(), abs=1e-6)
        assert rates.lookalike_fmr.value == pytest.approx((alike >= threshold).mean(), abs=1e-6)
        missed = sum(limit[p] * sum(s < threshold for s in genuine[p]) for p in genuine)
        given = sum(limit[p] * len(genuine[p]) for p in genuine)
        assert rates.fnmr.value == pytest.approx(missed / given, abs=1e-6)
        for rate in (rates.fmr, rates.lookalike_fmr, rates.fnmr):
            assert rate.interval[0] <= rate.value <= rate.interval[1]


def test_thresholds_keep_their_promise_among_look_alikes(pairs):
    alike = counted(pairs)[2]
    for row in pairs.thresholds():
        if row.threshold is not None:
            assert (alike >= row.threshold + 1e-6).mean() <= row.max_fmr


def test_with_hard_photos_every_pair_shows_one_of_them(pairs):
    hard = np.arange(len(pairs.person)) % 7 == 0
    table = replace(pairs, hard=hard).errors([0.5], "here")
    both = [
        (pairs.person[a] == pairs.person[b], float(pairs.embeddings[a] @ pairs.embeddings[b]))
        for a, b in combinations(range(len(hard)), 2)
        if hard[a] or hard[b]
    ]
    assert table.genuine_pairs == sum(same for same, _ in both)
    assert table.impostor_pairs == sum(not same for same, _ in both)
    passed = np.mean([score >= 0.5 for same, score in both if not same])
    assert table.at(0.5).fmr.value == pytest.approx(passed, abs=1e-6)


def test_two_people_with_many_photos_make_fewer_independent_pairs():
    photos = np.array([50, 40, *[2] * 20])
    person = np.repeat(np.arange(len(photos)), photos)
    rows = np.eye(len(photos))[person].astype(np.float32)  # no stranger is alike
    cluster = np.ones(len(person), np.int64)
    pairs = AllPairs(rows, person, cluster, np.ones((0, len(person)), np.int64))
    sizes = [float(min(a * b, 1600)) for a, b in combinations(photos, 2)]
    trials = sum(sizes) ** 2 / sum(size**2 for size in sizes)
    rate = pairs.errors([0.5], "here").at(0.5).fmr
    assert (rate.value, rate.interval[0]) == (0, 0)
    assert rate.interval[1] == pytest.approx(1 - 0.025 ** (1 / trials), abs=1e-7)


def test_other_clusters_among_halves_of_the_people_widen_the_interval_of_look_alikes_alone(pairs):
    other = np.stack([pairs.person // number % CLUSTERS + 1 for number in (1, 2, 5, 10)])
    same, wide = (
        pairs_of.errors([0.2], "here").at(0.2) for pairs_of in (pairs, replace(pairs, again=other))
    )
    assert (wide.fmr, wide.fnmr) == (same.fmr, same.fnmr)
    assert wide.lookalike_fmr.value == same.lookalike_fmr.value
    assert wide.lookalike_fmr.interval[0] < same.lookalike_fmr.interval[0]
    assert wide.lookalike_fmr.interval[1] > same.lookalike_fmr.interval[1]
