"""How long a training runs, how fast it learns, and which pairs it sees.

All but `plan_epochs`, which follows the clock, are functions of the seed, the settings and the step
number alone, so a resumed training continues exactly where its last epoch ended.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops

from facepairs.data.pairs import PairList
from facepairs.data.sampler import Sampler, block_pairs

FINAL_RATE_SHARE = 0.01  # of the peak learning rate
PLANNING_EPOCHS = 3  # recent epochs whose speed the plan assumes
EXPORT_S, CALIBRATION_S_PER_IMAGE = 15.0, 0.006  # on two cores


@keras.saving.register_keras_serializable("facepairs")
class PlannedRate(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """The learning rate of a training whose number of epochs is planned as it goes.

    It rises over half an epoch, stays constant to the end of the first epoch and falls as a cosine
    afterwards. The first epoch does not depend on the number of epochs, because `minutes` is
    planned from that epoch's speed.

    Args:
        peak: The highest rate.
        steps_per_epoch: Steps between two validations.
        epochs: Number of epochs that are planned.
    """

    def __init__(self, peak: float, steps_per_epoch: int, epochs: int) -> None:
        self.peak, self.steps_per_epoch = peak, steps_per_epoch
        self._planned = keras.Variable(epochs, trainable=False, dtype="int32", name="epochs")

    def __call__(self, step: Any) -> Any:
        step, epoch = ops.cast(step, "float32"), float(self.steps_per_epoch)
        warming = ops.minimum(1.0, (step + 1) / max(1, self.steps_per_epoch // 2))
        falling = ops.maximum(1.0, (ops.cast(self._planned, "float32") - 1) * epoch)
        done = ops.clip((step - epoch) / falling, 0.0, 1.0)
        cosine = 0.5 * (1 + ops.cos(math.pi * done))
        cooled = FINAL_RATE_SHARE + (1 - FINAL_RATE_SHARE) * cosine
        return self.peak * ops.where(step < epoch, warming, cooled)

    @property
    def epochs(self) -> int:
        """Number of epochs that are planned."""
        return int(np.asarray(self._planned))

    def plan(self, epochs: int) -> None:
        """Change the number of epochs."""
        self._planned.assign(epochs)

    def get_config(self) -> dict[str, Any]:
        return {"peak": self.peak, "steps_per_epoch": self.steps_per_epoch, "epochs": self.epochs}


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


def ending_s(images: int) -> float:
    """Return how many seconds the end of a training takes, with so many images to calibrate on."""
    return EXPORT_S + CALIBRATION_S_PER_IMAGE * images


def training_blocks(
    sampler: Sampler,
    batch_size: int,
    steps_per_epoch: int,
    epochs: int | None,
    first_epoch: int,
) -> Iterator[PairList]:
    """Yield the pairs of a training in blocks, epoch after epoch.

    Args:
        sampler: Draws the pairs of (epoch, block).
        batch_size: Pairs per step; every block holds a multiple of it.
        steps_per_epoch: Steps of an epoch.
        epochs: The number of epochs; None: without end.
        first_epoch: The number of the first one, from 0.
    """
    full_block, pairs = block_pairs(batch_size), steps_per_epoch * batch_size
    for epoch in itertools.islice(itertools.count(int(first_epoch)), epochs):
        for number, start in enumerate(range(0, pairs, full_block)):
            yield sampler.block(epoch, number, min(full_block, pairs - start))
