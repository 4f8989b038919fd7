"""What a second worker brings and costs: steps of one worker and of two, on this machine.

    python scripts/benchmarks/scaling.py DATA [--model siamese] [--pairs 64] [--json]

Each worker has half of the cores, so that both measurements have the same to work with, and takes
as many pairs per step. What a step of two takes longer than a step of one is communication, and
whatever else two processes on one machine take from each other.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

WARM_UP_STEPS, REPEATS = 5, 7
EXCHANGES = ("CollectiveReduceV2", "CollectiveReduceV3", "CollectiveGatherV2")
Row = dict[str, Any]


def median_seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the median duration of some work, after one run to warm up."""
    work()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def measure_worker(options: argparse.Namespace) -> Row:
    """Measure the training step in this process, alone or as one of the workers in TF_CONFIG."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    from facepairs.config import TrainConfig
    from facepairs.data.index import FaceIndex
    from facepairs.faces.inspection import inspect_photos
    from facepairs.fisher.fit import precompute
    from facepairs.fisher.network import FisherNetwork
    from facepairs.models.build import build_network
    from facepairs.models.network import Network, Trainable
    from facepairs.models.replicas import synchronise_batch_norms
    from facepairs.pipeline.dataset import Store
    from facepairs.pipeline.files import FileStore
    from facepairs.pipeline.memory import MemoryStore
    from facepairs.training.distributed import connect_devices
    from facepairs.training.step import TrainStep, create_optimizer

    context = connect_devices("auto")
    config = TrainConfig().replace(model=options.model)
    index = FaceIndex.scan(options.data).without(range(options.images, 10**7))
    network: Network
    with context.scope():
        if config.recipe.precomputes:
            network = FisherNetwork.build(config.recipe.crop_px, config.image_size)
        else:
            network = build_network(
                options.model, config.recipe.crop_px, config.image_size, config.recipe.augment
            )
    if context.strategy:
        synchronise_batch_norms(network.head)
    plan = inspect_photos(index, config.align).crop_plan(config.recipe.crop_spec, config.align)
    in_files = options.store == "files"
    store: Store = FileStore(index, plan) if in_files else MemoryStore.build(index, plan)
    source: Store = store
    model: Trainable = network
    row: Row = {"pairs": options.pairs, "workers": context.workers}
    if isinstance(network, FisherNetwork):
        started = time.perf_counter()
        features = precompute(network, store, len(index))
        row["precompute_s_per_image"] = (time.perf_counter() - started) / len(index)
        source, model = features, network.feature_head()
    step = TrainStep(model, 0, create_optimizer(model, context), context)
    batch = options.pairs * context.workers
    batches = _batches(index, source, context, batch, network.kind == "embedding")
    row |= _time_steps(step, batches, options.steps)
    weights = sum(int(v.value.shape.num_elements()) for v in model.trainable_variables)
    row["gradient_bytes"] = 4 * weights
    if context.workers > 1:
        row |= _time_exchanges(step, next(iter(batches)), weights)
    return row


def _batches(index: Any, source: Any, context: Any, batch: int, distinct: bool) -> Any:
    """Return a training's batches, without end; of distinct people if the loss needs that."""
    import numpy as np

    from facepairs.data.sampler import DistinctPeopleSampler, PairSampler, Sampler
    from facepairs.pipeline.dataset import make_dataset
    from facepairs.training.schedule import training_blocks

    people = np.arange(len(index.people))
    sampler: Sampler = PairSampler(index.first, people, 0)
    if distinct:
        sampler = DistinctPeopleSampler(index.first, people, 0, batch)
        if sampler.batch_size < batch:
            raise SystemExit(f"{len(people)} people cannot fill a batch of {batch}: raise --images")

    def blocks() -> Iterator[Any]:
        return training_blocks(sampler, batch, 10**6, 0)

    return make_dataset(source, blocks, batch, context.local_range(batch))


def _time_steps(step: Any, batches: Any, steps: int) -> Row:
    """Time the loading of batches alone, then steps and how long they wait for their batches."""
    alone = iter(batches)
    loading = median_seconds(lambda: next(alone), steps)
    iterator, waited, worked = iter(batches), [], []
    for number in range(WARM_UP_STEPS + steps):
        started = time.perf_counter()
        batch = next(iterator)
        ready = time.perf_counter()
        float(step(batch, number, 1e-3))
        if number >= WARM_UP_STEPS:
            waited.append(ready - started)
            worked.append(time.perf_counter() - ready)
    return {
        "input_s": loading,
        "wait_s": statistics.mean(waited),
        "step_s": statistics.median(worked),
    }


