"""What a second worker brings and costs: one worker and two, on this machine.

    python scripts/benchmarks/scaling.py DATA [--model siamese] [--pairs 64] [--json]

Runs `facepairs train`. Each worker has half of the cores, so that both measurements have the same
to work with, and takes as many pairs per step. The last epoch counts: the first one traces.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

EPOCHS = 3
WORKER = """
import os, sys
os.sched_setaffinity(0, {int(core) for core in sys.argv.pop(1).split(",")})
from facepairs.cli.app import main
main(sys.argv[1:])
"""
Row = dict[str, Any]


def run_workers(count: int, options: argparse.Namespace) -> Row:
    """Train with some workers, each on its half of the cores; return the last epoch's figures."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("needs two cores: one for each of two workers")
    half = len(cores) // 2
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        hosts = [f"127.0.0.1:{free.getsockname()[1]}" for free in sockets]
    with tempfile.TemporaryDirectory() as folder:
        settings, out = Path(folder, "settings.toml"), Path(folder, "run")
        batch = options.pairs * count
        settings.write_text(
            f'model = "{options.model}"\nepochs = {EPOCHS}\nbatch_size = {batch}\n'
            f"pairs_per_epoch = {batch * options.steps}\n"
        )
        words = ["train", str(options.data), "--config", str(settings), "--out", str(out)]
        processes = []
        for worker in range(count):
            task = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": worker}}
            own = ",".join(map(str, cores[worker * half : (worker + 1) * half]))
            command = [sys.executable, "-c", WORKER, own, *words, "--store", options.store]
            environment = {**os.environ, "TF_CONFIG": json.dumps(task)}
            processes.append(
                subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
            )
        for process in processes:
            _, errors = process.communicate()
            if process.returncode:
                raise SystemExit(f"measuring failed:\n{errors[-2000:]}")
        from facepairs.training.progress import read_history

        last = read_history(out)[-1]
    return {
        "workers": count,
        "pairs_per_s": last.pairs_per_s,
        "step_s": batch / (last.pairs_per_s or 1),
        "input_wait": last.input_wait,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="siamese")
    parser.add_argument("--pairs", type=int, default=64, help="per worker and step")
    parser.add_argument("--steps", type=int, default=30, help="of an epoch")
    parser.add_argument("--store", choices=("files", "memory"), default="files")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [run_workers(count, options) for count in (1, 2)]
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(
            f"{row['workers']} worker(s): step {1000 * row['step_s']:.1f} ms, input wait "
            f"{row['input_wait']:.1%}, {row['pairs_per_s']:,.0f} pairs/s"
        )


if __name__ == "__main__":
    main()
