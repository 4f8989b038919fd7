"""The training table: the loop itself, fed by a store and by a constant batch."""

import itertools
from collections.abc import Iterable
from typing import Any

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
from facepairs.training.loop.schedule import Schedule, TrainingProgress
from facepairs.training.loop.step import TrainStep
from facepairs.training.loop.train_loop import TrainLoop

WARM_UP_STEPS, STEPS = 5, 30  # of each of the three parts


def measure_steps(job: Job) -> StepMeasurement:
    """Run the training loop on a constant batch, from a store, and on the constant batch again.

    A slow phase of the machine then affects both. The store's batches begin after the first part
    and end before the last, so that neither part prefetches for the other.
    """
    keras.utils.set_random_seed(SEED)
    config = TrainConfig().replace(model=job.spec.settings.model)
    network = build_network(
        job.spec.settings.model, job.crop_px, config.image_size, config.recipe.augment
    )
    store, batches = open_store(job, SEED)
    first = next(iter(batches))
    pixels = store.gather(first["images"])
    constant = itertools.repeat({**first, "images": pixels})
    constant_loop = _loop(network, FileStore(job.index, job.plan))
    before = _run(constant_loop, constant, config.learning_rate)
    live = _run(_loop(network, store), batches, config.learning_rate)
    after = _run(constant_loop, constant, config.learning_rate)
    seconds = [job.batch_size / report["pairs_per_s"] for report in (before, after)]
    return StepMeasurement(
        live["pairs_per_s"] / job.batch_size,
        len(seconds) / sum(seconds),
        live["input_wait"],
        _device(),
    )


def _loop(network: Network, store: Store) -> TrainLoop:
    return TrainLoop(TrainStep(network, store, SEED))


def _run(loop: TrainLoop, batches: Iterable[Any], peak: float) -> dict[str, Any]:
    """Run steps to warm up and those to measure; return the report of the latter."""

    def then_measure(schedule: Schedule) -> Schedule:
        # After an epoch that only warms up comes another; its report is that of its own steps.
        return Schedule(1, WARM_UP_STEPS + STEPS, schedule.peak)

    loop.progress = TrainingProgress()
    callbacks = keras.callbacks.CallbackList([], model=None)
    loop.run(batches, Schedule(1, WARM_UP_STEPS, peak), callbacks, then_measure)
    return loop.progress.history[-1]


def _device() -> str:
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return "CPU"
    return str(tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU"))
