"""Average linkage without a matrix: the same groups as SciPy, and constraints kept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facepairs.errors import BadBundle
from facepairs.grouping.linkage import CROWDED, average_linkage, crowd_bias


def unit_rows(seed, count, width=8):
    rows = np.random.default_rng(seed).normal(1, 1, (count, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def same(label, other):
    return bool(((label[:, None] == label) == (other[:, None] == other)).all())


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 200), st.sampled_from([0.02, 0.05, 0.2, 0.4]))
def test_is_scipys_average_linkage(seed, count, cut):
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    rows = unit_rows(seed, count)
    merges = average_linkage(rows, 0.5, evidence=0)
    tree = linkage(pdist(rows.astype(np.float64), "cosine"), "average")
    label = merges.labels(cut)
    assert same(label, fcluster(tree, cut, "distance"))
    pairs = ((label[:, None] == label).sum() - count) // 2
    assert merges.linked_pairs(cut, np.ones(count, np.int64)) == pairs


def test_the_bias_is_what_a_face_is_less_like_the_cohort_than_the_mean():
    rows, cohort = unit_rows(0, 3), unit_rows(1, 5)
    wanted = 0.3 * (1 - (rows @ cohort.T).max(axis=1))
    assert crowd_bias(rows, cohort) == pytest.approx(wanted, rel=1e-5)


def test_without_a_cohort_or_faces_there_is_no_bias():
    assert (crowd_bias(unit_rows(0, 3), None) == 0).all()
    assert crowd_bias(unit_rows(0, 0), unit_rows(1, 5)).shape == (0,)
    with pytest.raises(BadBundle):
        crowd_bias(unit_rows(0, 3), unit_rows(1, 5, width=7))


def slow_linkage(distance, most, start, fixed, apart):
    """Average linkage by definition: the nearest allowed pair of groups, again and again."""
    members = [np.flatnonzero(start == group).tolist() for group in range(start.max() + 1)]
    parts = [{group} for group in range(len(members))]
    within = [{a, b} for a in range(fixed) for b in range(a)]
    refused = [*within, *map(set, apart.tolist())]
    while True:
        found = [
            (distance[np.ix_(members[i], members[j])].mean(), i, j)
            for i in range(len(members))
            for j in range(i)
            if not any(pair <= parts[i] | parts[j] for pair in refused)
        ]
        if not found or min(found)[0] > most:
            break
        _, i, j = min(found)
        members[j] += members.pop(i)
        parts[j] |= parts.pop(i)
    label = np.zeros(len(start), np.int64)
    for number, faces in enumerate(members):
        label[faces] = number
    return label


@pytest.mark.parametrize("members", [None, 3])
@pytest.mark.parametrize("seed", range(10))
def test_groups_that_are_given_stay_and_what_is_apart_never_meets(seed, members):
    random = np.random.default_rng(seed)
    rows = unit_rows(seed, 24, 6)
    start = np.unique([0, 0, 1, 0, *range(4, 24)], return_inverse=True)[1]
    fixed = int(random.integers(2, 6))
    apart = random.permutation(start.max() + 1)[:4].reshape(2, 2)
    cohort = None if members is None else unit_rows(seed + 99, members, 6)
    merges = average_linkage(rows, 0.3, start, fixed, apart, evidence=0, cohort=cohort)
    bias = np.zeros(24) if cohort is None else CROWDED * (1 - (rows @ cohort.T).max(axis=1))
    distance = 1 - rows.astype(np.float64) @ rows.T - bias[:, None] - bias
    assert same(merges.labels(0.3)[start], slow_linkage(distance, 0.3, start, fixed, apart))


def test_copies_of_one_photo_are_one_group():
    rows = np.repeat(unit_rows(0, 3), 50, axis=0) + np.float32(1e-6) * unit_rows(1, 150)
    assert len(np.unique(average_linkage(rows, 1e-4).labels(1e-4))) == 3
    apart = average_linkage(rows[:2], 1e-4, apart=[(0, 1)])
    assert apart.labels(1e-4).tolist() == [0, 1]


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_merge(count):
    merges = average_linkage(unit_rows(0, count), 0.5)
    assert len(merges.height) == 0
    assert len(merges.labels(0.5)) == count


def test_few_pairs_must_be_nearer_and_a_later_merge_confirms_them():
    merges = average_linkage(unit_rows(0, 200), 0.5)
    plain = average_linkage(unit_rows(0, 200), 0.5, evidence=0)
    raised = {(a, b): h for a, b, h in zip(merges.one, merges.other, merges.height, strict=True)}
    for a, b, h in zip(plain.one, plain.other, plain.height, strict=True):
        assert h <= raised[a, b] <= h * 1.3 + 1e-12
    assert merges.height.mean() > plain.height.mean()
    assert (np.diff(merges.height) >= 0).all()
    assert 0.1 < average_linkage(unit_rows(0, 200), 0.2, evidence=0).height.max() <= 0.2


def test_groups_are_numbered_by_their_first_and_pairs_within_them_count():
    merges = average_linkage(np.repeat(unit_rows(0, 2), 3, axis=0)[::-1], 0.01, np.arange(6))
    assert merges.labels(0.01).tolist() == [0, 0, 0, 1, 1, 1]
    assert merges.linked_pairs(0.01, np.array([1, 2, 0, 1, 1, 1])) == 3 + 3
