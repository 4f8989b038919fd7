"""A step leaves nothing behind, so that memory does not grow with their number."""

import sys
from typing import ClassVar

import keras
import numpy as np
import pytest

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import PairSampler
from facepairs.models.network import build_network
from facepairs.pipeline.dataset import make_dataset
from facepairs.pipeline.memory import MemoryStore
from facepairs.training.loop.train_loop import Progress, Schedule, TrainLoop, training_blocks

BATCH, STEPS, LAST = 2, 5, 70_005  # numbers that nobody else has


class Step(int):
    """A step's number that keeps those which come of it."""

    given: ClassVar[list["Step"]] = []

    def __iadd__(self, other):
        self.given.append(Step(int(self) + other))
        return self.given[-1]


class Rate(float):
    given: ClassVar[list["Rate"]] = []


class Watched(Schedule):
    def learning_rate(self, step):
        Rate.given.append(Rate(super().learning_rate(int(step))))
        return Rate.given[-1]


def holders(numbers):
    """How many hold each number, this function included."""
    return [sys.getrefcount(number) for number in numbers]


@pytest.fixture(scope="module")
def trained(faces):
    index = FaceIndex.scan(faces)
    store = MemoryStore.build(index, 250, 64)
    sampler = PairSampler(index.first, np.arange(len(index.people)), 3)
    batches = make_dataset(store, lambda: training_blocks(sampler, BATCH, STEPS, 0), BATCH)
    loop = TrainLoop(build_network("difference", 64, 64, 0.0), store, 3, dict, lambda: False)
    loop.progress = Progress(Step(LAST - STEPS))
    schedule = Watched(1, LAST, 1e-3)
    callbacks = keras.callbacks.CallbackList([], model=None)
    loop.run(batches, schedule, callbacks, lambda schedule, progress: schedule)
    return loop


@pytest.mark.parametrize("kind", [Step, Rate])
def test_tensorflow_keeps_no_number_of_a_step(trained, kind):
    """It keeps the tensors of Python's numbers, and these with them, to the process's end."""
    assert trained.progress.step == LAST
    assert len(kind.given) == STEPS
    found, nobody_else = holders(kind.given[:-1]), holders([kind(1)])
    assert found == [nobody_else[0] + 1] * (STEPS - 1)  # the list that was cut, and the cut one
