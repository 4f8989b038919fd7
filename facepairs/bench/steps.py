"""The second table: the training loop itself, fed by each store and by a constant batch."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from facepairs.bench.job import SEED, Job
from facepairs.bench.store_rows import opened
from facepairs.config import TrainConfig
from facepairs.models.network import Network, build_network
from facepairs.pipeline.dataset import Store
from facepairs.pipeline.files import FileStore
from facepairs.training.loop import Progress, Schedule, TrainLoop

WARM_UP_STEPS, STEPS = 10, 50  # of each of the three parts


@dataclass(frozen=True)
class Steps:
    """How fast the loop went, beside a constant batch, and the share of its time it waited."""

    steps_per_s: float
    ceiling_steps_per_s: float
    input_wait_share: float
    device: str


def train_steps(job: Job) -> Steps:
    """Run the training loop on a constant batch, from the store, on the constant batch again.

    What slows a process or the machine for a while then slows both. The store's batches begin
    after the first part and end before the last, so that neither runs ahead for the other.
    """
    keras.utils.set_random_seed(SEED)
    config = TrainConfig().replace(model=job.spec.model)
    network = build_network(job.spec.model, job.crop_px, config.image_size, config.augment)
    store, batches = opened(job, job.spec.name, SEED)
    first = next(iter(batches))
    pixels = store.pixels(first["images"])  # what every store gives in the end
    constant = itertools.repeat({**first, "images": pixels})
    on_constant = _loop(network, FileStore(job.index, job.frame_px, job.crop_px))
    before = _measured(on_constant, constant, config.learning_rate)
    live = _measured(_loop(network, store), batches, config.learning_rate)
    after = _measured(on_constant, constant, config.learning_rate)
    seconds = [job.batch_size / report["pairs_per_s"] for report in (before, after)]
    return Steps(
        live["pairs_per_s"] / job.batch_size,
        len(seconds) / sum(seconds),
        live["input_wait"],
        _device(),
    )


def _loop(network: Network, store: Store) -> TrainLoop:
    return TrainLoop(network, store, SEED, validate=dict, should_stop=lambda: False)


def _measured(loop: TrainLoop, batches: Iterable[Any], peak: float) -> dict[str, Any]:
    """Run 10 steps, then 50 whose own report is given."""

    def then_measure(schedule: Schedule, progress: Progress) -> Schedule:
        # After an epoch of 10 steps comes one that ends at step 60; its report is that of 50 steps.
        return Schedule(1, WARM_UP_STEPS + STEPS, schedule.peak)

    loop.progress = Progress()
    callbacks = keras.callbacks.CallbackList([], model=None)
    loop.run(batches, Schedule(1, WARM_UP_STEPS, peak), callbacks, then_measure)
    return loop.progress.history[-1]


def _device() -> str:
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return "CPU"
    return str(tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU"))
