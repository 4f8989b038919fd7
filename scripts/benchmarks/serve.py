"""Measure `facepairs serve` on this machine: start, latency, throughput, memory, overload.

    pip install locust
    python scripts/benchmarks/serve.py LFW/lfw-deepfunneled --lists LFW --seconds 30

Prints a line of JSON per measurement. The load comes from locust on the same cores.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil

from facepairs import Verifier
from facepairs.support.platform import cores

PAIRS = 500
EMBEDDED = 1000
LOCUSTFILE = """
import itertools, json, os
from locust import FastHttpUser, events, task

pairs = itertools.cycle(json.load(open(os.environ["PAIRS"])))

class Client(FastHttpUser):
    @task
    def verify(self):
        left, right = next(pairs)
        files = [("left", open(left, "rb")), ("right", open(right, "rb"))]
        with self.client.post("/v1/verify", files=files, catch_response=True) as answer:
            answer.request_meta["name"] = str(answer.status_code)
            answer.success() if answer.status_code in (200, 503) else None
            if answer.status_code == 503:
                import gevent
                gevent.sleep(float(os.environ["RETRY_S"]))
"""


def lfw_pairs(images: Path, lists: Path) -> list[tuple[str, str]]:
    """Return pairs of View 2, genuine and impostor in turn."""
    pairs = []
    for line in (lists / "pairs.txt").read_text().splitlines()[1:]:
        cells = line.split("\t")
        one, other = (cells[0], cells[0]) if len(cells) == 3 else (cells[0], cells[2])
        numbers = (int(cells[1]), int(cells[-1]))
        pairs.append(
            tuple(
                str(images / name / f"{name}_{number:04d}.jpg")
                for name, number in zip((one, other), numbers, strict=True)
            )
        )
    return [pairs[at] for at in np.random.default_rng(0).permutation(len(pairs))[:PAIRS]]  # type: ignore[misc]


@contextmanager
def serving() -> Iterator[tuple[str, psutil.Process, float]]:
    """Yield the address of a fresh server, its process, and the seconds until it was ready."""
    begun = time.perf_counter()
    words = [sys.executable, "-m", "facepairs", "serve", "--port", "0", "--json", "--rate", "0"]
    server = subprocess.Popen(
        [*words, "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        httpx.get(f"{url}/readyz").raise_for_status()
        yield url, psutil.Process(server.pid), time.perf_counter() - begun
    finally:
        server.terminate()
        server.wait()


def load(url: str, folder: Path, clients: int, seconds: int, retry_s: float) -> dict[str, Any]:
    """Return how requests of some clients were answered, by status."""
    (folder / "locustfile.py").write_text(LOCUSTFILE)
    environment = {"PAIRS": str(folder / "pairs.json"), "RETRY_S": str(retry_s), "PATH": ""}
    words = ["-f", folder / "locustfile.py", "--headless", "-u", clients, "-r", clients, "-t",
             f"{seconds}s", "-H", url, "--csv", folder / "out", "--only-summary"]  # fmt: skip
    subprocess.run([sys.executable, "-m", "locust", *map(str, words)], env=environment,
                   capture_output=True, check=False)  # fmt: skip
    rows = list(csv.DictReader((folder / "out_stats.csv").open()))
    return {
        row["Name"]: {
            "requests": int(row["Request Count"]),
            "per_second": round(float(row["Requests/s"]), 1),
            "p50_ms": float(row["50%"]),
            "p99_ms": float(row["99%"]),
        }
        for row in rows
        if row["Name"] != "Aggregated"
    }


def library_speed(paths: list[Path]) -> float:
    """Return the embeddings per second of `Verifier.embed`."""
    verifier = Verifier.load(threads=1)
    photos = [path.read_bytes() for path in paths]  # of bytes nothing is kept
    verifier.embed(photos[:64])
    begun = time.perf_counter()
    verifier.embed(photos)
    return len(paths) / (time.perf_counter() - begun)


def batch_speed(crops: Any) -> dict[int, float]:
    """Return the embeddings per second of one thread by the crops of a call of the network."""
    scorer = Verifier.load(threads=1).scorer
    speeds = {}
    for size in (1, 2, 4, 8, 16):
        scorer.represent(crops[:size])
        begun = time.perf_counter()
        for at in range(0, len(crops) - size + 1, size):
            scorer.represent(crops[at : at + size])
        speeds[size] = round(len(crops) // size * size / (time.perf_counter() - begun), 1)
    return speeds


def show(measured: str, **values: Any) -> None:
    print(json.dumps({"measured": measured, **values}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", type=Path, help="lfw-deepfunneled")
    parser.add_argument("--lists", type=Path, required=True, help="folder of pairs.txt")
    parser.add_argument("--seconds", type=int, default=30, help="of each load")
    parser.add_argument("--requests", type=int, default=10_000, help="before memory is read")
    options = parser.parse_args()
    pairs = lfw_pairs(options.images, options.lists)
    photos = [Path(path) for pair in pairs for path in pair][:EMBEDDED]
    detect = Verifier.load().detect
    crops = np.stack([detect(photo, every=False)[0].crop for photo in photos[:64]])
    show("batches", per_second=batch_speed(crops))
    show("library", embeddings_per_second=round(library_speed(photos), 1), cores=cores())
    starts = []
    for _ in range(5):
        with serving() as (_, _, seconds):
            starts.append(round(seconds, 2))
    show("start", seconds=sorted(starts))
    with tempfile.TemporaryDirectory() as name, serving() as (url, process, _):
        folder = Path(name)
        (folder / "pairs.json").write_text(json.dumps(pairs))
        done = 0
        for clients in (1, 8):
            answers = load(url, folder, clients, options.seconds, 0)
            done += answers["200"]["requests"]
            show(f"{clients} clients", answers=answers, rss_mb=process.memory_info().rss >> 20)
        answers = load(url, folder, 64, options.seconds, 0.1)
        show("64 clients", answers=answers, rss_mb=process.memory_info().rss >> 20)
        answers = load(url, folder, 8, 10, 0)
        show("8 clients afterwards", answers=answers, rss_mb=process.memory_info().rss >> 20)
        while done < options.requests:
            answers = load(url, folder, 8, 4 * options.seconds, 0)
            done += answers["200"]["requests"]
            show("memory", requests=done, rss_mb=process.memory_info().rss >> 20)


if __name__ == "__main__":
    main()
