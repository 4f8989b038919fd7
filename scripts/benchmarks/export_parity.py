"""Compare exported networks with the bundle's own on photos: scores, decisions, size and time.

    python scripts/benchmarks/export_parity.py PHOTOS --lists LISTS default run/bundle

The pairs are those of View 1's test list. A bundle may have been trained on them: what is compared
is two forms of one network, not a network with the truth. Times are CPU times of one crop on one
core, the median of 100 calls; preparation of the crop is not included.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.bundles.bundle import DEFAULT
from facepairs.bundles.error_profile import operating_point
from facepairs.bundles.model import Model
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import list_path, read_pairs
from facepairs.training.export import export
from facepairs.verification.verifier import Verifier

FORMATS = ("onnx", "litert", "litert-int8")
TIMED = 100  # calls
COLUMNS = ("network", "format", "MB", "ms", "scores differ by, mean", "at most", "other decisions")

Run = Callable[[np.ndarray], np.ndarray]


def onnx_runner(path: Path, output: str) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda crop: session.run([output], {"image": crop})[0]


def litert_runner(path: Path, output: str) -> Run:
    import tensorflow as tf

    runner: Any = tf.lite.Interpreter(str(path), num_threads=1).get_signature_runner()
    return lambda crop: runner(image=crop)[output]


def measure(run: Run, crops: np.ndarray) -> tuple[np.ndarray, float]:
    """Return float32[N, D] embeddings and the median CPU time of a call in ms."""
    embeddings, times = [], []
    for crop in crops:
        started = time.thread_time()
        embeddings.append(run(crop[None])[0])
        times.append(time.thread_time() - started)
    return np.array(embeddings), 1e3 * statistics.median(times[-TIMED:])


def compare(model: Model, crops: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Print a row for every format; the first is the bundle's own network."""
    network = "included" if model.place == DEFAULT else f"`{model.name}`"
    threshold = operating_point(model.profile).threshold
    expected = None
    for name in FORMATS:
        with tempfile.TemporaryDirectory() as place:
            record = export(model.files.folder, Path(place) / "out", name)
            file = Path(place) / "out" / record.file
            runner = onnx_runner if name.startswith("onnx") else litert_runner
            embeddings, took_ms = measure(runner(file, record.output), crops)
            size_mb = file.stat().st_size / 1e6
        scores = (embeddings[left] * embeddings[right]).sum(axis=1)
        differences = ["", "", ""]
        if expected is None:
            expected = scores
        else:
            change = np.abs(scores - expected)
            other = int(((scores >= threshold) != (expected >= threshold)).sum())
            differences = [f"{x:.4f}"[1:] for x in (change.mean(), change.max())] + [str(other)]
            network = ""
        print_row(network, f"`{name}`", f"{size_mb:.1f}", f"{took_ms:.1f}", *differences)


def print_row(*cells: str) -> None:
    print("|", " | ".join(cells), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of LFW's photos")
    parser.add_argument("bundles", nargs="+", help="bundles of embeddings, or: default")
    parser.add_argument("--lists", type=Path, required=True, help="folder of the official lists")
    options = parser.parse_args()
    index = FaceIndex.scan(options.data)
    pairs, _ = read_pairs(list_path(options.lists, "pairsDevTest.txt"), index)
    images, places = np.unique([pairs.left, pairs.right], return_inverse=True)
    left, right = places.reshape(2, -1)
    print_row(*COLUMNS)
    print_row(*["---"] * len(COLUMNS))
    for name in options.bundles:
        verifier = Verifier.load(name)
        paths = [index.path(int(image)) for image in images]
        crops = np.array([verifier.detect(path, every=False)[0].crop for path in paths])
        compare(verifier.model, crops, left, right)


if __name__ == "__main__":
    main()
