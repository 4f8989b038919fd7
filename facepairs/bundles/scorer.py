"""Networks in ONNX Runtime: crops in, embeddings and scores out.

Array contract: crops are uint8[N, crop_px, crop_px, 3], RGB; higher scores are more alike. The
size of a batch changes a score by float32 rounding at most (matrix products are cut by it).
"""

import hashlib
import os
import weakref
from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from facepairs.bundles.bundle import Bundle
from facepairs.errors import BadBundle, BadData
from facepairs.photos.crop import Crop, CropSpec
from facepairs.support.platform import keep_for_ever

BATCH_CROPS = 16  # per call: activations stay near the caches; larger batches are slower
LOG_FATAL_ONLY = 4  # ONNX Runtime's log level; errors are raised as exceptions

ScoreArray = npt.NDArray[np.float32]

# The key of an ONNX tensor's external file, after its length in protobuf's encoding. Which places
# ONNX Runtime lets such a tensor read (the current folder, memory) has changed between versions.
# Two plain searches: a regular expression takes ten times as long for a network's megabytes.
_EXTERNAL_TENSOR_MARKS = (b"\x08location", b"\x00location")


def pair_scores(left: ScoreArray, right: ScoreArray) -> ScoreArray:
    """Return the cosine similarity of each row of `left` with that of `right`, from -1 to 1.

    Products commute, so score(a, b) equals score(b, a) bit for bit.

    Args:
        left: float32[N, D], rows of length 1 in L2.
        right: float32[N, D], the same.

    Returns:
        float32[N].
    """
    scores: ScoreArray = (left * right).sum(axis=1, dtype=np.float32)
    return np.clip(scores, -1, 1)  # rounding gives 1.0000001 for equal rows


def _keep_after_fork() -> None:
    """Never end the networks of the other process: ONNX Runtime would wait for its threads."""
    for one in _open:
        keep_for_ever(one._session)


_open: "weakref.WeakSet[OnnxSession]" = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_after_fork)


