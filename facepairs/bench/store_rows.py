"""Rows of this package's own stores, and the caches that some of them build on disk."""

from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from facepairs.bench.job import SEED, Batch, Job
from facepairs.bench.rows import UNALIGNED
from facepairs.choices import Encoding
from facepairs.data.sampler import PairSampler
from facepairs.pipeline.dataset import Store, make_dataset
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.pipeline.records.build import CachePlan, build_cache
from facepairs.pipeline.records.store import RecordStore


def open_store(job: Job, shuffle_seed: int | None = None) -> tuple[Store, tf.data.Dataset]:
    """Open the store of a row.

    Args:
        job: The measurement; its row's name is the name of the store.
        shuffle_seed: Shuffles the records of a pair cache; None reads them in order.

    Returns:
        The store that turns a batch's `images` into pixels, and a dataset of batches without end.
        A pair cache holds pixels already, so its store is `files`, which returns them unchanged.
    """
    name = job.spec.name
    path = Path(job.spec.cache)
    plan = job.unaligned_plan if name == UNALIGNED else job.plan
    files = FileStore(job.index, plan)
    if name.startswith("tfrecord"):
        records = RecordStore.open(path)
        return files, records.batches(job.batch_size, shuffle_seed)
    store: Store = files
    if name == "memory":
        store = MemoryStore.build(job.index, job.plan, path)
    return store, make_dataset(store, job.blocks, job.batch_size)


def build(job: Job) -> None:
    """Build the cache of a row on disk."""
    path = Path(job.spec.cache)
    if job.spec.name == "memory":
        MemoryStore.build(job.index, job.plan, path)
        return
    sampler = PairSampler(job.index.first, job.people, SEED)
    encoding: Encoding = "raw" if job.spec.name.endswith("raw") else "jpeg"
    build_cache(path, CachePlan(job.index, job.plan, sampler, len(job.pairs), encoding))


def store_batches(job: Job) -> Iterator[Batch]:
    """Yield a store's batches, with its part of the training step applied."""
    store, batches = open_store(job)
    for batch in batches:
        yield Batch(len(batch["genuine"]), store.gather(batch["images"]), batch["genuine"])