def _time_exchanges(step: Any, batch: Any, weights: int) -> Row:
    """Count what a step exchanges between workers, and time two exchanges alone."""
    import numpy as np
    import tensorflow as tf

    graph = step.compiled.get_concrete_function(batch, tf.constant(0, tf.int64)).graph
    kinds = [operation.type for operation in graph.get_operations()]
    arrays = {"small": np.zeros(1, np.float32), "gradient": np.zeros(weights, np.float32)}
    return {
        "exchanges_per_step": sum(kinds.count(name) for name in EXCHANGES),
        **{
            f"sum_{name}_s": median_seconds(lambda array=array: step.context.sum(array, np.float32))
            for name, array in arrays.items()
        },
    }


def run_workers(workers: int, words: list[str]) -> list[Row]:
    """Measure with one worker or two, each on its half of the cores; return a row for each."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("needs two cores: one for each of two workers")
    half = len(cores) // 2
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(workers)]
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        hosts = [f"127.0.0.1:{free.getsockname()[1]}" for free in sockets]
    processes = []
    for worker in range(workers):
        task = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": worker}}
        own_cores = ",".join(map(str, cores[worker * half : (worker + 1) * half]))
        processes.append(
            subprocess.Popen(
                [sys.executable, __file__, *words, "--worker-cores", own_cores],
                env={**os.environ, "TF_CONFIG": json.dumps(task)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    rows = []
    for process in processes:
        out, errors = process.communicate()
        if process.returncode:
            raise SystemExit(f"measuring failed:\n{errors[-2000:]}")
        rows.append(json.loads(out.splitlines()[-1]))
    return rows


def print_report(one: Row, two: Row) -> None:
    """Print what was measured; `two` is the slower of two workers."""
    print("Measured on this machine, each worker on half of its cores")
    print(f"  {one['pairs']} pairs per worker and step   one worker   two workers")
    for label, key in (
        ("step, without waiting for input", "step_s"),
        ("waiting for input", "wait_s"),
        ("loading a batch, alone", "input_s"),
    ):
        print(f"  {label:<32}" + "".join(f"{row[key] * 1000:>8.1f} ms" for row in (one, two)))
    rates = [row["workers"] * row["pairs"] / (row["step_s"] + row["wait_s"]) for row in (one, two)]
    print(f"  {'throughput, pairs/s':<32}" + "".join(f"{rate:>8.0f}   " for rate in rates))
    longer_ms = 1000 * (two["step_s"] - one["step_s"])
    print(f"  a step of two takes {longer_ms:.1f} ms longer: communication and contention")
    print(
        f"  summing {two['gradient_bytes'] / 1e6:.1f} MB of gradients alone takes "
        f"{two['sum_gradient_s'] * 1000:.1f} ms, 4 bytes {two['sum_small_s'] * 1000:.1f} ms; "
        f"{two['exchanges_per_step']} exchanges per step"
    )
    if "precompute_s_per_image" in one:
        print(f"  precomputing takes {1000 * one['precompute_s_per_image']:.1f} ms per image")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="siamese")
    parser.add_argument("--pairs", type=int, default=64, help="per worker and step")
    parser.add_argument("--steps", type=int, default=30, help="measured, after five more")
    parser.add_argument("--images", type=int, default=3000, help="of DATA, for measuring")
    parser.add_argument("--store", choices=("files", "memory"), default="files")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker-cores", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker_cores:
        os.sched_setaffinity(0, {int(core) for core in options.worker_cores.split(",")})
        print(json.dumps(measure_worker(options)), flush=True)
        return
    words = [word for word in sys.argv[1:] if word != "--json"]
    (one,) = run_workers(1, words)
    two = run_workers(2, words)
    if options.json:
        print(json.dumps({"one_worker": one, "two_workers": two}, indent=1))
    else:
        print_report(one, max(two, key=lambda row: row["step_s"]))


if __name__ == "__main__":
    main()
