"""Measure the input pipelines of other libraries beside facepairs' own.

    python scripts/benchmarks/rivals.py DATA [--rows pil,torch-2,files] [--out bench.json]

Runs what `facepairs bench` runs, with rows for PyTorch, NVIDIA DALI, Grain, Keras and a careful
use of Pillow. Rows whose package is not installed are skipped.
"""

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

from facepairs.bench.report import to_json, to_text
from facepairs.bench.rows import ROWS, STORES, Row, Settings, select_rows
from facepairs.bench.run import run_bench
from facepairs.errors import FacepairsError
from facepairs.support.atomic import atomic_file
from facepairs.support.console import showing
from facepairs.support.platform import cores

FOLDER = str(Path(__file__).resolve().parent)  # of the modules of the rows below
TORCH_WORKERS = {0: "in_process", 2: "two_workers", cores(): "worker_per_core"}
RIVALS = {
    "pil-draft": Row("pillow_draft_rows:pil_draft", "generator: Pillow, crop straight into uint8"),
    **{
        f"keras-{kind}": Row(
            f"keras_rows:{kind}", f"keras.utils.PyDataset, 2 {kind}, Pillow crops as uint8"
        )
        for kind in ("threads", "processes")
    },
    **{
        f"torch-{workers}": Row(
            f"torch_rows:{TORCH_WORKERS[workers]}",
            f"PyTorch DataLoader, {workers} workers, Pillow crops as uint8 tensors",
        )
        for workers in sorted(TORCH_WORKERS)
    },
    **{
        f"grain-{kind}": Row(f"grain_rows:{kind}", f"Grain, {count} {kind}, Pillow crops as uint8")
        for kind, count in (("threads", cores()), ("processes", 2))
    },
    "dali-cpu": Row("dali_rows:dali", f"NVIDIA DALI on the CPU, {cores()} threads"),
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
    settings = Settings(
        str(words.data),
        selected,
        [name for name in STORES if words.training and name in selected],
        words.repeats,
        words.seconds,
        align="none",  # as the rivals
    )
    # The processes that run the rows find the modules there.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLDER, os.environ.get("PYTHONPATH")]))
    with showing(lambda line: print(line, file=sys.stderr)):
        results = run_bench(settings)
    report = to_json(results, shlex.join(sys.argv))
    print("\n" + "\n".join(to_text(report)))
    if words.out:
        with atomic_file(words.out) as handle:
            json.dump(report, handle, indent=1, allow_nan=False)
    sys.exit(1 if results.failed else 0)


if __name__ == "__main__":
    try:
        main()
    except FacepairsError as error:
        sys.exit(f"error: {error}")
