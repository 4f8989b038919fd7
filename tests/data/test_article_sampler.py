"""The sampler of the comparison: images are paired with themselves, the rest is inherited."""

import numpy as np
import pytest

from facepairs.data.sampler import ArticleSamplerForComparison, PairSampler

COUNTS = [1] * 7 + [2, 3, 10]
FIRST = np.concatenate([[0], np.cumsum(COUNTS)]).astype(np.int64)
OWNER = np.repeat(np.arange(len(COUNTS)), COUNTS)


def block(size=20_000, seed=1, kind=ArticleSamplerForComparison):
    return kind(FIRST, range(len(COUNTS)), seed).block(0, 0, size)


def test_images_are_paired_with_themselves_as_often_as_chance():
    pairs = block()
    itself = (pairs.left == pairs.right)[pairs.genuine]
    expected = np.mean([1 / count for count in COUNTS])  # .79: seven have nothing but one image
    assert itself.mean() == pytest.approx(expected, abs=0.02)
    people = np.bincount(OWNER[pairs.left[pairs.genuine]], minlength=len(COUNTS))
    assert people / people.sum() == pytest.approx(0.1, abs=0.015)  # uniform over people


def test_impostor_pairs_are_those_of_pair_sampler():
    theirs, ours = block(2000), block(2000, kind=PairSampler)
    assert np.array_equal(theirs.genuine, ours.genuine)
    apart = ~ours.genuine
    assert np.array_equal(theirs.left[apart], ours.left[apart])
    assert np.array_equal(theirs.right[apart], ours.right[apart])
    assert not np.array_equal(theirs.left, ours.left)
