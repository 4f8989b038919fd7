"""Steps keep no memory: TensorFlow does not keep the numbers that are passed to it."""

import sys
from typing import ClassVar

import keras
import numpy as np
import pytest
import tensorflow as tf
from drawn.crop_plans import whole_plan

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import PairSampler
from facepairs.pipeline.dataset import make_dataset
from facepairs.pipeline.memory import MemoryStore
from facepairs.training.loop.schedule import Schedule, TrainingProgress, training_blocks
from facepairs.training.loop.step import TrainStep
from facepairs.training.loop.train_loop import TrainLoop

BATCH, STEPS, LAST = 2, 5, 70_005  # numbers that occur nowhere else


class Step(int):
    """A step number that records the numbers computed from it."""

    given: ClassVar[list["Step"]] = []

    def __iadd__(self, other):
        self.given.append(Step(int(self) + other))
        return self.given[-1]


class Rate(float):
    given: ClassVar[list["Rate"]] = []


class RecordingSchedule(Schedule):
    def learning_rate(self, step):
        Rate.given.append(Rate(super().learning_rate(int(step))))
        return Rate.given[-1]


class OneWeight:
    """The smallest model that the loop can train."""

    def __init__(self):
        self.variables = self.trainable_variables = [keras.Variable(1.0)]

    def loss(self, inputs, genuine, people, random):
        return self.variables[0] * tf.reduce_mean(tf.cast(inputs, tf.float32))


def reference_counts(numbers):
    """How many references each number has, those of this function included."""
    return [sys.getrefcount(number) for number in numbers]


@pytest.fixture(scope="module")
def trained(faces):
    index = FaceIndex.scan(faces)
    store = MemoryStore.build(index, whole_plan(index, 64))
    sampler = PairSampler(index.first, np.arange(len(index.people)), 3)
    batches = make_dataset(store, lambda: training_blocks(sampler, BATCH, STEPS, 0), BATCH)
    step = TrainStep(OneWeight(), store, 3)
    loop = TrainLoop(step, progress=TrainingProgress(Step(LAST - STEPS)))
    schedule = RecordingSchedule(1, LAST, 1e-3)
    callbacks = keras.callbacks.CallbackList([], model=None)
    loop.run(batches, schedule, callbacks)
    return loop


@pytest.mark.parametrize("kind", [Step, Rate])
def test_tensorflow_keeps_no_reference_to_step_numbers_and_rates(trained, kind):
    """It keeps the tensors of Python numbers, and the numbers with them, until the process ends."""
    assert trained.progress.step == LAST
    assert len(kind.given) == STEPS
    counts, (fresh,) = reference_counts(kind.given[:-1]), reference_counts([kind(1)])
    assert counts == [fresh + 1] * (STEPS - 1)  # `given` and its slice
