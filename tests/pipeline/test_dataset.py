"""`make_dataset`: what each of several readers gets of the batches."""

import numpy as np
import pytest

from facepairs.data.pairs import PairList
from facepairs.pipeline.dataset import make_dataset
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
