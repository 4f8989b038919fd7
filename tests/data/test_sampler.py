"""Samplers: pure functions of their numbers; people first; no image is paired with itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from facepairs.data.minimums import MAX_PAIRS_PER_PERSON
from facepairs.data.sampler import (
    ArticleSamplerForComparison,
    DistinctPeopleSampler,
    PairSampler,
    block_pairs,
    distinct_impostors,
    distinct_pairs,
)
from facepairs.errors import BadConfig, NotEnough

COUNTS = st.lists(st.integers(1, 6), min_size=2, max_size=30).filter(lambda c: max(c) >= 2)


def firsts(counts: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def person_of(counts: list[int]) -> np.ndarray:
    return np.repeat(np.arange(len(counts)), counts)


@given(COUNTS, st.integers(0, 2**63 - 1), st.integers(0, 5), st.integers(0, 10**6))
def test_labels_are_right_and_no_image_is_paired_with_itself(counts, seed, epoch, block):
    pairs = PairSampler(firsts(counts), range(len(counts)), seed).block(epoch, block, 64)
    owner = person_of(counts)
    assert np.array_equal(owner[pairs.left] == owner[pairs.right], pairs.genuine)
    assert (pairs.left != pairs.right).all()


@given(COUNTS, st.integers(0, 99), st.integers(1, 64))
def test_a_larger_block_begins_with_a_smaller_one(counts, seed, size):
    sampler = PairSampler(firsts(counts), range(len(counts)), seed)
    small, large = sampler.block(2, 3, size), sampler.block(2, 3, 64)
    for a, b in zip(vars(small).values(), vars(large).values(), strict=True):
        assert np.array_equal(a, b[:size])


def test_blocks_epochs_and_seeds_differ():
    counts = [5] * 40
    drawn = [
        tuple(PairSampler(firsts(counts), range(40), seed).block(epoch, block, 32).left)
        for seed, epoch, block in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0))
    ]
    assert len(set(drawn)) == 4


def test_pairs_are_golden():
    # These never change: a seed means the same pairs on every machine and in every version.
    pairs = PairSampler(firsts([1, 2, 3, 4, 5, 6, 7]), range(7), seed=42).block(3, 5, 8)
    assert pairs.left.tolist() == [20, 2, 1, 4, 11, 10, 8, 20]
    assert pairs.right.tolist() == [0, 1, 2, 5, 12, 12, 9, 17]
    assert pairs.genuine.tolist() == [False, *[True] * 7]


def test_pairs_of_distinct_people_are_golden():
    first = firsts([1, 2, 3, 4, 5, 6, 7])
    pairs = DistinctPeopleSampler(first, range(7), 42, 4, several_share=0.75).block(3, 5, 8)
    assert pairs.left.tolist() == [2, 13, 27, 0, 5, 7, 19, 0]
    assert pairs.right.tolist() == [1, 14, 25, 0, 4, 9, 18, 0]


def test_distinct_pairs_are_golden():
    first = firsts([1, 2, 3, 4, 5, 6, 7])
    drawn = distinct_pairs(first, range(1, 7), 7, 42)
    assert (drawn.left.tolist(), drawn.right.tolist()) == (
        [3, 1, 24, 11, 4, 2, 19, 9],
        [5, 2, 26, 12, 23, 5, 25, 11],
    )
    assert drawn.genuine.tolist() == [True] * 4 + [False] * 4  # an odd one is rounded up
    apart = distinct_impostors(first, range(1, 7), 4, 42)
    assert apart.left.tolist() == drawn.left[4:].tolist()
    shared = DistinctPeopleSampler(first, range(7), 42, 99)  # batches of all, as many with one
    assert (shared.batch_size, shared.block(0, 0, 7).left.tolist()) == (7, [13, 4, 2, 18, 25, 8, 0])


@pytest.mark.parametrize(
    ("batch", "block"), [(1, 1024), (3, 1023), (1000, 1000), (1024, 1024), (1025, 1025)]
)
def test_a_block_has_about_1024_pairs_in_whole_batches(batch, block):
    assert block_pairs(batch) == block


def test_people_are_drawn_before_images():
    counts = [500] + [2] * 49
    pairs = PairSampler(firsts(counts), range(50), 1, genuine_share=1.0).block(0, 0, 5000)
    share = np.mean(person_of(counts)[pairs.left] == 0)
    assert share == pytest.approx(1 / 50, abs=0.008)  # 4 standard deviations


@given(st.floats(0, 1))
def test_the_share_of_genuine_pairs_is_the_one_asked_for(share):
    pairs = PairSampler(firsts([4] * 20), range(20), 3, share).block(0, 0, 20_000)
    assert pairs.genuine.mean() == pytest.approx(share, abs=0.02)


def test_half_of_the_pairs_are_genuine():
    for sampler in (PairSampler, ArticleSamplerForComparison):
        pairs = sampler(firsts([4] * 20), range(20), 3).block(0, 0, 40_000)
        assert pairs.genuine.mean() == pytest.approx(0.5, abs=0.01)  # 4 standard deviations


@given(COUNTS, st.data())
def test_only_allowed_people_occur(counts, data):
    several = [p for p, c in enumerate(counts) if c >= 2]
    chosen = data.draw(st.sets(st.integers(0, len(counts) - 1), min_size=1)) | {several[0]}
    chosen |= {(several[0] + 1) % len(counts)}
    pairs = PairSampler(firsts(counts), sorted(chosen), 0).block(0, 0, 64)
    owner = person_of(counts)
    assert set(owner[pairs.left]) | set(owner[pairs.right]) <= chosen


def test_impossible_arguments_are_refused():
    with pytest.raises(NotEnough):
        PairSampler(firsts([1, 1, 1]), range(3), 0)
    assert not PairSampler(firsts([1, 1, 1]), range(3), 0, 0.0).block(0, 0, 9).genuine.any()
    for counts in ([1, 1, 1], [2]):
        with pytest.raises(NotEnough):
            DistinctPeopleSampler(firsts(counts), range(len(counts)), 0, 2)
    assert DistinctPeopleSampler(firsts([2, 1]), range(2), 0, 2).block(0, 0, 2).genuine.all()
    with pytest.raises(NotEnough):
        PairSampler(firsts([3]), range(1), 0)
    with pytest.raises(BadConfig, match="seed"):
        PairSampler(firsts([3, 3]), range(2), -1)
    assert PairSampler(firsts([3]), range(1), 0, genuine_share=1.0).block(0, 0, 4).genuine.all()


@given(COUNTS, st.integers(1, 60), st.integers(0, 9))
def test_distinct_pairs_are_distinct_and_balanced_as_far_as_they_exist(counts, pairs, seed):
    drawn = distinct_pairs(firsts(counts), range(len(counts)), pairs, seed)
    keys = {tuple(sorted(p)) for p in zip(drawn.left.tolist(), drawn.right.tolist(), strict=True)}
    assert len(keys) == len(drawn)
    half = (pairs + 1) // 2
    owner = person_of(counts)
    of_person = np.bincount(owner[drawn.left[drawn.genuine]], minlength=len(counts))
    most = np.array([min(c * (c - 1) // 2, MAX_PAIRS_PER_PERSON) for c in counts])
    assert (of_person <= most).all()
    if half >= sum(c * (c - 1) // 2 for c in counts):
        assert np.array_equal(of_person, most)
    assert np.array_equal(owner[drawn.left] == owner[drawn.right], drawn.genuine)


@given(COUNTS, st.integers(2, 12), st.integers(0, 99))
def test_a_batch_of_distinct_people_shows_a_person_once(counts, batch, seed):
    sampler = DistinctPeopleSampler(firsts(counts), range(len(counts)), seed, batch)
    size = block_pairs(sampler.batch_size)
    pairs = sampler.block(1, 2, size)
    owner = person_of(counts)
    assert pairs.genuine.all()
    assert np.array_equal(owner[pairs.left], owner[pairs.right])
    people = owner[pairs.left].reshape(-1, sampler.batch_size)
    assert all(len(set(row)) == sampler.batch_size for row in people.tolist())
    several = np.array(counts)[owner[pairs.left]] > 1
    assert (pairs.left != pairs.right)[several].all()
    assert (pairs.left == pairs.right)[~several].all()


def test_every_pass_shows_everybody_in_another_order():
    sampler = DistinctPeopleSampler(firsts([3] * 64), range(64), 0, 16)
    people = person_of([3] * 64)[sampler.block(0, 0, 1024).left].reshape(16, 64)
    assert all(set(row) == set(range(64)) for row in people.tolist())
    assert len({tuple(row) for row in people.tolist()}) == 16


@given(COUNTS, st.integers(2, 40), st.floats(0.05, 1))
def test_every_batch_has_the_share_with_several_photos(counts, batch, share):
    sampler = DistinctPeopleSampler(firsts(counts), range(len(counts)), 5, batch, share)
    size = sampler.batch_size
    people = person_of(counts)[sampler.block(0, 0, block_pairs(size)).left].reshape(-1, size)
    assert all(len(set(row)) == size for row in people.tolist())
    several = (np.array(counts)[people] > 1).sum(axis=1)
    of_all = sum(count > 1 for count in counts)
    least, most = size - (len(counts) - of_all), of_all
    assert (several == min(max(round(share * size), least), most)).all()


def test_one_person_of_75_photos_does_not_outweigh_250_of_two():
    counts = [75, *[2] * 250]
    drawn = distinct_pairs(firsts(counts), range(251), 6_000, 0)
    owner = person_of(counts)[drawn.left[drawn.genuine]]
    assert np.bincount(owner).tolist() == [MAX_PAIRS_PER_PERSON, *[1] * 250]
