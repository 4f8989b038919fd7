"""Steps keep no memory: TensorFlow does not keep the numbers that are passed to it."""

import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from drawn.crop_plans import whole_plan

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import PairSampler
from facepairs.pipeline.dataset import make_dataset
from facepairs.pipeline.memory import MemoryStore
from facepairs.training.distributed import SINGLE_DEVICE
from facepairs.training.schedule import training_blocks
from facepairs.training.step import TrainStep, create_optimizer

BATCH, STEPS, FIRST = 2, 5, 70_005  # numbers that occur nowhere else


class Number(int):
    """A step number whose references can be counted."""


class Rate(float):
    """A learning rate whose references can be counted."""


class OneWeight:
    """The smallest model that a step can train."""

    def __init__(self):
        self.variables = self.trainable_variables = [keras.Variable(1.0)]

    def loss(self, inputs, genuine, people, random):
        return self.variables[0] * tf.reduce_mean(tf.cast(inputs, tf.float32))


def reference_counts(numbers):
    """How many references each number has, those of this function included."""
    return [sys.getrefcount(number) for number in numbers]


@pytest.fixture(scope="module")
def given(faces):
    """The numbers and rates that steps were called with."""
    index = FaceIndex.scan(faces)
    store, model = MemoryStore.build(index, whole_plan(index, 64)), OneWeight()
    sampler = PairSampler(index.first, np.arange(len(index.people)), 3)
    batches = iter(make_dataset(store, lambda: training_blocks(sampler, BATCH, STEPS, 0), BATCH))
    step = TrainStep(model, store, 3, create_optimizer(model, SINGLE_DEVICE))
    numbers = [Number(FIRST + n) for n in range(STEPS)]
    rates = [Rate(1e-3 * n) for n in range(STEPS)]
    for i in range(STEPS):
        step(next(batches), numbers[i], rates[i])
    return {Number: numbers, Rate: rates}


@pytest.mark.parametrize("kind", [Number, Rate])
def test_tensorflow_keeps_no_reference_to_step_numbers_and_rates(given, kind):
    """It keeps the tensors of Python numbers, and the numbers with them, until the process ends."""
    counts, (fresh,) = reference_counts(given[kind]), reference_counts([kind(1)])
    assert counts == [fresh] * STEPS
