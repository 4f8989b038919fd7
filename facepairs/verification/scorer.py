"""A bundle's network in ONNX Runtime: crops in, scores or embeddings out.

Array contract: uint8[N, crop_px, crop_px, 3] in; preprocessing is part of the network. Batching
changes a score by float32 rounding at most (matrix products are cut by batch size), never more.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from facepairs.bundles.bundle import Bundle
from facepairs.errors import BadBundle, BadData
from facepairs.images.photo import Crop

BATCH_CROPS = 16  # crops a call: activations stay near the caches, more is slower
FATAL = 4  # ONNX Runtime's log level; what fails is raised, and then said once

ScoreArray = npt.NDArray[np.float32]

# The key of an ONNX tensor's external file, behind its length in protobuf's encoding. Which places
# ONNX Runtime lets such a tensor read (the current folder, memory) has changed between versions.
# Two plain searches: a regular expression takes ten times as long for a network's megabytes.
_EXTERNAL = (b"\x08location", b"\x00location")

_LEVELS = onnxruntime.GraphOptimizationLevel
# The last level's blocked layout makes `siamese`, whose convolutions have few channels, a quarter
# slower, and towers a third faster.
_FASTEST = {"siamese": _LEVELS.ORT_ENABLE_EXTENDED}


def pair_scores(left: ScoreArray, right: ScoreArray) -> ScoreArray:
    """Give the cosine similarity of L2-normalised embeddings, row by row: float32[N, D] → [N].

    Products commute, so that score(a, b) equals score(b, a) bit for bit.
    """
    scores: ScoreArray = (left * right).sum(axis=1, dtype=np.float32)
    return scores


def open_session(
    network: bytes,
    path: Path,
    threads: int | None,
    level: Any = _LEVELS.ORT_ENABLE_ALL,
) -> Any:
    """Give ONNX Runtime's session for a network's bytes; `path` stands for them in errors.

    `threads` are those of one call, by default one a core; `level` is how far the graph is
    optimised. Raises BadBundle for a network that ONNX Runtime refuses or that reads files besides
    its own.
    """
    if any(mark in network for mark in _EXTERNAL):
        raise BadBundle(f"{path}: keeps tensors outside of itself; export it as a single file")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    options.graph_optimization_level = level
    options.log_severity_level = FATAL
    # Threads that spin between calls would take the cores from those that decode images.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - ONNX Runtime's errors share no other class
        raise BadBundle(
            f"{path}: ONNX Runtime {onnxruntime.__version__} refuses it ({_first_line(error)}); "
            "export it again"
        ) from None


def run_session(session: Any, output: str, inputs: dict[str, Any], path: Path) -> ScoreArray:
    """Run a network on one batch: float32 of any shape; raises BadBundle unless all is finite."""
    try:
        found: Any = session.run([output], inputs)[0]
    except Exception as error:  # noqa: BLE001 - see above
        count = len(next(iter(inputs.values())))
        raise BadBundle(
            f"{path}: failed on a batch of {count} ({_first_line(error)}); export it again"
        ) from None
    values: ScoreArray = np.asarray(found, np.float32)
    if not np.isfinite(values).all():
        raise BadBundle(f"{path}: gave a value that is no finite number; train it again")
    return values


class Scorer:
    """Runs a bundle's network on the CPU; thread-safe.

    `threads` are those of one call, by default one a core; `quick` opens the network sooner and
    runs it slower: for a pair or two. Raises BadBundle for a network that
    ONNX Runtime refuses, that reads files besides its own, or that does not fit the manifest.
    """

    def __init__(self, bundle: Bundle, threads: int | None = None, quick: bool = False) -> None:
        self._bundle = bundle
        self._path = bundle.folder / bundle.network_file
        network = bundle.read(bundle.network_file)
        level = _FASTEST.get(bundle.model, _LEVELS.ORT_ENABLE_ALL)
        level = _LEVELS.ORT_DISABLE_ALL if quick else level
        self._session = open_session(network, self._path, threads, level)
        self._check_signature()

    def _check_signature(self) -> None:
        """Compare inputs and output with the manifest before any image is read."""
        crop_px = self._bundle.framing.crop_px
        found = {node.name: node for node in self._session.get_inputs()}
        if set(found) != set(self._bundle.inputs):
            raise self._misfit(f"its inputs are {sorted(found)}, not {sorted(self._bundle.inputs)}")
        for name, node in found.items():
            if node.type != "tensor(uint8)" or not _takes_batches(node.shape, crop_px):
                raise self._misfit(
                    f"input {name} is {node.type} {node.shape}, not uint8 [N, {crop_px}, "
                    f"{crop_px}, 3] with N free"
                )
        outputs = {node.name: node.type for node in self._session.get_outputs()}
        if outputs.get(self._bundle.output) != "tensor(float)":
            raise self._misfit(f"its outputs are {outputs}, without float {self._bundle.output}")

    def _misfit(self, what: str) -> BadBundle:
        return BadBundle(f"{self._path}: {what}, as the manifest says; export the bundle again")

    def score_pairs(self, left: Crop, right: Crop) -> ScoreArray:
        """Score pairs of crops, two arrays of the same length N: float32[N], higher is more alike.

        Raises BadData for other arrays, BadBundle where the network gives no finite score.
        """
        self._check_crops(left)
        self._check_crops(right)
        if len(left) != len(right):
            raise BadData(f"{len(left)} left crops and {len(right)} right ones make no pairs")
        if self._bundle.kind == "embedding":
            return pair_scores(self.embed(left), self.embed(right))
        scores = np.empty(len(left), np.float32)
        step = BATCH_CROPS // 2
        for start in range(0, len(left), step):
            part = slice(start, start + step)
            batch = self._run(left[part], right[part])
            if batch.size != len(left[part]):
                raise self._misfit(f"its scores have shape {list(batch.shape)}, not [N]")
            scores[part] = batch.reshape(-1)
        return scores

    def compare(self, left: ScoreArray, right: ScoreArray) -> ScoreArray:
        """Score embeddings row by row, the same in either order: float32[N, D] twice → [N]."""
        return pair_scores(left, right)

    def embed(self, crops: Crop) -> ScoreArray:
        """Embed crops: float32[N, D], rows of length 1 in L2 (none at all: [0, 0]).

        Raises BadBundle for a bundle of kind 'pair', or where the network gives no such rows.
        """
        if self._bundle.kind != "embedding":
            raise BadBundle(
                f"{self._bundle.folder}: scores pairs and has no embeddings; use score_pairs, or a "
                f"bundle of kind 'embedding'"
            )
        self._check_crops(crops)
        if not len(crops):
            return np.zeros((0, 0), np.float32)
        starts = range(0, len(crops), BATCH_CROPS)
        return np.concatenate([self._embed_batch(crops[at : at + BATCH_CROPS]) for at in starts])

    def _embed_batch(self, crops: Crop) -> ScoreArray:
        rows = self._run(crops)
        if rows.ndim != 2 or len(rows) != len(crops):
            raise self._misfit(f"its embeddings have shape {list(rows.shape)}, not [N, D]")
        lengths = np.sqrt((rows * rows).sum(axis=1))
        if not np.allclose(lengths, 1, atol=1e-3):
            raise self._misfit("its embeddings are not L2-normalised")
        return rows

    def _run(self, *crops: Crop) -> ScoreArray:
        inputs = dict(zip(self._bundle.inputs, crops, strict=True))
        return run_session(self._session, self._bundle.output, inputs, self._path)

    def _check_crops(self, crops: Crop) -> None:
        crop_px = self._bundle.framing.crop_px
        if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != (crop_px, crop_px, 3):
            raise BadData(
                f"crops are {crops.dtype} {list(crops.shape)}, not uint8 [N, {crop_px}, {crop_px}, "
                f"3]; make them with load_crop"
            )


def _takes_batches(shape: list[Any], crop_px: int) -> bool:
    """Tell whether [any N, crop_px, crop_px, 3] fits; ONNX names the lengths that are free."""
    if len(shape) != 4 or isinstance(shape[0], int):
        return False
    sizes = zip(shape[1:], (crop_px, crop_px, 3), strict=True)
    return all(not isinstance(size, int) or size == wanted for size, wanted in sizes)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
