"""The memory store: rows by number, and one copy of them."""

import itertools

import numpy as np
import psutil

from facepairs.data.pairs import PairList
from facepairs.pipeline.dataset import make_dataset
from facepairs.pipeline.memory import MemoryStore, zeros

MEGABYTES = 200


def test_a_batch_has_the_rows_of_both_sides_and_the_labels():
    rows = zeros((5, 2), np.int32)
    rows[:] = np.arange(10).reshape(5, 2)
    pairs = PairList.of([4, 0, 1], [2, 0, 3], [False, True, False])
    dataset = make_dataset(MemoryStore(rows), lambda: iter([pairs]), 2)
    first, last = itertools.islice(dataset.as_numpy_iterator(), 2)
    (left, right), genuine = first
    assert (left.tolist(), right.tolist()) == ([[8, 9], [0, 1]], [[4, 5], [0, 1]])
    assert (genuine.tolist(), genuine.dtype) == ([0, 1], np.float32)
    assert [side.tolist() for side in last[0]] == [[[2, 3]], [[6, 7]]]


def test_a_dataset_shares_the_rows():
    rows = zeros((MEGABYTES, 1_000_000), np.uint8)
    rows[:] = 1
    pair = PairList.of([3], [7], [True])

    def growth_mb(rows):
        before = psutil.Process().memory_info().rss
        assert len(list(make_dataset(MemoryStore(rows), lambda: iter([pair]), 1))) == 1
        return (psutil.Process().memory_info().rss - before) / 1e6

    growth_mb(zeros((8, 1), np.uint8))  # what TensorFlow needs once
    assert growth_mb(rows) < MEGABYTES / 4
