"""What makes the training step faster on this machine, and what does not.

    python scripts/benchmarks/step_speed.py DATA [--model siamese-conv] [--image-size 64]
    python scripts/benchmarks/step_speed.py DATA --model difference --only "deterministic ops"

Each variant runs the training step on batches from the `memory` store in a process of its own;
variants take turns. Prints the median and range of pairs per second, and the ratio to the first.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

WARM_UP_STEPS, SECONDS = 5, 8.0
REFERENCE = "as shipped"
# name → environment, keyword arguments of `measure`
VARIANTS: dict[str, tuple[dict[str, str], dict[str, int]]] = {
    REFERENCE: ({}, {}),
    "oneDNN off": ({"TF_ENABLE_ONEDNN_OPTS": "0"}, {}),
    "intra-op threads 1": ({}, {"intra": 1}),
    "inter-op threads 1": ({}, {"inter": 1}),
    "tf.data with 1 private thread": ({}, {"private": 1}),
    "XLA (jit_compile)": ({}, {"jit": 1}),
    "8 steps per execution": ({}, {"steps": 8}),
    "bfloat16 compute": ({}, {"bfloat16": 1}),
    "batch 64": ({}, {"batch": 64}),
    "batch 256": ({}, {"batch": 256}),
    "no augmentation": ({}, {"plain": 1}),
    "deterministic ops": ({}, {"deterministic": 1}),
}


def measure(
    data: Path,
    model: str,
    px: int,
    intra: int = 0,
    inter: int = 0,
    private: int = 0,
    jit: int = 0,
    steps: int = 1,
    bfloat16: int = 0,
    batch: int = 0,
    plain: int = 0,
    deterministic: int = 0,
) -> float:
    """Return pairs per second of one variant."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras
    import tensorflow as tf

    from facepairs.config import TrainConfig
    from facepairs.data.index import FaceIndex
    from facepairs.data.sampler import DistinctPeopleSampler
    from facepairs.faces.inspection import inspect_photos
    from facepairs.images.crop import CropSpec
    from facepairs.models.build import build_network
    from facepairs.pipeline.dataset import make_dataset
    from facepairs.pipeline.memory import MemoryStore
    from facepairs.training.distributed import SINGLE_DEVICE
    from facepairs.training.schedule import training_blocks
    from facepairs.training.step import TrainStep, create_optimizer

    tf.config.threading.set_intra_op_parallelism_threads(intra)
    tf.config.threading.set_inter_op_parallelism_threads(inter)
    keras.utils.set_random_seed(0)
    if deterministic:
        tf.config.experimental.enable_op_determinism()
    if bfloat16:
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
    index = FaceIndex.scan(data).without(range(2000, 10**7))
    plan = inspect_photos(index, "none").crop_plan(CropSpec(250, 112), "none")
    store = MemoryStore.build(index, plan)
    batch = batch or TrainConfig().replace(model=model).batch_size
    sampler = DistinctPeopleSampler(index.first, range(len(index.people)), 0, batch)
    dataset = make_dataset(store, lambda: training_blocks(sampler, batch, 10**6, 0), batch)
    if private:
        threads = tf.data.Options()
        threads.threading.private_threadpool_size = private
        dataset = dataset.with_options(threads)
    network = build_network(model, 112, px, 0.0 if plain else 1.0)
    train_step = TrainStep(network, store, 0, create_optimizer(network, SINGLE_DEVICE))
    if steps > 1:
        dataset = dataset.batch(steps)

    @tf.function(autograph=False, jit_compile=bool(jit))
    def run(batch_tensors: dict[str, tf.Tensor], number: tf.Tensor) -> tf.Tensor:
        if steps == 1:
            return train_step.compute(batch_tensors, number, store.arrays)
        for k in range(steps):
            loss = train_step.compute(
                {name: value[k] for name, value in batch_tensors.items()}, number + k, store.arrays
            )
        return loss

    batches = iter(dataset)
    for number in range(WARM_UP_STEPS):
        run(next(batches), tf.constant(number, tf.int64))
    done, started = 0, time.perf_counter()
    while (took := time.perf_counter() - started) < SECONDS:
        float(run(next(batches), tf.constant(done, tf.int64)))
        done += 1
    return done * steps * batch / took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="siamese-conv")
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=VARIANTS, help="compared with the first")
    parser.add_argument("--variant", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.variant:
        print(
            measure(options.data, options.model, options.image_size, **VARIANTS[options.variant][1])
        )
        return
    chosen = dict.fromkeys([REFERENCE, *(options.only or VARIANTS)])
    rates: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in range(options.repeats):
        for name in chosen:
            environment = VARIANTS[name][0]
            command = [sys.executable, __file__, str(options.data), "--variant", name]
            done = subprocess.run(
                [*command, "--model", options.model, "--image-size", str(options.image_size)],
                capture_output=True, text=True, check=False, env={**os.environ, **environment},
            )  # fmt: skip
            if done.returncode == 0:
                rates[name].append(float(done.stdout.splitlines()[-1]))
            else:
                why = [line for line in done.stderr.splitlines() if "Error" in line]
                print(f"{name}: failed: {why[-1][:300] if why else done.stderr}", file=sys.stderr)
    reference = statistics.median(rates[REFERENCE])
    for name, measured in rates.items():
        if measured:
            middle = statistics.median(measured)
            spread = f"({min(measured):,.0f} to {max(measured):,.0f})"
            print(f"{name:<32} {middle:>6,.0f} pairs/s {spread:<16} x {middle / reference:.2f}")
        else:
            print(f"{name:<32} failed")


if __name__ == "__main__":
    main()
