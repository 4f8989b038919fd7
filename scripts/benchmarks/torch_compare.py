"""One training step of the difference network in TensorFlow and in PyTorch, on the same machine.

    python scripts/benchmarks/torch_compare.py [--image-size 112] [--batch-size 64] [--repeats 3]

Needs PyTorch (pip install torch). Same layers, batch, Adam and loss, on a constant batch of
prepared images: no input pipeline, no augmentation. Every measurement has a process of its own;
engines take turns. Prints the median and range of pairs per second, and the ratio to TensorFlow.
"""

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from facepairs.support.platform import keep_freed_memory

WARM_UP_STEPS, SECONDS = 5, 8.0
ENGINES = ("tensorflow", "torch-eager", "torch-channels-last")


def tensorflow_step(px: int, batch: int) -> Callable[[], object]:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras
    import tensorflow as tf

    from facepairs.models.convolutional import difference_head

    head = difference_head(px)
    sides = [tf.random.uniform((batch, px, px, 3)) for _ in range(2)]
    genuine = tf.cast(tf.range(batch) % 2, tf.float32)
    adam = keras.optimizers.Adam(1e-3)
    adam.build(head.trainable_variables)
    loss_of = keras.losses.BinaryCrossentropy(from_logits=True)

    @tf.function
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(genuine, head(sides, training=True)[:, 0])
        weights = head.trainable_variables
        adam.apply(tape.gradient(loss, weights), weights)
        return loss

    return step


def torch_step(px: int, batch: int, channels_last: bool) -> Callable[[], object]:
    import torch
    from torch import nn

    from facepairs.models.convolutional import DENSE, FILTERS, LEAST_VARIANCE, window_px

    window = window_px(px)
    window_mean = nn.Sequential(
        nn.AvgPool2d((window, 1), 1, (window // 2, 0), count_include_pad=False),
        nn.AvgPool2d((1, window), 1, (0, window // 2), count_include_pad=False),
    )

    def local_contrast(images: torch.Tensor) -> torch.Tensor:
        deviation = images - window_mean(images)
        return deviation / (window_mean(deviation.square()) + LEAST_VARIANCE).sqrt()

    layers: list[nn.Module] = []
    for before, filters in zip((3, *FILTERS), FILTERS, strict=False):
        convolution = nn.Conv2d(before, filters, 3, padding=1, bias=False)
        layers += [convolution, nn.BatchNorm2d(filters), nn.ReLU(), nn.MaxPool2d(2)]
    flat = FILTERS[-1] * (px >> len(FILTERS)) ** 2
    layers += [nn.Flatten(), nn.Linear(flat, DENSE), nn.ReLU(), nn.Linear(DENSE, 1)]
    network = nn.Sequential(*layers)
    left, right = torch.rand(batch, 3, px, px), torch.rand(batch, 3, px, px)
    if channels_last:
        network = network.to(memory_format=torch.channels_last)
        left, right = (x.to(memory_format=torch.channels_last) for x in (left, right))
    genuine = (torch.arange(batch) % 2).float()
    adam = torch.optim.Adam(network.parameters(), 1e-3)
    loss_of = nn.BCEWithLogitsLoss()

    def step() -> float:
        adam.zero_grad()
        difference = (local_contrast(left) - local_contrast(right)).abs()
        loss = loss_of(network(difference)[:, 0], genuine)
        loss.backward()
        adam.step()
        return loss.item()

    return step


def pairs_per_s(engine: str, px: int, batch: int) -> float:
    keep_freed_memory()  # as in training; PyTorch gets the same
    step = (
        tensorflow_step(px, batch)
        if engine == "tensorflow"
        else torch_step(px, batch, engine.endswith("channels-last"))
    )
    for _ in range(WARM_UP_STEPS):
        step()
    steps, started = 0, time.perf_counter()
    while (took := time.perf_counter() - started) < SECONDS:
        float(step())  # type: ignore[arg-type] # waits for the result
        steps += 1
    return steps * batch / took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--image-size", type=int, default=112)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        print(pairs_per_s(options.engine, options.image_size, options.batch_size))
        return
    if importlib.util.find_spec("torch") is None:
        sys.exit("PyTorch is not installed here: pip install torch, then run this again")
    rates: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for _ in range(options.repeats):
        for engine in ENGINES:
            size = [
                "--image-size",
                str(options.image_size),
                "--batch-size",
                str(options.batch_size),
            ]
            command = [sys.executable, __file__, "--engine", engine, *size]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rates[engine].append(float(done.stdout))
    reference = statistics.median(rates["tensorflow"])
    print(f"difference network, {options.image_size} pixels, batch {options.batch_size}, "
          f"{os.cpu_count()} cores, median (range) of {options.repeats}")  # fmt: skip
    for engine, measured in rates.items():
        middle = statistics.median(measured)
        print(
            f"{engine:<20} {middle:>7,.0f} pairs/s ({min(measured):,.0f} to {max(measured):,.0f})"
            f"  x {middle / reference:.2f}"
        )


if __name__ == "__main__":
    main()
