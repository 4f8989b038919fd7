"""Train for long with each store, and see whether memory, open files and logs stay as they are.

    python scripts/long_run.py --place long --steps 50000
    python scripts/long_run.py --place long --steps 50000 --so-far
    python scripts/long_run.py --place long --steps 3000 --stores memory --suspend-s 20 --json

It runs `facepairs train` on drawn faces, a small network with 2 pairs a step, and looks at the
process once a second from its first epoch's end until it exports. The first fifth of what it saw
is warm-up; of the rest, the first and the last quarter are compared. Exit code 1 where memory
moved by more than 2 %, open files grew, or the log grew by more an epoch than it did at first.
Interrupted, it goes on where it was; stores that are done (PLACE/results.jsonl) are not run again.
A training that was resumed is another process: the one that was looked at longest counts, and the
steps told are its own. `--so-far` runs nothing, and tells of all that was seen (PLACE/looks-*).
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

import numpy as np
import psutil

STORES = ("files", "memory", "tfrecord")
BATCH, EPOCH_STEPS = 2, 500
MOST_DRIFT = 0.02
WARM_UP = 0.2
CONFIG = """\
model = "difference"
batch_size = {batch}
pairs_per_epoch = {pairs}
epochs = {epochs}
image_size = 64
frame_px = 64
crop_px = 16
calibration_pairs = 200
learning_rate = 1e-4
"""
PEOPLE, PHOTOS, SIZE_PX = 60, 4, 64
Row = dict[str, float]


def prepare(place: Path, steps: int) -> Path:
    """Draw the faces, build the cache and write the settings where they are missing."""
    from facepairs.data.synth.generate import synth_faces

    config = place / f"steps-{steps}.toml"
    pairs = BATCH * EPOCH_STEPS
    epochs = max(1, round(steps / EPOCH_STEPS))
    config.write_text(CONFIG.format(batch=BATCH, pairs=pairs, epochs=epochs))
    if not (place / "faces").exists():
        synth_faces(place / "faces", PEOPLE, PHOTOS, seed=0, size_px=SIZE_PX)
    if not (place / "cache").exists():
        words = ("cache", "build", place / "faces", place / "cache", "--pairs", pairs)
        subprocess.run(command(*words, "--config", config), check=True, stdout=subprocess.DEVNULL)
    return config


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "facepairs", *map(str, words)]


def memory_mb(pid: int) -> Row:
    """Give resident memory, and what of it is no file; raises OSError or KeyError once it ends.

    Pages of the libraries' files count as a process's own or not with every other that comes.
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    sizes = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    names = {"rss_mb": "VmRSS", "own_mb": "RssAnon"}
    return {key: int(sizes[name][0]) * 1024 / 1e6 for key, name in names.items()}


class Run:
    """One training that is looked at; what is seen goes to `looks`, `told` is what it said last."""

    def __init__(self, words: list[str], out: Path, looks: Path) -> None:
        self.out, self.looks = out, looks
        self.epoch, self.exporting, self.told = 0, False, ""
        # In a session of its own: Ctrl-C must reach it once, by way of this script.
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
            self.told = line.strip()
            if line.startswith("epoch "):
                self.epoch = int(line.split()[1].split("/")[0])
            self.exporting = self.exporting or line.startswith("exporting")

    def look(self) -> None:
        """Add a row, if the training has begun and has not ended."""
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
            with open(self.looks, "a", encoding="utf-8") as handle:
                handle.write(json.dumps(row) + "\n")

    def end(self) -> int:
        """Give the exit code."""
        self.child.stdout.read()
        code = self.child.wait()
        self._listener.join()
        return code


def train(place: Path, store: str, config: Path, epochs: int, suspend_s: float) -> dict:
    """Run one store's training to its end, or the rest of it; give what was seen, summed up."""
    out, looks = place / f"run-{store}", place / f"looks-{store}.jsonl"
    again = (out / "config.toml").exists()
    chosen = ("--resume",) if again else ("--config", config, "--store", store)
    cache = ("--cache", place / "cache") if store == "tfrecord" and not again else ()
    started, suspended = time.monotonic(), False
    if not (out / "bundle").exists():
        run = Run(command("train", place / "faces", "--out", out, *chosen, *cache), out, looks)
        try:
            while run.child.poll() is None:
                run.look()
                if suspend_s and not suspended and run.epoch > epochs // 2:
                    suspended = True
                    run.child.send_signal(signal.SIGSTOP)
                    time.sleep(suspend_s)
                    run.child.send_signal(signal.SIGCONT)
                time.sleep(1)
        except KeyboardInterrupt:
            run.child.send_signal(signal.SIGINT)  # it saves
            run.end()
            raise SystemExit("stopped and saved; go on with the same command") from None
        if code := run.end():
            raise SystemExit(f"{store}: exit {code}: {run.told}")
    last = json.loads((out / "history.json").read_text())[-1]
    return {
        "store": store,
        "trained_steps": last["epoch"] * EPOCH_STEPS,
        "trained_s": round(last["seconds"], 1),
        "wall_s": round(time.monotonic() - started, 1),
        "suspended_s": suspend_s if suspended else 0,
        **summary(seen(looks)),
    }


