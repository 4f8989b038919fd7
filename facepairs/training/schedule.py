"""How long a training runs, how fast it learns, and which pairs it sees.

All but `plan_epochs`, which follows the clock, are functions of the seed, the settings and the step
number alone, so a resumed training continues exactly where its last epoch ended.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from facepairs.data.pairs import PairList
from facepairs.data.sampler import Sampler, block_pairs

FINAL_RATE_SHARE = 0.01  # of the peak learning rate
PLANNING_EPOCHS = 3  # recent epochs whose speed the plan assumes


@dataclass(frozen=True)
class Schedule:
    """The length of a training and its learning rate.

    Attributes:
        epochs: Number of epochs.
        steps_per_epoch: Steps between two validations.
        peak: The highest learning rate.
    """

    epochs: int
    steps_per_epoch: int
    peak: float

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0.

        It rises over half an epoch, stays constant to the end of the first epoch and falls as a
        cosine afterwards. The first epoch does not depend on the number of epochs, because
        `minutes` is planned from that epoch's speed: Keras's own schedules cannot do that.
        """
        warm_up_steps = max(1, self.steps_per_epoch // 2)
        if step < self.steps_per_epoch:
            return self.peak * min(1.0, (step + 1) / warm_up_steps)
        falling_steps = (self.epochs - 1) * self.steps_per_epoch
        done = (step - self.steps_per_epoch) / max(1, falling_steps)
        cosine = 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
        return self.peak * (FINAL_RATE_SHARE + (1 - FINAL_RATE_SHARE) * cosine)


def plan_epochs(ends_s: list[float], left_s: float, max_epochs: int) -> int:
    """Return how many epochs fit in the time that is left, planned again after each epoch.

    The remaining epochs are planned at the speed of the last three. A machine that slows down thus
    still ends in time and with a low learning rate.

    Args:
        ends_s: When each epoch so far ended, in seconds of training; at least one.
        left_s: Time for further epochs in seconds; below 0 if it is used up.
        max_epochs: The largest number of epochs.
    """
    done, ends = len(ends_s), [0.0, *ends_s][-PLANNING_EPOCHS - 1 :]
    epoch_s = (ends[-1] - ends[0]) / (len(ends) - 1)
    return max(done, min(max_epochs, done + int(left_s / epoch_s)))


def epoch_blocks(
    sampler: Sampler, batch_size: int, steps_per_epoch: int, epoch: int
) -> Iterator[PairList]:
    """Yield the pairs of one epoch in blocks.

    Args:
        sampler: Draws the pairs of (epoch, block).
        batch_size: Pairs per step; every block holds a multiple of it.
        steps_per_epoch: Steps of an epoch.
        epoch: Its number, from 0.
    """
    full_block, pairs = block_pairs(batch_size), steps_per_epoch * batch_size
    for number, start in enumerate(range(0, pairs, full_block)):
        yield sampler.block(epoch, number, min(full_block, pairs - start))


def training_blocks(
    sampler: Sampler, batch_size: int, steps_per_epoch: int, first_epoch: int
) -> Iterator[PairList]:
    """Yield the pairs of a training in blocks, epoch after epoch, without end."""
    for epoch in itertools.count(first_epoch):
        yield from epoch_blocks(sampler, batch_size, steps_per_epoch, epoch)
