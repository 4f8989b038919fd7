"""Train for long with each store; check that memory, open files and logs do not grow.

    PYTHONPATH=tests:tests/helpers python -m stress.long_run --place long --steps 50000
    ... --place long --steps 3000 --stores memory --suspend-s 20 --json

Runs `facepairs train` on drawn faces, a small network with 2 pairs per step, and samples the
process once a second from the end of its first epoch until it exports. The first fifth of the
samples is warm-up; of the rest, the first and the last quarter are compared. Exit code 1 if memory
changed by more than 2 %, the number of open files grew, or the log grows faster than at first. An
interrupted run goes on where it was; stores in PLACE/results.jsonl are not run again. A resumed
training is a new process: the process with the most samples counts.
"""

import argparse
import json
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from processes.command_line import command

from stress.processes import append_row, read_rows

STORES = ("files", "memory", "tfrecord")
BATCH, EPOCH_STEPS = 2, 500
MAX_DRIFT = 0.02
WARM_UP = 0.2
CONFIG = """\
model = "difference"
batch_size = {batch}
pairs_per_epoch = {pairs}
epochs = {epochs}
image_size = 64
learning_rate = 1e-4
"""
PEOPLE, PHOTOS, SIZE_PX = 60, 4, 64
Row = dict[str, Any]


def prepare(place: Path, steps: int) -> Path:
    """Draw the faces, build the cache and write the settings, unless they are there."""
    from facepairs.data.synth.folder import write_synthetic_faces

    config = place / f"steps-{steps}.toml"
    pairs = BATCH * EPOCH_STEPS
    epochs = max(1, round(steps / EPOCH_STEPS))
    config.write_text(CONFIG.format(batch=BATCH, pairs=pairs, epochs=epochs))
    if not (place / "faces").exists():
        write_synthetic_faces(place / "faces", PEOPLE, PHOTOS, seed=0, size_px=SIZE_PX)
    if not (place / "cache").exists():
        words = ("cache", "build", place / "faces", "--out", place / "cache", "--pair-count", pairs)
        subprocess.run(command(*words, "--config", config), check=True, stdout=subprocess.DEVNULL)
    return config


def memory_mb(pid: int) -> Row:
    """Return resident and anonymous memory; raises OSError or KeyError once the process has ended.

    Resident memory alone is not enough: it holds pages of shared libraries, which vary.
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    sizes = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    names = {"rss_mb": "VmRSS", "anonymous_mb": "RssAnon"}
    return {key: int(sizes[name][0]) * 1024 / 1e6 for key, name in names.items()}


class Run:
    """A training that is sampled; samples go to a file, `last_line` is its latest message."""

    def __init__(self, words: list[str], out: Path, samples: Path) -> None:
        self.out, self.samples = out, samples
        self.epoch, self.exporting, self.last_line = 0, False, ""
        # In a session of its own: Ctrl-C must reach it once, through this script.
        self.child = psutil.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        for line in self.child.stderr:
            self.last_line = line.strip()
            if line.startswith("epoch "):
                self.epoch = int(line.split()[1].split("/")[0])
            self.exporting = self.exporting or line.startswith("exporting")

    def sample(self) -> None:
        """Add a sample, if the training has begun and has not ended."""
        if not self.epoch or self.exporting:
            return
        try:
            row = {
                "process": self.child.pid,
                "epoch": self.epoch,
                **memory_mb(self.child.pid),
                "files": self.child.num_fds(),
                "threads": self.child.num_threads(),
                "log_bytes": sum(f.stat().st_size for f in (self.out / "tensorboard").iterdir()),
            }
        except (psutil.Error, OSError, KeyError):
            return
        if not self.exporting:
            append_row(self.samples, row)

    def wait(self) -> int:
        """Wait for the end; return the exit code."""
        self.child.stdout.read()
        code = self.child.wait()
        self._listener.join()
        return code


def train(place: Path, store: str, config: Path, epochs: int, suspend_s: float) -> Row:
    """Run or resume one store's training to its end; return a summary of its samples."""
    out, samples = place / f"run-{store}", place / f"samples-{store}.jsonl"
    resume = (out / "config.toml").exists()
    images = ("--pair-cache", place / "cache") if store == "tfrecord" else ("--store", store)
    options = ("--resume",) if resume else ("--config", config, *images)
    started, suspended = time.monotonic(), False
    if not (out / "bundle").exists():
        run = Run(command("train", place / "faces", "--out", out, *options), out, samples)
        try:
            while run.child.poll() is None:
                run.sample()
                if suspend_s and not suspended and run.epoch > epochs // 2:
                    suspended = True
                    run.child.send_signal(signal.SIGSTOP)
                    time.sleep(suspend_s)
                    run.child.send_signal(signal.SIGCONT)
                time.sleep(1)
        except KeyboardInterrupt:
            run.child.send_signal(signal.SIGINT)  # it saves its state
            run.wait()
            raise SystemExit("stopped and saved; the same command goes on") from None
        if code := run.wait():
            raise SystemExit(f"{store}: exit {code}: {run.last_line}")
    last = json.loads((out / "history.json").read_text())[-1]
    return {
        "store": store,
        "trained_steps": last["epoch"] * EPOCH_STEPS,
        "trained_s": round(last["seconds"], 1),
        "wall_s": round(time.monotonic() - started, 1),
        "suspended_s": suspend_s if suspended else 0,
        **summary(longest_process(samples)),
    }


