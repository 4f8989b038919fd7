"""The second table: the training loop itself, fed by each store."""

import itertools
from dataclasses import dataclass

import keras
import tensorflow as tf

from facepairs.bench.job import CONSTANT, SEED, Job
from facepairs.bench.store_rows import opened
from facepairs.config import TrainConfig
from facepairs.models.network import build_network
from facepairs.training.loop import Progress, Schedule, TrainLoop

WARM_UP_STEPS, STEPS = 10, 50


@dataclass(frozen=True)
class Steps:
    """How fast the loop went, and the share of its time that it waited for a batch."""

    steps_per_s: float
    input_wait_share: float
    device: str


def train_steps(job: Job) -> Steps:
    """Run `TrainLoop` for 10 steps, then for the 50 whose own report is given."""
    keras.utils.set_random_seed(SEED)
    config = TrainConfig().replace(model=job.spec.model)
    network = build_network(job.spec.model, job.crop_px, config.image_size, config.augment)
    constant = job.spec.name == CONSTANT
    store, batches = opened(job, "files" if constant else job.spec.name, SEED)
    if constant:
        batches = itertools.repeat(next(iter(batches)))
    loop = TrainLoop(network, store, SEED, validate=dict, should_stop=lambda: False)

    def then_measure(schedule: Schedule, progress: Progress) -> Schedule:
        # After an epoch of 10 steps comes one that ends at step 60; its report is that of 50 steps.
        return Schedule(1, WARM_UP_STEPS + STEPS, schedule.peak)

    callbacks = keras.callbacks.CallbackList([], model=None)
    loop.run(batches, Schedule(1, WARM_UP_STEPS, config.learning_rate), callbacks, then_measure)
    report = loop.progress.history[-1]
    return Steps(report["pairs_per_s"] / job.batch_size, report["input_wait"], _device())


def _device() -> str:
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return "CPU"
    return str(tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU"))
