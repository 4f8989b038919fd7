"""Rows of PyTorch: a map-style dataset of pairs behind a `DataLoader`."""

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader

from facepairs.bench.job import Batch, Job
from facepairs.bench.pillow_rows import crop


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


def loader(job: Job) -> Iterator[Batch]:
    """Collate batches in this process (0 workers) or in as many as the variant says."""
    torch.set_num_threads(1)  # as its workers do: threads that wait to collate spin, and cost half
    workers = int(job.spec.variant)
    batches = DataLoader(
        Pairs(job), job.batch_size, num_workers=workers, persistent_workers=workers > 0
    )
    while True:
        for left, right, genuine in batches:
            yield Batch(len(genuine), (left, right), genuine)
