"""This package's own stores: their batches, the caches that some build, and training from them."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from facepairs.bench.job import SEED, Batch, Job, Skip
from facepairs.bench.rows import UNALIGNED, Measurement
from facepairs.choices import Encoding
from facepairs.config import TrainConfig
from facepairs.models.build import build_network
from facepairs.pipeline.dataset import Store, make_dataset
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.pipeline.records.build import CachePlan, build_cache
from facepairs.pipeline.records.store import RecordStore
from facepairs.training.distributed import SINGLE_DEVICE
from facepairs.training.loop import run_epoch
from facepairs.training.schedule import Schedule
from facepairs.training.step import TrainStep, create_optimizer
from facepairs.training.training import EpochFigures

WARM_UP_STEPS, STEPS = 5, 30  # of each of the three parts of a measurement of training


def store_batches(job: Job) -> Iterator[Batch]:
    """Yield the batches of a store."""
    for sides, genuine in _open(job):
        yield Batch(len(genuine), sides, genuine)


def _open(job: Job, shuffle_seed: int | None = None) -> tf.data.Dataset:
    """Open the store of a row; return its batches, without end.

    Args:
        job: The run; its row's name is the name of the store.
        shuffle_seed: Shuffles the records of a pair cache; None reads them in order.

    Raises:
        Skip: Nothing is aligned, so `files` itself is the unaligned row.
    """
    if job.name == UNALIGNED and job.plan.to_crop is None:
        raise Skip("files itself is unaligned")
    if job.name.startswith("tfrecord"):
        return RecordStore.open(job.cache).batches(job.batch_size, shuffle_seed)
    if job.name == "memory":
        store: Store = MemoryStore.build(job.index, job.plan)
    else:
        store = FileStore(job.index, job.unaligned if job.name == UNALIGNED else job.plan)
    return make_dataset(store, job.blocks, job.batch_size)


def build(job: Job) -> Measurement:
    """Build the cache of a row on disk."""
    started = time.perf_counter()
    encoding: Encoding = "raw" if job.name == "tfrecord-raw" else "jpeg"
    build_cache(job.cache, CachePlan(job.index, job.plan, job.sampler, len(job.pairs), encoding))
    took = time.perf_counter() - started
    size = sum(file.stat().st_size for file in job.cache.iterdir())
    return Measurement(build_s=took, disk_mb=size / 1e6)


def measure_steps(job: Job) -> Measurement:
    """Run the training loop on a constant batch, from a store, and on the constant batch again.

    A slow phase of the machine then affects both. The store's batches begin after the first part
    and end before the last, so that neither part prefetches for the other.
    """
    keras.utils.set_random_seed(SEED)
    config = TrainConfig(model="difference")
    network = build_network(config.model, job.crop_px, config.image_size, config.recipe.augment)
    batches = _open(job, SEED)
    constant = itertools.repeat(next(iter(batches)))
    step = TrainStep(network, SEED, create_optimizer(network, SINGLE_DEVICE))
    before = _run(step, constant, config.learning_rate)
    live = _run(step, iter(batches), config.learning_rate)
    after = _run(step, constant, config.learning_rate)
    ceiling = 2 / (1 / before.pairs_per_s + 1 / after.pairs_per_s)
    gpus = tf.config.list_physical_devices("GPU")
    return Measurement(
        steps_per_s=live.pairs_per_s / job.batch_size,
        ceiling_steps_per_s=ceiling / job.batch_size,
        share_of_ceiling=live.pairs_per_s / ceiling,
        input_wait_share=live.input_wait,
        device=tf.config.experimental.get_device_details(gpus[0])["device_name"] if gpus else "CPU",
    )


def _run(step: TrainStep, batches: Iterator[Any], peak: float) -> EpochFigures:
    """Run steps to warm up and those to measure; return the figures of the latter."""
    callbacks = keras.callbacks.CallbackList([], model=None)
    for steps in (WARM_UP_STEPS, STEPS):
        figures = run_epoch(step, batches, Schedule(1, steps, peak), 0, callbacks, lambda: False)
    return figures
