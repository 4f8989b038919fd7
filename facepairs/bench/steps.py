"""The training table: the loop itself, fed by a store and by a constant batch."""

import itertools
from collections.abc import Iterator

import keras
import tensorflow as tf

from facepairs.bench.job import SEED, Job
from facepairs.bench.measurements import StepMeasurement
from facepairs.bench.store_rows import open_store
from facepairs.config import TrainConfig
from facepairs.models.build import build_network
from facepairs.models.network import Network
from facepairs.pipeline.dataset import Store
from facepairs.pipeline.files import FileStore
from facepairs.training.distributed import SINGLE_DEVICE
from facepairs.training.loop import run_epoch
from facepairs.training.schedule import Schedule
from facepairs.training.step import Batch, TrainStep, create_optimizer
from facepairs.training.training import EpochFigures

WARM_UP_STEPS, STEPS = 5, 30  # of each of the three parts


def measure_steps(job: Job) -> StepMeasurement:
    """Run the training loop on a constant batch, from a store, and on the constant batch again.

    A slow phase of the machine then affects both. The store's batches begin after the first part
    and end before the last, so that neither part prefetches for the other.
    """
    keras.utils.set_random_seed(SEED)
    config = TrainConfig(model=job.spec.settings.model)
    network = build_network(
        job.spec.settings.model, job.crop_px, config.image_size, config.recipe.augment
    )
    store, batches = open_store(job, SEED)
    first = next(iter(batches))
    pixels = store.gather(first["images"])
    constant = itertools.repeat({**first, "images": pixels})
    constant_step = _step(network, FileStore(job.index, job.plan))
    before = _run(constant_step, constant, config.learning_rate)
    live = _run(_step(network, store), iter(batches), config.learning_rate)
    after = _run(constant_step, constant, config.learning_rate)
    seconds = [job.batch_size / figures.pairs_per_s for figures in (before, after)]
    return StepMeasurement(
        live.pairs_per_s / job.batch_size,
        len(seconds) / sum(seconds),
        live.input_wait,
        _device(),
    )


def _step(network: Network, store: Store) -> TrainStep:
    return TrainStep(network, store, SEED, create_optimizer(network, SINGLE_DEVICE))


def _run(step: TrainStep, batches: Iterator[Batch], peak: float) -> EpochFigures:
    """Run steps to warm up and those to measure; return the figures of the latter."""
    callbacks = keras.callbacks.CallbackList([], model=None)
    for steps in (WARM_UP_STEPS, STEPS):
        figures = run_epoch(step, batches, Schedule(1, steps, peak), 0, callbacks, lambda: False)
    return figures


def _device() -> str:
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return "CPU"
    return str(tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU"))
