"""The objectives' values, from angles on a plane."""

import itertools

import numpy as np
import pytest
from tiny.circle import batch, cosine, distance

from facepairs.models.losses import in_batch_loss, margin_loss, triplet_loss

LEFT, RIGHT = [0, 90, 200], [20, 100, 120]


def log_sum(cosines, temperature):
    return np.log(np.exp(np.array(cosines) / temperature).sum())


@pytest.mark.parametrize("others", [[0, 1, 2], [0, 3, 2], [0, 3, 4]])
def test_in_batch(others):
    pairs = batch(LEFT, RIGHT, [0, 1, 2], others)
    costs = [
        (log_sum([cosine(a, x) for x in RIGHT], 0.5) + log_sum([cosine(x, b) for x in LEFT], 0.5))
        / 2
        - cosine(a, b) / 0.5
        for a, b, genuine in zip(LEFT, RIGHT, pairs[2], strict=True)
        if genuine
    ]
    assert float(in_batch_loss(*pairs, 0.5)) == pytest.approx(np.mean(costs), rel=1e-5)


def slow_kinds(cost, people, others):
    costs = {True: [], False: []}
    for i, j in itertools.product(range(len(people)), repeat=2):
        same = people[i] == others[j]
        costs[same].append(cost(LEFT[i], RIGHT[j], same))
    return sum(np.mean(kind) for kind in costs.values() if kind) / 2


KINDS = pytest.mark.parametrize("others", [[0, 1, 2], [0, 1, 3], [3, 4, 5]])


@KINDS
def test_margin(others):
    def cost(a, b, same):
        d = distance(a, b)
        return d**2 if same else max(0, 1.5 - d) ** 2

    value = float(margin_loss(*batch(LEFT, RIGHT, [0, 1, 2], others), 1.5))
    assert value == pytest.approx(slow_kinds(cost, [0, 1, 2], others), rel=1e-4)


def slow_triplet(angles, people, margin):
    count, costs = len(angles), []
    for i in range(count):
        near = [distance(angles[i], angles[k]) ** 2 for k in range(count)]
        others = [near[k] for k in range(count) if people[k] != people[i]]
        partner = near[(i + count // 2) % count]
        negative = min([d for d in others if d > partner], default=max(others))
        costs.append(max(0, margin + partner - negative))
    return np.mean(costs)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (LEFT, RIGHT),
        ([0, 10, 20], [170, 190, 200]),  # partners beyond everybody: no semi-hard one
        ([0, 35, 90, 250], [15, 60, 130, 255]),
    ],
)
def test_triplet(left, right):
    people = [*range(len(left))]
    value = float(triplet_loss(*batch(left, right, people), 0.4))
    expected = slow_triplet([*left, *right], people * 2, 0.4)
    assert value == pytest.approx(expected, rel=1e-4)


def test_only_images_of_genuine_pairs_are_anchors():
    pairs = batch([0, 40], [10, 90], [0, 1], [0, 2])
    costs = [
        max(0, 0.9 + distance(0, 10) ** 2 - distance(near, 40) ** 2)
        for near in (0, 10)  # the nearest of the others, and beyond the partner
    ]
    assert float(triplet_loss(*pairs, 0.9)) == pytest.approx(np.mean(costs), rel=1e-4)
