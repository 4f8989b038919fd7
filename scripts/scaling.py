"""What training on more workers brings and costs: measured with one and two, then extrapolated.

    python scripts/scaling.py DATA [--model siamese-conv] [--pairs 64] [--json]
    python scripts/scaling.py DATA --gbit 25 --price 2.5 --pairs-per-image 15

One worker and two are measured on this machine, each on half of its cores, so that both have the
same to work with; every worker takes as many pairs a step. What a step with two takes longer than
one alone is communication, and whatever else two processes of one machine take from each other.
From there a model leads to other numbers of workers; what it assumes is printed with it.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

WORKERS = (1, 2, 4, 8, 16, 32, 64)
IMAGES = tuple(10**power for power in range(4, 9))
Json = dict[str, Any]


@dataclass(frozen=True)
class Assumed:
    """What the model takes for granted; none of it is measured."""

    gbit_a_s: float  # from each worker to the next, both ways at once
    latency_us: float  # of one message between two workers
    price_an_hour: float  # of a worker
    pairs_an_image: float  # drawn in a whole training


@dataclass(frozen=True)
class Model:
    """Seconds of a step and of a training, from what was measured and what is assumed."""

    alone: Json
    together: Json
    assumed: Assumed

    def loss_s(self, pairs: int) -> float:
        """Seconds of the loss that every worker takes of all pairs: it grows with their square."""
        measured = {int(n): seconds for n, seconds in self.alone.get("loss_s", {}).items()}
        if not measured:
            return 0.0
        few, many = sorted(measured)
        square = max(0.0, (measured[many] - measured[few]) / (many**2 - few**2))
        return measured[few] + square * (pairs**2 - few**2)

    def compute_s(self, workers: int) -> float:
        """Seconds of a step's own work: that of one worker alone, and the loss of all pairs."""
        pairs = self.alone["pairs"]
        return self.alone["step_s"] + self.loss_s(pairs * workers) - self.loss_s(pairs)

    def exchange_s(self, workers: int) -> float:
        """Seconds that rings of workers take to sum gradients and to gather embeddings."""
        others = workers - 1
        a_second = self.assumed.gbit_a_s * 1e9 / 8
        summed = 2 * others / workers * self.together["gradient_bytes"] / a_second
        gathered = others * self.alone["pairs"] * self.together["gathered_bytes_a_pair"] / a_second
        waited = 2 * others * self.together["exchanges_a_step"] * self.assumed.latency_us * 1e-6
        return summed + gathered + waited

    def step(self, workers: int) -> Json:
        """Give a step's parts; batches are loaded meanwhile, and count where they take longer."""
        compute, exchange = self.compute_s(workers), self.exchange_s(workers)
        whole = max(compute + exchange, self.alone["input_s"])
        pairs_a_s = workers * self.alone["pairs"] / whole
        return {
            "workers": workers,
            "compute_s": compute,
            "exchange_s": exchange,
            "input_s": self.alone["input_s"],
            "step_s": whole,
            "pairs_a_s": pairs_a_s,
            "efficiency": self.step(1)["step_s"] / whole if workers > 1 else 1.0,
        }

    def training(self, workers: int, images: int) -> Json:
        """Give hours and cost of a training; every worker describes all images, where it must."""
        step = self.step(workers)
        seconds = images * self.assumed.pairs_an_image / step["pairs_a_s"]
        seconds += images * self.alone.get("describe_s_an_image", 0.0)
        hours = seconds / 3600
        cost = hours * workers * self.assumed.price_an_hour
        return {"workers": workers, "images": images, "hours": hours, "cost": cost}


