"""The pairs and the learning rate of an epoch do not depend on where a training was resumed."""

import itertools

import numpy as np
import pytest

from facepairs.data.sampler import PairSampler
from facepairs.training.schedule import Schedule, plan_epochs, training_blocks

STEPS, BATCH = 20, 100  # an epoch is two blocks, one cut short


@pytest.mark.parametrize("start", [0, 1, 3])
def test_pairs_do_not_depend_on_the_first_epoch(start):
    sampler = PairSampler(np.arange(0, 61, 3), range(20), seed=1)

    def pairs(first):
        blocks = training_blocks(sampler, BATCH, STEPS, first)
        flat = itertools.chain.from_iterable(
            zip(b.left.tolist(), b.right.tolist(), strict=True) for b in blocks
        )
        return list(itertools.islice(flat, (4 - first) * STEPS * BATCH))

    assert pairs(start) == pairs(0)[start * STEPS * BATCH :]


def test_learning_rate_of_the_first_epoch_does_not_depend_on_the_number_of_epochs():
    short, long = Schedule(2, 100, 1e-3), Schedule(50, 100, 1e-3)
    rates = [[s.learning_rate(step) for step in range(100)] for s in (short, long)]
    assert rates[0] == rates[1]
    assert rates[0][0] < rates[0][49] == pytest.approx(1e-3)
    assert long.learning_rate(4999) < 2e-5
    assert long.learning_rate(100) > long.learning_rate(2500) > long.learning_rate(4999)


def test_epochs_are_planned_at_the_speed_of_the_last_three():
    assert plan_epochs([10.0], 35.0, 100) == 4
    assert plan_epochs([10.0], 35.0, 3) == 3
    assert plan_epochs([10.0], -1.0, 100) == 1
    assert plan_epochs([100.0, 110.0, 120.0, 130.0], 25.0, 100) == 6  # the slow first is forgotten
