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
    from facepairs.models.network import DescribedNetwork, build_network
    from facepairs.models.replicas import synchronise
    from facepairs.pipeline.dataset import Store
    from facepairs.pipeline.files import FileStore
    from facepairs.pipeline.memory import MemoryStore
    from facepairs.training.distributed.context import open_team
    from facepairs.training.fitting.fisher import describe_images
    from facepairs.training.loop import TrainLoop

    team = open_team("auto")
    config = TrainConfig().replace(model=model)
    index = FaceIndex.scan(data).without(range(images, 10**7))
    with team.scope():
        network = build_network(model, config.crop_px, config.image_size, config.augment)
    if team.strategy:
        synchronise(network.head)
    frame = (config.frame_px, config.crop_px)
    found: Json = {"pairs": pairs, "workers": team.workers}
    store: Store = FileStore(index, *frame) if kind == "files" else MemoryStore.build(index, *frame)
    if isinstance(network, DescribedNetwork):
        started = time.perf_counter()
        store = describe_images(network, store, len(index), Path())
        found["describe_s_an_image"] = (time.perf_counter() - started) / len(index)
        found["bytes_an_image"] = store.vectors[0].nbytes
    loop = TrainLoop(network, store, 0, dict, lambda: False, team)
    batches = _batches(index, store, team, pairs * team.workers, network.kind == "embedding")
    found |= _time_steps(loop, batches, steps)
    width = int(network.head.output_shape[-1]) if network.kind == "embedding" else 0
    count = sum(int(v.value.shape.num_elements()) for v in network.trainable_variables)
    found |= {"gradient_bytes": 4 * count, "gathered_bytes_a_pair": 4 * (2 * width or 1)}
    if team.workers > 1:
        found |= _time_exchanges(loop, next(iter(batches)), count)
    elif width:
        sizes = (pairs, 4 * pairs)
        found["loss_s"] = {str(n): _time_loss(network.objective, n, width) for n in sizes}
    return found


def _batches(index: Any, store: Any, team: Any, batch: int, distinct: bool) -> Any:
    """Give a training's batches, without end, of people who are distinct where a loss asks it."""
    import numpy as np

    from facepairs.data.sampler import DistinctPeopleSampler, PairSampler, Sampler
    from facepairs.pipeline.dataset import make_dataset, people_numbers
    from facepairs.training.loop import training_blocks

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
        store, lambda: training_blocks(sampler, batch, 10**6, 0), batch, numbers, team.own(batch)
    )


def _time_steps(loop: Any, batches: Any, steps: int) -> Json:
    """Time the loading of batches by itself, then steps and how long they wait for batches."""
    alone = iter(batches)
    loading = timed(lambda: loop.store.pixels(next(alone)["images"]), steps)
    given, waited, worked = iter(batches), [], []
    for step in range(WARM_UP_STEPS + steps):
        started = time.perf_counter()
        some = next(given)
        ready = time.perf_counter()
        float(loop._run_step(some))
        loop.progress.step += 1
        if step >= WARM_UP_STEPS:
            waited.append(ready - started)
            worked.append(time.perf_counter() - ready)
    return {
        "input_s": loading,
        "wait_s": statistics.mean(waited),
        "step_s": statistics.median(worked),
    }


def _time_exchanges(loop: Any, batch: Any, weights: int) -> Json:
    """Count what a step exchanges, and time two exchanges by themselves."""
    import numpy as np
    import tensorflow as tf

    graph = loop._compiled_shared.get_concrete_function(
        batch, tf.constant(0, tf.int64), loop.store.arrays, tf.constant(0.0)
    ).graph
    kinds = [operation.type for operation in graph.get_operations()]
    sums = {"small": np.zeros(1, np.float32), "gradient": np.zeros(weights, np.float32)}
    return {
        "exchanges_a_step": sum(kinds.count(name) for name in EXCHANGES),
        **{
            f"sum_{name}_s": timed(lambda array=array: loop.team.sum(array, np.float32))
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
