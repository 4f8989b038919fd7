"""YuNet, a small network that detects faces and five landmarks, on ONNX Runtime.

The network (MIT licence, 232,589 bytes) lies beside this file, as OpenCV Zoo publishes it.

References:
    Wu, Peng, Yu: YuNet: A Tiny Millisecond-level Face Detector. Machine Intelligence Research,
    2023.
"""

import hashlib
import threading
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadConfig
from facepairs.photos.frame import Face
from facepairs.photos.photo import Pixels
from facepairs.support.devices import Session

FILE = "face_detection_yunet_2023mar.onnx"
SHA256 = "8f2383e4dd3cfbb4553ea8718107fc0423210dc964f9f4280604804ed2552fa4"
REINSTALL = "in a clone of facepairs, run: pip install --force-reinstall ."
FIXED_SHAPE = bytes.fromhex(
    "0a020801 0a020803 0a03088005 0a03088005"
)  # 1, 3, 640, 640 in the file …
FREE_SHAPE = bytes.fromhex("0a021200 0a020803 0a03120168 0a03120177")  # … and ?, 3, h, w
STRIDES = (8, 16, 32)  # of the three output levels
MULTIPLE_PX = STRIDES[-1]  # the input's sides are multiples of this
OUTPUTS = [f"{kind}_{stride}" for kind in ("cls", "obj", "bbox", "kps") for stride in STRIDES]
MAX_OVERLAP = 0.3  # intersection over union of two faces
MAX_FACES = 100  # the surest of an image; a crowd would take minutes

_opening = threading.Lock()

Floats = npt.NDArray[np.float32]


def detect(images: Sequence[Pixels], min_score: float) -> list[list[Face]]:
    """Run the network once; it knows upright faces of about 10 to 300 pixels.

    Args:
        images: uint8[H, W, 3] each, in RGB; smaller ones are padded to the largest.
        min_score: Detections with a lower score are left out.

    Returns:
        The surest MAX_FACES faces in each image without those that overlap a surer one, the surest
        first.

    Raises:
        BadConfig: The network's file is missing or not the expected one.
    """
    height, width = (
        -(-max(image.shape[axis] for image in images) // MULTIPLE_PX) * MULTIPLE_PX
        for axis in range(2)
    )
    padded = np.zeros((len(images), 3, height, width), np.float32)
    for to, image in zip(padded, images, strict=True):
        to[:, : image.shape[0], : image.shape[1]] = image[:, :, ::-1].transpose(2, 0, 1)  # BGR
    outputs = _session().run(OUTPUTS, {"input": padded})
    numbers, rows = _decode(outputs, len(images), height, width, min_score)
    return [_suppress(rows[numbers == number]) for number in range(len(images))]


def _decode(
    outputs: list[Floats], images: int, height: int, width: int, min_score: float
) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return the image's number, and score, left, top, right, bottom and ten coordinates of each.

    Every output is [1, cells of all images, values] for one kind and stride.
    """
    levels = len(STRIDES)
    class_score, object_score, box, points = (
        np.concatenate([output.reshape(images, -1, output.shape[2]) for output in level], axis=1)
        for level in (outputs[at : at + levels] for at in range(0, 4 * levels, levels))
    )
    score = np.sqrt(np.clip(class_score * object_score, 0, 1))[..., 0]
    number, cells = np.nonzero(score >= min_score)
    stride, origin = (array[cells] for array in _grid(height, width))
    box, points, score = box[number, cells], points[number, cells], score[number, cells, None]
    centre = (origin + box[:, :2]) * stride
    half = np.exp(box[:, 2:]) * stride / 2
    landmarks = (points + np.tile(origin, 5)) * stride
    return number, np.concatenate([score, centre - half, centre + half, landmarks], axis=1)


@lru_cache(maxsize=8)
def _grid(height: int, width: int) -> tuple[Floats, Floats]:
    """Return the stride, float32[N, 1], and the position, float32[N, 2], of all output cells."""
    strides, origins = [], []
    for stride in STRIDES:
        y, x = np.indices((height // stride, width // stride), np.float32)
        origins.append(np.stack([x.ravel(), y.ravel()], axis=1))
        strides.append(np.full((x.size, 1), stride, np.float32))
    return np.concatenate(strides), np.concatenate(origins)


def _suppress(rows: Floats) -> list[Face]:
    """Return the surest rows of MAX_FACES faces (non-maximum suppression), the surest first."""
    rows = rows[np.argsort(-rows[:, 0], kind="stable")]
    kept: list[Face] = []
    while len(rows) and len(kept) < MAX_FACES:
        best, rows = rows[0], rows[1:]
        kept.append(Face(best[5:].reshape(5, 2).astype(np.float64), float(best[0])))
        overlap = np.minimum(best[3:5], rows[:, 3:5]) - np.maximum(best[1:3], rows[:, 1:3])
        shared = np.clip(overlap, 0, None).prod(axis=1)
        areas = np.prod(rows[:, 3:5] - rows[:, 1:3], axis=1) + np.prod(best[3:5] - best[1:3])
        rows = rows[shared < MAX_OVERLAP * (areas - shared)]
    return kept


def detector_device() -> str:
    """Return where the network runs, see `support.devices`; raises BadConfig."""
    return _session().device


def _session() -> Session:
    """Return the network, opened once; several threads may use it."""
    with _opening:  # else threads that start together would each open it
        return _open_session()


@cache
def _open_session() -> Session:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # callers run one image per thread
    options.log_severity_level = 3  # outputs larger than the file declares would be warned of
    return Session(_model_bytes().replace(FIXED_SHAPE, FREE_SHAPE), options)


def _model_bytes() -> bytes:
    """Read the network and check it; raise BadConfig."""
    path = Path(__file__).with_name(FILE)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadConfig(f"{path}: {error.strerror}; {REINSTALL}") from None
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise BadConfig(f"{path}: not the face detector that facepairs needs; {REINSTALL}")
    return data
