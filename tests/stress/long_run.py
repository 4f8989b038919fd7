"""Train for long with each store; check that neither memory nor open files grow.

    PYTHONPATH=tests:tests/helpers python -m stress.long_run --place long --steps 50000

Runs `facepairs train` on drawn faces, a small network with 2 pairs per step, and samples the
process once a second from its first epoch to its last. The first fifth of the samples is warm-up;
of the rest, the first and the last quarter are compared. Exit code 1 if the process's own memory
changed by more than 2 %, or if it has more open files.
"""

import argparse
import contextlib
import statistics
import subprocess
import sys
import time
from pathlib import Path

import psutil
from processes.checkpoints import history
from processes.command_line import command

from facepairs.data.synth.folder import write_synthetic_faces

STORES = ("files", "memory", "tfrecord")
BATCH, EPOCH_STEPS = 2, 500
MAX_DRIFT = 0.02
CONFIG = f"""\
model = "difference"
batch_size = {BATCH}
pairs_per_epoch = {BATCH * EPOCH_STEPS}
learning_rate = 1e-4
"""
Sample = tuple[float, int]  # MB of the process's own memory, open files


def prepare(place: Path) -> Path:
    """Draw the faces, build the cache and write the settings."""
    config = place / "settings.toml"
    config.write_text(CONFIG)
    write_synthetic_faces(place / "faces", people=60, photos=4, seed=0, size_px=64)
    count = ("--pair-count", BATCH * EPOCH_STEPS, "--config", config)
    build = command("cache", "build", place / "faces", "--out", place / "cache", *count)
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    return config


def train(place: Path, store: str, config: Path, epochs: int) -> list[Sample]:
    """Train from a store; return samples of the process while it is in its epochs."""
    out, samples = place / f"run-{store}", []
    images = ("--pair-cache", place / "cache") if store == "tfrecord" else ("--store", store)
    options = ("--config", config, "--epochs", epochs, "--out", out, *images, "--quiet")
    child = psutil.Popen(command("train", place / "faces", *options), stdout=subprocess.DEVNULL)
    while child.poll() is None:
        time.sleep(1)
        with contextlib.suppress(psutil.Error, FileNotFoundError):
            if 0 < len(history(out)) < epochs:
                # Without the pages of libraries, which another process may share for a while.
                own = sum(one.anonymous for one in child.memory_maps())
                samples.append((own / 1e6, child.num_fds()))
    if child.returncode:
        raise SystemExit(f"{store}: exit {child.returncode}")
    return samples


def compare(samples: list[Sample]) -> tuple[float, int]:
    """Return by what share memory grew after the warm-up, and by how many the open files."""
    warm = samples[len(samples) // 5 :]
    if len(warm) < 8:
        raise SystemExit(f"only {len(samples)} samples; use more --steps")
    quarter = len(warm) // 4
    first, last = (
        [statistics.median(values) for values in zip(*end, strict=True)]
        for end in (warm[:quarter], warm[-quarter:])
    )
    return last[0] / first[0] - 1, round(last[1] - first[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--place", type=Path, default=Path("long"), help="a new folder")
    parser.add_argument("--steps", type=int, default=50_000, help="of each training")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    options = parser.parse_args()
    place = options.place.resolve()
    place.mkdir(parents=True)
    config, failed = prepare(place), 0
    for store in options.stores:
        samples = train(place, store, config, max(2, round(options.steps / EPOCH_STEPS)))
        memory, files = compare(samples)
        flat = abs(memory) <= MAX_DRIFT and files <= 0
        failed += not flat
        print(f"{store:<9} {samples[-1][0]:7.0f} MB {memory:+.2%}, {files:+} open files",
              "" if flat else "NOT FLAT", flush=True)  # fmt: skip
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
