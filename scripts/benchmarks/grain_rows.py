"""Rows of Grain: a source of pairs, read in threads, or in worker processes."""

from collections.abc import Iterator
from typing import Any

import grain
import numpy as np
from absl import flags
from pillow_draft_rows import crop

from facepairs.bench.job import Batch, Job
from facepairs.support.platform import cores

WORKERS = 2


class Pairs:
    """Pair by number, as Grain's sources are: two uint8 crops and a label."""

    def __init__(self, job: Job) -> None:
        self._job, self._pairs, self._paths = job, job.pairs, job.paths

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, number: int) -> tuple[Any, Any, Any]:
        pairs = self._pairs
        left, right = (
            crop(self._paths[side[number]], self._job) for side in (pairs.left, pairs.right)
        )
        return left, right, np.bool_(pairs.genuine[number])


def threads(job: Job) -> Iterator[Batch]:
    """Yield batches from one thread per core."""
    return _iterate(_batches(job, cores()))


def processes(job: Job) -> Iterator[Batch]:
    """Yield batches from two worker processes, which Grain spawns."""
    flags.FLAGS.mark_as_parsed()  # Grain reads flags when it starts workers
    batches = _batches(job, 1)
    return _iterate(batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=WORKERS)))


def _batches(job: Job, threads: int) -> grain.IterDataset:
    pairs = grain.MapDataset.source(Pairs(job)).repeat()
    read = pairs.to_iter_dataset(grain.ReadOptions(num_threads=threads))
    return read.batch(job.batch_size, drop_remainder=True)


def _iterate(batches: grain.IterDataset) -> Iterator[Batch]:
    for left, right, genuine in batches:
        yield Batch(len(genuine), (left, right), genuine)