def halves() -> tuple[str, str]:
    """Give two disjoint halves of the cores that this process may use."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("needs two cores: one for each of two workers")
    half = len(cores) // 2
    return ",".join(map(str, cores[:half])), ",".join(map(str, cores[half : 2 * half]))


def run(workers: int, words: list[str]) -> list[Json]:
    """Run the measurement with so many workers; give what each found."""
    script = str(Path(__file__).with_name("scaling_measure.py"))
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(workers)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        hosts = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    processes = []
    for worker, cores in zip(range(workers), halves(), strict=False):
        task = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": worker}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(task)}
        command = [sys.executable, script, *words, "--cores", cores]
        processes.append(
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
    found = []
    for process in processes:
        out, errors = process.communicate()
        if process.returncode:
            raise SystemExit(f"measuring failed:\n{errors[-2000:]}")
        found.append(json.loads(out.splitlines()[-1]))
    return found


def print_measured(alone: Json, together: Json) -> None:
    print("Measured on this machine, a worker on half of its cores each")
    print(f"  {alone['pairs']} pairs a worker and step     one worker   two workers")
    both = (alone, together)
    rows = [
        ("step, without waiting for input", "step_s"),
        ("waiting for input", "wait_s"),
        ("loading a batch, by itself", "input_s"),
    ]
    for label, name in rows:
        print(f"  {label:<32}" + "".join(f"{one[name] * 1000:>8.1f} ms" for one in both))
    rates = [one["workers"] * one["pairs"] / (one["step_s"] + one["wait_s"]) for one in both]
    print(f"  {'throughput, pairs/s':<32}" + "".join(f"{rate:>8.0f}   " for rate in rates))
    longer = together["step_s"] - alone["step_s"]
    print(f"  a step of two takes {longer * 1000:.1f} ms longer: communication and contention")
    print(
        f"  summing {together['gradient_bytes'] / 1e6:.1f} MB of gradients by itself takes "
        f"{together['sum_gradient_s'] * 1000:.1f} ms, 4 bytes {together['sum_small_s'] * 1000:.1f} "
        f"ms; {together['exchanges_a_step']} exchanges a step"
    )
    for pairs, seconds in alone.get("loss_s", {}).items():
        print(f"  the loss on {pairs} pairs takes {seconds * 1000:.1f} ms")
    if "describe_s_an_image" in alone:
        print(
            f"  describing takes {alone['describe_s_an_image'] * 1000:.1f} ms and "
            f"{alone['bytes_an_image'] / 1e3:.0f} kB an image, once on every worker"
        )


def print_extrapolated(model: Model) -> None:
    assumed = model.assumed
    print("\nAssumed, not measured")
    print(f"  {assumed.gbit_a_s:g} Gbit/s and {assumed.latency_us:g} µs between workers, in rings")
    print(f"  {assumed.price_an_hour:g} an hour for a worker like half of this machine")
    print(f"  {assumed.pairs_an_image:g} pairs drawn for each image in a whole training")
    print("  every worker as fast as the one measured, and storage that keeps up with all of them")
    print("\nExtrapolated from both")
    print("  workers  compute  exchange     step   pairs/s  efficiency")
    for workers in WORKERS:
        row = model.step(workers)
        print(
            f"  {workers:>7}{row['compute_s'] * 1000:>7.0f} ms{row['exchange_s'] * 1000:>7.0f} ms"
            f"{row['step_s'] * 1000:>6.0f} ms{row['pairs_a_s']:>10,.0f}{row['efficiency']:>11.0%}"
        )
    print("\n  hours (cost)" + "".join(f"{f'10^{len(str(n)) - 1} images':>22}" for n in IMAGES))
    for workers in WORKERS:
        cells = [model.training(workers, images) for images in IMAGES]
        texts = [f"{cell['hours']:,.2f} ({cell['cost']:,.0f})" for cell in cells]
        print(f"  {workers:>4} workers" + "".join(f"{text:>22}" for text in texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="siamese-conv")
    parser.add_argument("--pairs", type=int, default=64, help="a worker and step")
    parser.add_argument("--steps", type=int, default=30, help="measured, after five more")
    parser.add_argument("--images", type=int, default=3000, help="of DATA, for measuring")
    parser.add_argument("--store", choices=("files", "memory"), default="files")
    parser.add_argument("--gbit", type=float, default=10.0, help="between workers; an assumption")
    parser.add_argument("--latency-us", type=float, default=100.0, help="an assumption")
    parser.add_argument("--price", type=float, default=1.0, help="of a worker-hour; an assumption")
    parser.add_argument("--pairs-per-image", type=float, default=15.0, help="an assumption")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    words = [str(given.data), "--model", given.model, "--pairs", str(given.pairs)]
    words += ["--steps", str(given.steps), "--images", str(given.images), "--store", given.store]
    assumed = Assumed(given.gbit, given.latency_us, given.price, given.pairs_per_image)
    (alone,) = run(1, words)
    both = run(2, words)
    slower = max(both, key=lambda one: one["step_s"])
    model = Model(alone, slower, assumed)
    if given.json:
        print(
            json.dumps(
                {
                    "measured": {"one_worker": alone, "two_workers": both},
                    "assumed": asdict(assumed),
                    "extrapolated": {
                        "steps": [model.step(n) for n in WORKERS],
                        "trainings": [model.training(n, m) for m in IMAGES for n in WORKERS],
                    },
                },
                indent=1,
            )
        )
        return
    print_measured(alone, slower)
    print_extrapolated(model)


if __name__ == "__main__":
    main()