def longest_process(samples: Path) -> list[Row]:
    """Return the samples of the process that has the most of them."""
    by_process: dict[int, list[Row]] = defaultdict(list)
    for row in read_rows(samples):
        by_process[row["process"]].append(row)
    return max(by_process.values(), key=len)


def summary(rows: list[Row]) -> Row:
    """Compare the first and the last quarter of a process's samples after its warm-up."""
    warm = rows[int(len(rows) * WARM_UP) :]
    if len(warm) < 8:
        raise SystemExit(f"only {len(rows)} samples of the process; use more --steps")
    quarter = len(warm) // 4
    ends = warm[:quarter], warm[-quarter:]
    result: Row = {"samples": len(rows)}
    for key in ("rss_mb", "anonymous_mb", "files", "threads"):
        first, last = (float(np.median([row[key] for row in end])) for end in ends)
        result[key] = [round(first, 1), round(last, 1)]
        result[f"max_{key}"] = round(max(row[key] for row in warm), 1)
    result["drift"] = round(result["rss_mb"][1] / result["rss_mb"][0] - 1, 4)
    result["anonymous_drift"] = round(result["anonymous_mb"][1] / result["anonymous_mb"][0] - 1, 4)
    epochs = np.array([row["epoch"] for row in rows])
    result["steps"] = int(epochs[-1] - epochs[0] + 1) * EPOCH_STEPS
    size = np.array([row["log_bytes"] for row in rows])
    halves = [slice(0, len(rows) // 2), slice(len(rows) // 2, None)]
    growth = [
        (size[half][-1] - size[half][0]) / max(1, epochs[half][-1] - epochs[half][0])
        for half in halves
    ]
    result["log_bytes"] = int(size[-1])
    result["log_bytes_per_epoch"] = [round(float(value)) for value in growth]
    drifts = (result["drift"], result["anonymous_drift"])
    result["flat"] = bool(
        max(map(abs, drifts)) <= MAX_DRIFT
        and result["files"][1] <= result["files"][0]
        and growth[1] <= growth[0] * 1.1
    )
    return result


def table(rows: list[Row]) -> str:
    lines = [
        "| store | steps | RSS, MB | drift | anonymous memory, MB | drift | open files | log, KB | "
        "bytes per epoch | flat |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        rss, anonymous, files, log = (
            " → ".join(f"{value:,.0f}" for value in row[key])
            for key in ("rss_mb", "anonymous_mb", "files", "log_bytes_per_epoch")
        )
        lines.append(
            f"| {row['store']} | {row['steps']:,} | {rss} | {row['drift']:+.2%} | {anonymous} "
            f"| {row['anonymous_drift']:+.2%} | {files} | {row['log_bytes'] / 1000:,.0f} | {log} "
            f"| {'yes' if row['flat'] else 'NO'} |"
        )
    return "\n".join(lines)


def run(place: Path, stores: list[str], steps: int, suspend_s: float) -> list[Row]:
    """Train with these stores, one after the other, and keep their results."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C
    place.mkdir(parents=True, exist_ok=True)
    config = prepare(place, steps)
    epochs = max(1, round(steps / EPOCH_STEPS))
    rows = []
    for store in stores:
        print(f"training with store {store}", file=sys.stderr, flush=True)
        rows.append(train(place, store, config, epochs, suspend_s))
        append_row(place / "results.jsonl", rows[-1])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--place", type=Path, default=Path("long"), help="folder for everything")
    parser.add_argument("--steps", type=int, default=50_000, help="of each training")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--suspend-s", type=float, default=0, metavar="S",
                        help="suspend each training halfway for so many seconds")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    place = options.place.resolve()
    rows = read_rows(place / "results.jsonl")
    todo = [store for store in options.stores if all(row["store"] != store for row in rows)]
    rows += run(place, todo, options.steps, options.suspend_s)
    print(json.dumps(rows, indent=1) if options.json else table(rows))
    return 0 if all(row["flat"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
