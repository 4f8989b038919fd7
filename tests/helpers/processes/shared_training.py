"""Train briefly on drawn faces with one device, several, or workers; save weights and losses.

    python shared_training.py FACES OUT DEVICES MODEL:LOSS …

DEVICES logical CPUs share the training, or the workers of TF_CONFIG if it is set. Uses plain
gradient descent: unlike Adam it does not amplify differences in rounding.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import DistinctPeopleSampler, PairSampler
from facepairs.faces.inspection import inspect_photos
from facepairs.images.crop import CropSpec
from facepairs.models.build import build_network
from facepairs.models.replicas import synchronise_batch_norms
from facepairs.pipeline.dataset import make_dataset
from facepairs.pipeline.memory import MemoryStore
from facepairs.training.cluster import read_cluster
from facepairs.training.distributed import DistributedContext, connect_devices
from facepairs.training.loop import run_epoch
from facepairs.training.schedule import Schedule, training_blocks
from facepairs.training.step import TrainStep

BATCH, STEPS, EPOCHS = 10, 3, 2
SEED = 4  # of pairs and augmentation; with seed 3 the loss hardly falls, and rounding matters more


def train(
    context: DistributedContext, index: FaceIndex, store: MemoryStore, model: str, loss: str
) -> dict:
    everyone = np.arange(len(index.people))
    keras.utils.set_random_seed(0)
    with context.scope():
        network = build_network(model, 64, 64, 1.0, loss=loss)
    if context.strategy:
        synchronise_batch_norms(network.head)
    with context.scope():
        optimizer = keras.optimizers.SGD()
        optimizer.build(network.trainable_variables)
    step = TrainStep(network, SEED, optimizer, context)
    start = {f"start-v{i:02d}": np.asarray(v) for i, v in enumerate(network.variables)}
    sampler = (
        DistinctPeopleSampler(index.first, everyone, SEED, BATCH)
        if network.kind == "embedding"
        else PairSampler(index.first, everyone, SEED)
    )
    batches = iter(
        make_dataset(
            store,
            lambda: training_blocks(sampler, BATCH, STEPS, 0),
            BATCH,
            context.local_range(BATCH),
        )
    )
    callbacks = keras.callbacks.CallbackList([], model=None)
    schedule = Schedule(EPOCHS, STEPS, 1e-3)
    epochs = [
        run_epoch(step, batches, schedule, epoch, callbacks, lambda: False)
        for epoch in range(EPOCHS)
    ]
    weights = {f"v{i:02d}": np.asarray(v) for i, v in enumerate(network.variables)}
    return {**start, **weights, "loss": [epoch.loss for epoch in epochs]}


def main(faces: str, out: str, devices: str, *models: str) -> None:
    if read_cluster().workers == 1:
        logical = [tf.config.LogicalDeviceConfiguration()] * int(devices)
        (processor,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(processor, logical)
    context = connect_devices("all")
    assert context.replicas == int(devices)
    index = FaceIndex.scan(faces)
    plan = inspect_photos(index, "none").crop_plan(CropSpec(250, 64), "none")
    store = MemoryStore.build(index, plan)
    for name in models:
        result = train(context, index, store, *name.split(":"))
        np.savez(f"{out}-{context.worker}-{name.replace(':', '-')}.npz", **result)
    context.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
