"""A short training on drawn faces by one device, several, or workers; leaves weights and losses.

    python shared_training.py FACES OUT DEVICES MODEL:LOSS …

DEVICES logical processors share it, or where TF_CONFIG is set, its workers. Plain gradient descent:
unlike Adam it makes little of the rounding that differs.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import DistinctPeopleSampler, PairSampler
from facepairs.models.network import build_network
from facepairs.models.replicas import synchronise
from facepairs.pipeline.dataset import make_dataset, people_numbers
from facepairs.pipeline.memory import MemoryStore
from facepairs.training.distributed.cluster import read_cluster
from facepairs.training.distributed.context import Team, open_team
from facepairs.training.loop.train_loop import Schedule, TrainLoop, training_blocks

BATCH, STEPS, EPOCHS = 10, 3, 2


def train(team: Team, index: FaceIndex, store: MemoryStore, model: str, loss: str) -> dict:
    everyone = np.arange(len(index.people))
    keras.utils.set_random_seed(0)
    with team.scope():
        network = build_network(model, 64, 64, 1.0, 0.2, loss=loss, photos=index.image_counts)
    if team.strategy:
        synchronise(network.head)
    loop = TrainLoop(network, store, 3, dict, lambda: False, team)
    with team.scope():
        loop.optimizer = keras.optimizers.SGD()
        loop.optimizer.build(network.trainable_variables)
    start = {f"start-v{i:02d}": np.asarray(v) for i, v in enumerate(network.variables)}
    sampler = (
        DistinctPeopleSampler(index.first, everyone, 3, BATCH)
        if network.kind == "embedding"
        else PairSampler(index.first, everyone, 3)
    )
    batches = make_dataset(
        store,
        lambda: training_blocks(sampler, BATCH, STEPS, 0),
        BATCH,
        people_numbers(index.person_of, everyone),
        team.own(BATCH),
    )
    callbacks = keras.callbacks.CallbackList([], model=None)
    schedule = Schedule(EPOCHS, STEPS, 1e-3)
    loop.run(batches, schedule, callbacks, lambda schedule, progress: schedule)
    weights = {f"v{i:02d}": np.asarray(v) for i, v in enumerate(network.variables)}
    return {**start, **weights, "loss": [row["loss"] for row in loop.progress.history]}


def main(faces: str, out: str, devices: str, *models: str) -> None:
    if read_cluster().workers == 1:
        logical = [tf.config.LogicalDeviceConfiguration()] * int(devices)
        (processor,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(processor, logical)
    team = open_team("all")
    assert team.replicas == int(devices)
    index = FaceIndex.scan(faces)
    store = MemoryStore.build(index, 250, 64)
    for name in models:
        found = train(team, index, store, *name.split(":"))
        np.savez(f"{out}-{team.worker}-{name.replace(':', '-')}.npz", **found)
    team.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