class OnnxSession:
    """A network opened in ONNX Runtime on the CPU; thread-safe, and pickled with its network.

    Args:
        network: The network's bytes.
        path: The file that error messages name.
        threads: Threads of one call; None for one per core.

    Attributes:
        network: Its bytes.
        inputs: Name → description (name, type, shape) of each input.
        outputs: Name → description of each output.

    Raises:
        BadBundle: ONNX Runtime refuses the network, or it reads other files.
    """

    def __init__(
        self,
        network: bytes,
        path: Path,
        threads: int | None = None,
    ) -> None:
        if any(mark in network for mark in _EXTERNAL_TENSOR_MARKS):
            raise BadBundle(f"{path}: keeps tensors outside of itself; export it as a single file")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        options.log_severity_level = LOG_FATAL_ONLY
        # Threads that spin between calls would take the cores from those that decode images.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.path, self.network = path, network
        # The bytes and not the file, which may have changed when the session is pickled.
        self._arguments = (network, path, threads)
        try:
            self._session: Any = onnxruntime.InferenceSession(
                network, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # noqa: BLE001 - ONNX Runtime's errors share no other class
            raise BadBundle(
                f"{path}: ONNX Runtime {onnxruntime.__version__} refuses it "
                f"({_first_line(error)}); export it again"
            ) from None
        self._process = os.getpid()  # last, as threads may open it at the same time
        _open.add(self)
        self.inputs = {node.name: node for node in self._session.get_inputs()}
        self.outputs = {node.name: node for node in self._session.get_outputs()}

    def __reduce__(self) -> Any:
        return OnnxSession, self._arguments

    def run(self, output: str, inputs: dict[str, Any]) -> ScoreArray:
        """Run the network on one batch and return one of its outputs as float32.

        Raises:
            BadBundle: The network fails, or returns a value that is not finite.
        """
        if self._process != os.getpid():  # its threads have stayed in the other process
            self.__init__(*self._arguments)  # type: ignore[misc]
        try:
            (result,) = self._session.run([output], inputs)
        except Exception as error:  # noqa: BLE001 - see above
            count = len(next(iter(inputs.values())))
            raise BadBundle(
                f"{self.path}: failed on a batch of {count} ({_first_line(error)}); export it again"
            ) from None
        values: ScoreArray = np.asarray(result, np.float32)
        if not np.isfinite(values).all():
            raise BadBundle(f"{self.path}: returned a value that is not finite; train it again")
        return values


class Scorer(ABC):
    """Embeds and scores crops; thread-safe."""

    _session: OnnxSession

    def __init__(self, framing: CropSpec, batch: int = BATCH_CROPS) -> None:
        self._crop_px = framing.crop_px
        self._batch = batch

    @cached_property
    def width(self) -> int:
        """Numbers in an embedding; raises BadBundle for a network that has none."""
        side = self._crop_px
        noise = np.arange(3 * side * side).astype(np.uint8).reshape(1, side, side, 3)
        return int(self.embed(noise).shape[1])

    @cached_property
    def network_sha256(self) -> str:
        """SHA-256 (hex) of the network that is open; its file may be another one by now."""
        return hashlib.sha256(self._session.network).hexdigest()

    def embed(self, crops: Crop) -> ScoreArray:
        """Embed crops: float32[N, D].

        Raises:
            BadData: `crops` is another array than the network takes.
            BadBundle: The network has no embeddings, or returns none that can be used.
        """
        self._check_crops(crops)
        if not len(crops):
            return np.zeros((0, self.width), np.float32)
        starts = range(0, len(crops), self._batch)
        return np.concatenate([self._embed_batch(crops[at : at + self._batch]) for at in starts])

    def score_pairs(self, left: Crop, right: Crop) -> ScoreArray:
        """Score pairs of crops, two arrays of the same length N: float32[N].

        Raises:
            BadData: The arrays differ in length, or the network takes others.
            BadBundle: The network returns no finite score.
        """
        self._check_crops(left)
        self._check_crops(right)
        if len(left) != len(right):
            raise BadData(f"{len(left)} left crops and {len(right)} right ones make no pairs")
        return self._score_crops(left, right)

    def _score_crops(self, left: Crop, right: Crop) -> ScoreArray:
        rows = self.embed(np.concatenate([left, right]))  # one call of the network for one pair
        return self.compare(rows[: len(left)], rows[len(left) :])

    def compare(self, left: ScoreArray, right: ScoreArray) -> ScoreArray:
        """Score embeddings row by row, the same in either order: float32[N, D] twice → [N]."""
        return pair_scores(left, right)

    @abstractmethod
    def _embed_batch(self, crops: Crop) -> ScoreArray:
        """Embed crops in one call of the network."""

    def _check_crops(self, crops: Crop) -> None:
        side = self._crop_px
        if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != (side, side, 3):
            raise BadData(
                f"crops are {crops.dtype} {list(crops.shape)}, not uint8 [N, {side}, {side}, 3]; "
                "make them with load_crop"
            )


class BundleScorer(Scorer):
    """Runs a bundle's network; preprocessing is part of the network.

    Args:
        bundle: The network's bundle.
        threads: Threads of one call; None for one per core.

    Raises:
        BadBundle: As `OnnxSession` does.
    """

    def __init__(self, bundle: Bundle, threads: int | None = None) -> None:
        super().__init__(bundle.framing)
        self._session = OnnxSession(bundle.read_network(), bundle.network_path, threads)
        self._bundle = bundle

    def _misfit(self, problem: str) -> BadBundle:
        return BadBundle(
            f"{self._session.path}: {problem}, unlike the manifest; export the bundle again"
        )

    def _score_crops(self, left: Crop, right: Crop) -> ScoreArray:
        if self._bundle.kind == "embedding":
            return super()._score_crops(left, right)
        step = self._batch // 2
        parts = [slice(start, start + step) for start in range(0, len(left), step)]
        batches = [self._run(left[part], right[part]).reshape(-1) for part in parts]
        scores = np.concatenate([np.zeros(0, np.float32), *batches])
        if len(scores) != len(left):
            raise self._misfit(f"its scores of {len(left)} pairs are {len(scores)} numbers")
        return scores

    def embed(self, crops: Crop) -> ScoreArray:
        """Embed crops: float32[N, D], rows of length 1 in L2."""
        if self._bundle.kind != "embedding":
            raise BadBundle(
                f"{self._bundle.folder}: scores pairs and has no embeddings; use score_pairs, or a "
                "bundle of kind 'embedding'"
            )
        return super().embed(crops)

    def _embed_batch(self, crops: Crop) -> ScoreArray:
        rows = self._run(crops)
        if rows.ndim != 2 or len(rows) != len(crops):
            raise self._misfit(f"its embeddings have shape {list(rows.shape)}, not [N, D]")
        if not np.allclose(np.sqrt((rows * rows).sum(axis=1)), 1, atol=1e-3):
            raise self._misfit("its embeddings are not L2-normalised")
        return rows

    def _run(self, *crops: Crop) -> ScoreArray:
        inputs = dict(zip(self._bundle.network.inputs, crops, strict=True))
        return self._session.run(self._bundle.network.output, inputs)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
