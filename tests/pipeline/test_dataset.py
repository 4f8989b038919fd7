"""`make_dataset`: what each of several readers gets of the batches."""

import time

import numpy as np
import pytest
import tensorflow as tf

from facepairs.data.pairs import PairList
from facepairs.pipeline.dataset import load_ahead, make_dataset
from facepairs.pipeline.memory import MemoryStore, zeros

BATCH, BATCHES = 3, 8


@pytest.fixture(scope="module")
def store():
    rows = zeros((100, 1), np.uint8)
    rows[:, 0] = np.arange(100)
    return MemoryStore(rows)


def blocks(first):
    """A block for each two batches, from a number on."""
    for start in range(int(first), int(first) + BATCH * BATCHES, 2 * BATCH):
        numbers = np.arange(start, start + 2 * BATCH)
        yield PairList.of(numbers, 99 - numbers, numbers % 2 == 0)


def read(store, *part):
    batches = make_dataset(store, blocks, BATCH, *part, args=(7,))
    return [(left.numpy()[:, 0], right.numpy()[:, 0], labels) for (left, right), labels in batches]


@pytest.mark.parametrize("readers", [1, 2, 4])
def test_readers_share_the_batches_in_turn(store, readers):
    whole = read(store)
    assert np.concatenate([left for left, *_ in whole]).tolist() == list(range(7, 31))
    for left, right, labels in whole:
        assert (right == 99 - left).all()
        assert (labels.numpy() == (left % 2 == 0)).all()
    for reader in range(readers):
        own = read(store, (readers, reader))
        assert [left.tolist() for left, *_ in own] == [
            left.tolist() for left, *_ in whole[reader::readers]
        ]


def test_a_store_is_asked_for_both_sides_of_a_batch(store):
    asked = []

    class Asked:
        def loader(self, images):
            asked.append(images)
            return store.loader(images)

    make_dataset(Asked(), blocks, BATCH, args=(7,))
    assert asked == [2 * BATCH]


def test_batches_stay_in_order_whatever_takes_longer():
    def load(number):
        return tf.numpy_function(lambda n: (time.sleep(0.1 * (n == 0)), n)[1], [number], tf.int64)

    batches = load_ahead(tf.data.Dataset.range(4), load)
    assert list(batches.as_numpy_iterator()) == [0, 1, 2, 3]
