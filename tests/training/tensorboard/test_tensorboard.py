"""The log stays small for any length of training and shows the hardest pairs first."""

import numpy as np

from facepairs.training.tensorboard.log import hardest_pairs, is_detailed
from facepairs.training.tensorboard.monitor import choose_projector_images


def test_pictures_are_written_four_times_per_doubling():
    shown = [epoch for epoch in range(1, 101) if is_detailed(epoch)]
    assert shown[:12] == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16]
    assert [epoch for epoch in shown if 32 <= epoch < 64] == [32, 40, 48, 56]
    assert sum(is_detailed(epoch) for epoch in range(1, 100_001)) < 64


def test_hardest_pairs_are_low_genuine_and_high_impostor_pairs():
    genuine = np.array([1, 0] * 20, bool)
    score = np.random.default_rng(0).normal(size=40)
    worst = hardest_pairs(genuine, score)
    assert worst[:8].tolist() == sorted(np.flatnonzero(genuine), key=lambda i: score[i])[:8]
    assert worst[8:].tolist() == sorted(np.flatnonzero(~genuine), key=lambda i: -score[i])[:8]
    few = hardest_pairs(np.array([True, False]), np.array([0.1, 0.2]))
    assert few.tolist() == [0, 1]


def test_the_projector_gets_500_images_of_people_with_the_most_photos():
    counts = np.random.default_rng(1).integers(1, 30, 300)
    first = np.concatenate([[0], np.cumsum(counts)])
    people = np.arange(0, 300, 2)
    images = choose_projector_images(first, people)
    assert len(images) == len(set(images.tolist())) == 500
    owner = np.searchsorted(first, images, side="right") - 1
    assert set(owner.tolist()) <= set(people.tolist())
    assert np.bincount(owner).max() == 8
    shown = np.unique(owner)
    assert counts[shown].min() >= np.sort(np.minimum(counts[people], 8))[::-1][len(shown) - 1]
    everybody = choose_projector_images(first, np.array([3, 5]))
    assert len(everybody) == min(counts[3], 8) + min(counts[5], 8)
    assert choose_projector_images(first, np.zeros(0, np.int64)).shape == (0,)
