"""Rows of this package's own stores, and what builds those that are kept on disk."""

from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from facepairs.bench.job import SEED, Batch, Job
from facepairs.pipeline.dataset import Store, make_dataset
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.pipeline.records.build import build_cache
from facepairs.pipeline.records.store import RecordStore


def opened(job: Job, name: str, shuffle_seed: int | None = None) -> tuple[Store, tf.data.Dataset]:
    """Open a store by name: the part it plays in the step, and its batches without end.

    `shuffle_seed` is for the pair caches; `files` does their part of the step, which is none.
    """
    path = Path(job.spec.cache)
    files = FileStore(job.index, job.frame_px, job.crop_px)
    if name.startswith("tfrecord"):
        records = RecordStore.open(path)
        return files, records.batches(job.batch_size, shuffle_seed, repeat=True)
    store: Store = files
    if name == "memory":
        store = MemoryStore.build(job.index, job.frame_px, job.crop_px, path)
    return store, make_dataset(store, job.blocks, job.batch_size)


def build(job: Job) -> None:
    """Build a store that is kept on disk."""
    path = Path(job.spec.cache)
    if job.spec.name == "memory":
        MemoryStore.build(job.index, job.frame_px, job.crop_px, path)
        return
    build_cache(
        path,
        job.index,
        job.people,
        len(job.pairs),
        seed=SEED,
        encoding=job.spec.name.removeprefix("tfrecord-"),
        frame_px=job.frame_px,
        crop_px=job.crop_px,
    )


def stored(job: Job) -> Iterator[Batch]:
    """Iterate over a store's batches, and do its part of the step with each."""
    store, batches = opened(job, job.spec.name)
    for batch in batches:
        yield Batch(len(batch["genuine"]), store.pixels(batch["images"]), batch["genuine"])
