"""Measure the input pipelines of other libraries beside facepairs' own.

    python scripts/benchmarks/rivals.py DATA [--rows pil,torch-2,files] [--out bench.json]

Runs what `facepairs bench` runs, with rows for PyTorch, NVIDIA DALI, Keras and a careful use of
Pillow. Rows whose package is not installed are skipped.
"""

import argparse
import json
import shlex
import sys
from pathlib import Path

from facepairs.bench.job import BenchSettings
from facepairs.bench.report import (
    row_table,
    summarize_rows,
    summarize_steps,
    to_json,
    training_table,
)
from facepairs.bench.rows import ROWS, STORES, Row, select_rows
from facepairs.bench.run import Options, run_bench
from facepairs.errors import FacepairsError
from facepairs.support.atomic import atomic_file
from facepairs.support.platform import cores

FOLDER = str(Path(__file__).resolve().parent)
TORCH_WORKERS = {0: "in_process", 2: "two_workers", cores(): "worker_per_core"}


def _row(function: str, note: str, needs: str = "") -> Row:
    return Row(function, note, needs, module_folder=FOLDER)


RIVALS = {
    "pil-draft": _row("pillow_draft_rows:pil_draft", "generator: Pillow, crop straight into uint8"),
    **{
        f"keras-{kind}": _row(
            f"keras_rows:{kind}", f"keras.utils.PyDataset, 2 {kind}, Pillow crops as uint8"
        )
        for kind in ("threads", "processes")
    },
    **{
        f"torch-{workers}": _row(
            f"torch_rows:{TORCH_WORKERS[workers]}",
            f"PyTorch DataLoader, {workers} workers, Pillow crops as uint8 tensors",
            needs="torch",
        )
        for workers in sorted(TORCH_WORKERS)
    },
    "dali-cpu": _row(
        "dali_rows:dali", f"NVIDIA DALI on the CPU, {cores()} threads", needs="nvidia.dali"
    ),
}


def main() -> None:
    known = {**RIVALS, **ROWS}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of Person_Name/photo.jpg")
    parser.add_argument("--rows", help=f"some of {', '.join(known)}; default: all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--training", action="store_true", help="measure the training loop too")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    words = parser.parse_args()
    selected = select_rows(words.rows, known)
    options = Options(
        BenchSettings(str(words.data), seconds=words.seconds, align="none"),  # as the rivals
        selected,
        words.repeats,
        [name for name in STORES if words.training and name in selected],
    )
    results = run_bench(options, lambda line: print(line, file=sys.stderr))
    for table in (row_table(summarize_rows(results)), training_table(summarize_steps(results))):
        if len(table) > 1:
            print("\n" + "\n".join(table))
    if words.out:
        with atomic_file(words.out) as handle:
            json.dump(to_json(results, shlex.join(sys.argv)), handle, indent=1, allow_nan=False)
    sys.exit(1 if results.failed else 0)


if __name__ == "__main__":
    try:
        main()
    except FacepairsError as error:
        sys.exit(f"error: {error}")
