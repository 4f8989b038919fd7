"""Rows of Keras: a `keras.utils.PyDataset`, iterated as `fit` does, without a model."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter
from pillow_draft_rows import crop

from facepairs.bench.job import Batch, Job

WORKERS = 2


class Pairs(keras.utils.PyDataset):  # type: ignore[misc]
    """Batch by number: the uint8 crops of both sides, and the labels."""

    def __init__(self, job: Job, processes: bool) -> None:
        super().__init__(workers=WORKERS, use_multiprocessing=processes)
        self._job, self._pairs, self._paths = job, job.pairs, job.paths

    def __len__(self) -> int:
        return len(self._pairs) // self._job.batch_size

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        size = self._job.batch_size
        pairs = self._pairs.where(slice(number * size, (number + 1) * size))
        left, right = (
            np.stack([crop(self._paths[image], self._job) for image in side])
            for side in (pairs.left, pairs.right)
        )
        return (left, right), pairs.genuine


def threads(job: Job) -> Iterator[Batch]:
    """Yield batches from two worker threads."""
    return _iterate(Pairs(job, processes=False))


def processes(job: Job) -> Iterator[Batch]:
    """Yield batches from two worker processes."""
    return _iterate(Pairs(job, processes=True))


def _iterate(pairs: Pairs) -> Iterator[Batch]:
    adapter = PyDatasetAdapter(pairs)
    dataset = adapter.get_tf_dataset()  # before any worker is forked, as in `fit`
    while True:
        adapter.on_epoch_begin()
        for (left, right), genuine in dataset:
            yield Batch(len(genuine), (left, right), genuine)
        adapter.on_epoch_end()