def seen(looks: Path) -> list[Row]:
    """Give the rows of the process that was looked at longest."""
    by_process: dict[float, list[Row]] = defaultdict(list)
    for line in looks.read_text().splitlines():
        row = json.loads(line)
        by_process[row["process"]].append(row)
    return max(by_process.values(), key=len)


def so_far(place: Path, store: str) -> dict:
    """Sum up what was seen of a training that has not ended."""
    return {"store": store, **summary(seen(place / f"looks-{store}.jsonl"))}


def summary(rows: list[Row]) -> dict:
    """Compare the first and the last quarter of what was seen of a process after its warm-up."""
    warm = rows[int(len(rows) * WARM_UP) :]
    if len(warm) < 8:
        raise SystemExit(f"only {len(rows)} looks at the process; give more --steps")
    quarter = len(warm) // 4
    ends = warm[:quarter], warm[-quarter:]
    found: dict = {"looks": len(rows)}
    for key in ("rss_mb", "own_mb", "files", "threads"):
        first, last = (float(np.median([row[key] for row in end])) for end in ends)
        found[key] = [round(first, 1), round(last, 1)]
        found[f"most_{key}"] = round(max(row[key] for row in warm), 1)
    found["drift"] = round(found["rss_mb"][1] / found["rss_mb"][0] - 1, 4)
    found["own_drift"] = round(found["own_mb"][1] / found["own_mb"][0] - 1, 4)
    epochs = np.array([row["epoch"] for row in rows])
    found["steps"] = int(epochs[-1] - epochs[0] + 1) * EPOCH_STEPS
    size = np.array([row["log_bytes"] for row in rows])
    halves = [slice(0, len(rows) // 2), slice(len(rows) // 2, None)]
    growth = [
        (size[half][-1] - size[half][0]) / max(1, epochs[half][-1] - epochs[half][0])
        for half in halves
    ]
    found["log_bytes"] = int(size[-1])
    found["log_bytes_an_epoch"] = [round(float(value)) for value in growth]
    drifts = (found["drift"], found["own_drift"])
    found["flat"] = bool(
        max(map(abs, drifts)) <= MOST_DRIFT
        and found["files"][1] <= found["files"][0]
        and growth[1] <= growth[0] * 1.1
    )
    return found


def table(rows: list[dict]) -> str:
    lines = [
        "| store | steps | RSS, MB | drift | own memory, MB | drift | open files | log, KB | "
        "bytes an epoch | flat |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        rss, own, files, log = (
            " → ".join(f"{value:,.0f}" for value in row[key])
            for key in ("rss_mb", "own_mb", "files", "log_bytes_an_epoch")
        )
        lines.append(
            f"| {row['store']} | {row['steps']:,} | {rss} | {row['drift']:+.2%} | {own} "
            f"| {row['own_drift']:+.2%} | {files} | {row['log_bytes'] / 1000:,.0f} | {log} "
            f"| {'yes' if row['flat'] else 'NO'} |"
        )
    return "\n".join(lines)


def run(place: Path, stores: list[str], steps: int, suspend_s: float) -> list[dict]:
    """Train with some stores, one after the other, and keep what each came to."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    place.mkdir(parents=True, exist_ok=True)
    config = prepare(place, steps)
    epochs = max(1, round(steps / EPOCH_STEPS))
    rows = []
    for store in stores:
        print(f"training with store {store}", file=sys.stderr, flush=True)
        rows.append(train(place, store, config, epochs, suspend_s))
        with open(place / "results.jsonl", "a", encoding="utf-8") as handle:
            handle.write(json.dumps(rows[-1]) + "\n")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--place", type=Path, default=Path("long"), help="folder for all of it")
    parser.add_argument("--steps", type=int, default=50_000, help="of each training")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--suspend-s", type=float, default=0, metavar="S",
                        help="stop each training halfway for so many seconds")  # fmt: skip
    parser.add_argument("--so-far", action="store_true", help="run nothing, tell what was seen")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    place = given.place.resolve()
    results = place / "results.jsonl"
    lines = results.read_text().splitlines() if results.exists() else []
    rows = [json.loads(line) for line in lines]
    todo = [store for store in given.stores if all(row["store"] != store for row in rows)]
    if given.so_far:
        rows += [
            so_far(place, store) for store in todo if (place / f"looks-{store}.jsonl").exists()
        ]
    else:
        rows += run(place, todo, given.steps, given.suspend_s)
    print(json.dumps(rows, indent=1) if given.json else table(rows))
    return 0 if all(row["flat"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
