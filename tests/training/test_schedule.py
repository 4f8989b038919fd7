"""The pairs and the learning rate of an epoch do not depend on where a training was resumed."""

import itertools
import math

import numpy as np
import pytest

from facepairs.data.sampler import PairSampler
from facepairs.training.schedule import PlannedRate, ending_s, plan_epochs, training_blocks

STEPS, BATCH = 20, 100  # an epoch is two blocks, one cut short


@pytest.mark.parametrize("start", [0, 1, 3])
def test_pairs_do_not_depend_on_the_first_epoch(start):
    sampler = PairSampler(np.arange(0, 61, 3), range(20), seed=1)

    def pairs(first):
        blocks = training_blocks(sampler, BATCH, STEPS, None, first)
        flat = itertools.chain.from_iterable(
            zip(b.left.tolist(), b.right.tolist(), strict=True) for b in blocks
        )
        return list(itertools.islice(flat, (4 - first) * STEPS * BATCH))

    assert pairs(start) == pairs(0)[start * STEPS * BATCH :]


def test_learning_rate_of_the_first_epoch_does_not_depend_on_the_number_of_epochs():
    short, long = PlannedRate(1e-3, 100, 2), PlannedRate(1e-3, 100, 50)
    rates = [[float(rate(step)) for step in range(100)] for rate in (short, long)]
    assert rates[0] == rates[1]
    assert rates[0][0] == pytest.approx(1e-3 / 50)
    assert rates[0][0] < rates[0][49] == pytest.approx(1e-3)
    assert 1e-5 <= float(long(4999)) < 1.1e-5
    assert float(long(100)) > float(long(2500)) > float(long(4999))


def test_the_learning_rate_rises_for_half_an_epoch_and_falls_as_a_cosine_from_the_second_on():
    rate = PlannedRate(1e-3, 101, 5)

    def by_hand(step):
        if step < 101:
            return 1e-3 * min(1, (step + 1) / 50)
        done = min(1, (step - 101) / 404)
        return 1e-3 * (0.01 + 0.99 * (1 + math.cos(math.pi * done)) / 2)

    steps = (0, 1, 48, 49, 50, 100, 101, 102, 303, 504, 505, 900)
    assert [float(rate(step)) for step in steps] == pytest.approx([*map(by_hand, steps)], rel=1e-5)
    one = PlannedRate(1e-3, 1, 1)
    assert [float(one(step)) for step in (0, 1, 2)] == pytest.approx([1e-3, 1e-3, 1e-5])


def test_blocks_hold_the_pairs_of_their_epochs():
    sampler = PairSampler(np.arange(0, 61, 3), range(20), seed=1)
    blocks = list(training_blocks(sampler, BATCH, 17, 2, 3))
    assert [len(block) for block in blocks] == [1_000, 700] * 2
    wanted = sampler.block(4, 1, 700)
    assert np.array_equal(blocks[3].left, wanted.left)


def test_the_learning_rate_follows_a_new_plan():
    rate, other = PlannedRate(1e-3, 100, 2), PlannedRate(1e-3, 100, 9)
    rate.plan(9)
    assert rate.epochs == 9
    assert [float(rate(step)) for step in (150, 880)] == [float(other(s)) for s in (150, 880)]
    assert PlannedRate.from_config(rate.get_config()).get_config() == rate.get_config()


def test_the_end_takes_longer_with_more_photos():
    assert [ending_s(images) for images in (0, 1_000)] == [15, 21]


def test_epochs_are_planned_at_the_speed_of_the_last_three():
    assert plan_epochs([10.0], 35.0, 100) == plan_epochs([10.0], 30.0, 100) == 4
    assert plan_epochs([10.0], 29.9, 100) == 3
    assert plan_epochs([100.0, 102.0], 204.0, 100) == 6
    assert plan_epochs([10.0], 35.0, 3) == 3
    assert plan_epochs([10.0], -1.0, 100) == 1
    assert plan_epochs([100.0, 110.0, 120.0, 130.0], 25.0, 100) == 6  # the slow first is forgotten
