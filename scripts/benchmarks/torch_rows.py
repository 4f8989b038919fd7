"""Rows of PyTorch: a map-style dataset of pairs behind a `DataLoader`."""

from collections.abc import Iterator
from typing import Any

import torch
from pillow_draft_rows import crop
from torch.utils.data import DataLoader

from facepairs.bench.job import Batch, Job
from facepairs.support.platform import cores


class Pairs(torch.utils.data.Dataset):  # type: ignore[misc]
    """Pair by number: two uint8 crops and a label."""

    def __init__(self, job: Job) -> None:
        self._job, self._pairs, self._paths = job, job.pairs, job.paths

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, number: int) -> tuple[Any, Any, bool]:
        left, right = (
            torch.from_numpy(crop(self._paths[side[number]], self._job).copy())
            for side in (self._pairs.left, self._pairs.right)
        )
        return left, right, bool(self._pairs.genuine[number])


def in_process(job: Job) -> Iterator[Batch]:
    """Yield batches that this process collates itself."""
    return _load(job, 0)


def two_workers(job: Job) -> Iterator[Batch]:
    """Yield batches from two worker processes."""
    return _load(job, 2)


def worker_per_core(job: Job) -> Iterator[Batch]:
    """Yield batches from one worker process per core."""
    return _load(job, cores())


def _load(job: Job, workers: int) -> Iterator[Batch]:
    # As DataLoader's workers do; more threads would spin while they wait, at half the speed.
    torch.set_num_threads(1)
    batches = DataLoader(
        Pairs(job), job.batch_size, num_workers=workers, persistent_workers=workers > 0
    )
    while True:
        for left, right, genuine in batches:
            yield Batch(len(genuine), (left, right), genuine)
