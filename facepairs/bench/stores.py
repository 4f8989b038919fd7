"""This package's own stores: their batches, the caches that some build, and training from them."""

import time
from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf

from facepairs.bench.job import SEED, Batch, Job, Skip
from facepairs.bench.rows import UNALIGNED, Measurement
from facepairs.choices import Encoding
from facepairs.config import TrainConfig
from facepairs.models.build import build_network
from facepairs.pipeline.dataset import Store, clocked, make_dataset
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.pipeline.records.build import CachePlan, build_cache
from facepairs.pipeline.records.store import RecordStore

STEPS = 30  # of each of the three parts of a measurement of training, and to warm it up


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
    """Fit the difference network to a constant batch, to a store, and to the constant batch again.

    A slow phase of the machine then affects both. The store's batches begin after the first part
    and end before the last, so that neither part prefetches for the other.
    """
    keras.utils.set_random_seed(SEED)
    config = TrainConfig(model="difference").resolve()
    recipe = config.recipe
    model = build_network(config.model, job.crop_px, recipe.image_size, recipe.augment)
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(config.learning_rate), loss, jit_compile=False)
    batches = _open(job, SEED)
    constant = tf.data.Dataset.from_tensors(next(iter(batches))).repeat()
    before, _ = _fit(model, constant)
    live, waited = _fit(model, batches)
    after, _ = _fit(model, constant)
    ceiling = 2 / (1 / before + 1 / after)
    gpus = tf.config.list_physical_devices("GPU")
    return Measurement(
        steps_per_s=live,
        ceiling_steps_per_s=ceiling,
        share_of_ceiling=live / ceiling,
        input_wait_share=waited,
        device=tf.config.experimental.get_device_details(gpus[0])["device_name"] if gpus else "CPU",
    )


def _fit(model: keras.Model, batches: tf.data.Dataset) -> tuple[float, float]:
    """Fit for an epoch to warm up and one to measure.

    Returns:
        Steps a second of the latter, and the share of its time that it waited for batches.
    """
    waited_s, marks = tf.Variable(0.0, dtype=tf.float64), list[tuple[float, float]]()

    def mark(epoch: int, logs: object) -> None:
        marks.append((time.perf_counter(), float(waited_s)))

    model.fit(
        clocked(batches, waited_s),
        epochs=2,
        steps_per_epoch=STEPS,
        callbacks=[keras.callbacks.LambdaCallback(on_epoch_begin=mark, on_epoch_end=mark)],
        shuffle=False,
        verbose=0,
    )
    took_s, waiting_s = np.subtract(marks[-1], marks[-2]).tolist()
    return STEPS / took_s, waiting_s / took_s
