"""How long a training runs, how fast it learns, and which pairs it sees at which step.

All are functions of the seed, the settings and the step number alone, so a resumed training
continues exactly where it stopped.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from facepairs.data.pairs import PairList
from facepairs.data.sampler import Sampler, block_pairs

FINAL_RATE_SHARE = 0.01  # of the peak learning rate
PLANNING_EPOCHS = 3  # recent epochs whose speed the plan assumes


@dataclass
class TrainingProgress:
    """Where a training stands; saved beside the weights.

    Attributes:
        step: Number of steps done.
        seconds: Time spent on steps and validation.
        history: One row of figures per finished epoch.
        loss_sum, loss_steps: Sum and number of the losses of the epoch that is not finished.
    """

    step: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    loss_sum: float = 0.0
    loss_steps: int = 0


@dataclass(frozen=True)
class Schedule:
    """The length of a training and its learning rate.

    Attributes:
        epochs: Number of epochs, 0 when nothing is trained.
        steps_per_epoch: Steps between two validations.
        peak: The highest learning rate.
    """

    epochs: int
    steps_per_epoch: int
    peak: float

    @property
    def steps(self) -> int:
        """Number of steps in all epochs."""
        return self.epochs * self.steps_per_epoch

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0.

        It rises over half an epoch, stays constant to the end of the first epoch and falls as a
        cosine afterwards. The first epoch does not depend on the number of epochs, because
        `--minutes` is planned from that epoch's speed.
        """
        warm_up_steps = max(1, self.steps_per_epoch // 2)
        if step < self.steps_per_epoch:
            return self.peak * min(1.0, (step + 1) / warm_up_steps)
        done = (step - self.steps_per_epoch) / max(1, self.steps - self.steps_per_epoch)
        cosine = 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
        return self.peak * (FINAL_RATE_SHARE + (1 - FINAL_RATE_SHARE) * cosine)


def plan_epochs(
    schedule: Schedule, progress: TrainingProgress, left_s: float, max_epochs: int
) -> int:
    """Return how many epochs fit in the time that is left, planned again after each epoch.

    The remaining epochs are planned at the speed of the last three. A machine that slows down thus
    still ends in time and with a low learning rate.

    Args:
        schedule: The schedule so far.
        progress: The position, after at least one epoch.
        left_s: Time for further epochs in seconds; below 0 if it is used up.
        max_epochs: The largest number of epochs.
    """
    done = progress.step // schedule.steps_per_epoch
    ends = [0.0, *(row["seconds"] for row in progress.history)][-PLANNING_EPOCHS - 1 :]
    epoch_s = (ends[-1] - ends[0]) / (len(ends) - 1)
    return max(done, min(max_epochs, done + int(left_s / epoch_s)))


def training_blocks(
    sampler: Sampler, batch_size: int, steps_per_epoch: int, start_step: int
) -> Iterator[PairList]:
    """Yield the pairs of a training in blocks, epoch after epoch, without end.

    Args:
        sampler: Draws the pairs of (epoch, block).
        batch_size: Pairs per step; every block holds a multiple of it.
        steps_per_epoch: Steps of an epoch.
        start_step: First step. The pairs of a step do not depend on it.
    """
    full_block = block_pairs(batch_size)
    epoch_pairs = steps_per_epoch * batch_size
    epoch, step = divmod(start_step, steps_per_epoch)
    position = step * batch_size
    while True:
        while position < epoch_pairs:
            number, skip = divmod(position, full_block)
            size = min(full_block, epoch_pairs - number * full_block)
            block = sampler.block(epoch, number, size)
            yield block.where(slice(skip, None))
            position = number * full_block + size
        epoch, position = epoch + 1, 0
