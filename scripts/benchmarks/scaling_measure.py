"""One worker's share of what `scaling.py` measures; prints one JSON line.

Alone, or as one of several workers (TF_CONFIG). Steps are the training loop's own.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
WARM_UP_STEPS, REPEATS = 5, 7
EXCHANGES = ("CollectiveReduceV2", "CollectiveReduceV3", "CollectiveGatherV2")
Json = dict[str, Any]


def timed(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Give the median seconds of a piece of work, done once before."""
    work()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def measure(data: Path, model: str, pairs: int, steps: int, images: int, kind: str) -> Json:
    from facepairs.config import TrainConfig
    from facepairs.data.index import FaceIndex
    from facepairs.models.build import build_network
    from facepairs.models.frozen_backbone import FrozenBackboneNetwork
    from facepairs.models.network import Trainable
    from facepairs.models.replicas import synchronise_batch_norms
    from facepairs.pipeline.dataset import InputSource, Store
    from facepairs.pipeline.files import FileStore
    from facepairs.pipeline.memory import MemoryStore
    from facepairs.training.distributed.startup import connect_devices
    from facepairs.training.fitting.fisher import precompute_features
    from facepairs.training.loop.step import make_step

    context = connect_devices("auto")
    config = TrainConfig().replace(model=model)
    index = FaceIndex.scan(data).without(range(images, 10**7))
    with context.scope():
        network = build_network(model, config.crop_px, config.image_size, config.augment)
    if context.strategy:
        synchronise_batch_norms(network.head)
    frame = (config.frame_px, config.crop_px)
    found: Json = {"pairs": pairs, "workers": context.workers}
    store: Store = FileStore(index, *frame) if kind == "files" else MemoryStore.build(index, *frame)
    model_to_train: Trainable = network
    source: InputSource = store
    if isinstance(network, FrozenBackboneNetwork):
        started = time.perf_counter()
        features = precompute_features(network, store, len(index), Path())
        found["describe_s_an_image"] = (time.perf_counter() - started) / len(index)
        found["bytes_an_image"] = features.vectors[0].nbytes
        model_to_train, source = network.feature_head(), features
    step = make_step(model_to_train, source, 0, context=context)
    distinct = network.kind == "embedding"
    batches = _batches(index, source, context, pairs * context.workers, distinct)
    found |= _time_steps(step, batches, steps)
    width = int(network.head.output_shape[-1]) if network.kind == "embedding" else 0
    count = sum(int(v.value.shape.num_elements()) for v in network.trainable_variables)
    found |= {"gradient_bytes": 4 * count, "gathered_bytes_a_pair": 4 * (2 * width or 1)}
    if context.workers > 1:
        found |= _time_exchanges(step, next(iter(batches)), count)
    elif width:
        sizes = (pairs, 4 * pairs)
        found["loss_s"] = {str(n): _time_loss(network.objective, n, width) for n in sizes}
    return found


def _batches(index: Any, source: Any, context: Any, batch: int, distinct: bool) -> Any:
    """Give a training's batches, without end, of people who are distinct where a loss asks it."""
    import numpy as np

    from facepairs.data.sampler import DistinctPeopleSampler, PairSampler, Sampler
    from facepairs.pipeline.dataset import make_dataset, people_numbers
    from facepairs.training.loop.schedule import training_blocks

    everyone = np.arange(len(index.people))
    sampler: Sampler = PairSampler(index.first, everyone, 0)
    if distinct:
        sampler = DistinctPeopleSampler(index.first, everyone, 0, batch)
        if sampler.batch_size < batch:
            raise SystemExit(
                f"{len(everyone)} people cannot fill a batch of {batch}: raise --images"
            )
    numbers = people_numbers(index.person_of, everyone)
    return make_dataset(
        source,
        lambda: training_blocks(sampler, batch, 10**6, 0),
        batch,
        numbers,
        context.local_range(batch),
    )


def _time_steps(train_step: Any, batches: Any, steps: int) -> Json:
    """Time the loading of batches by itself, then steps and how long they wait for batches."""
    alone = iter(batches)
    loading = timed(lambda: train_step.source.gather(next(alone)["images"]), steps)
    given, waited, worked = iter(batches), [], []
    for step in range(WARM_UP_STEPS + steps):
        started = time.perf_counter()
        some = next(given)
        ready = time.perf_counter()
        float(train_step(some, step))
        if step >= WARM_UP_STEPS:
            waited.append(ready - started)
            worked.append(time.perf_counter() - ready)
    return {
        "input_s": loading,
        "wait_s": statistics.mean(waited),
        "step_s": statistics.median(worked),
    }


def _time_exchanges(train_step: Any, batch: Any, weights: int) -> Json:
    """Count what a step exchanges, and time two exchanges by themselves."""
    import numpy as np
    import tensorflow as tf

    graph = train_step.compiled.get_concrete_function(
        batch, tf.constant(0, tf.int64), train_step.source.arrays, tf.constant(0.0)
    ).graph
    kinds = [operation.type for operation in graph.get_operations()]
    sums = {"small": np.zeros(1, np.float32), "gradient": np.zeros(weights, np.float32)}
    return {
        "exchanges_a_step": sum(kinds.count(name) for name in EXCHANGES),
        **{
            f"sum_{name}_s": timed(lambda array=array: train_step.context.sum(array, np.float32))
            for name, array in sums.items()
        },
    }


def _time_loss(objective: Any, pairs: int, width: int) -> float:
    """Time an objective on so many pairs of embeddings, with its gradient."""
    import tensorflow as tf

    sides = [tf.math.l2_normalize(tf.random.normal((pairs, width)), 1) for _ in range(2)]
    people = tf.range(pairs)

    @tf.function
    def both(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch([left, right])
            loss = objective(left, right, tf.ones(pairs), people, people)
        return tape.gradient(loss, [left, right])

    def work() -> object:
        return both(*sides)[0].numpy()

    return timed(work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--pairs", type=int, required=True, help="a worker and step")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--images", type=int, required=True)
    parser.add_argument("--store", required=True)
    parser.add_argument("--cores", required=True, help="such as 0,1: nothing else is used")
    given = parser.parse_args()
    os.sched_setaffinity(0, {int(core) for core in given.cores.split(",")})
    found = measure(given.data, given.model, given.pairs, given.steps, given.images, given.store)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
