"""Scorers run a model's network: crops in, embeddings and scores out.

All callers use `Scorer`. An `EmbeddingScorer` represents a face by its embedding and compares
embeddings by their cosine. A `PairScorer` represents a face by its crop and runs its network on two
crops.

Array contract: crops are uint8[N, crop_px, crop_px, 3], RGB; higher scores are more alike. The
size of a batch changes a score by float32 rounding at most (matrix products are cut by it).
"""

import math
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from facepairs.bundles.model import Model
from facepairs.errors import BadBundle, BadConfig, BadData, FacepairsError
from facepairs.photos.crop import Crop
from facepairs.support.devices import Session
from facepairs.support.platform import keep_for_ever

BATCH_CROPS = 16  # per call: activations stay near the caches; larger batches are slower
LOG_FATAL_ONLY = 4  # ONNX Runtime's log level; errors are raised as exceptions
INPUT_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
}

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
    for session in _open:
        keep_for_ever(session._session)


_open: "weakref.WeakSet[OnnxSession]" = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_after_fork)


class OnnxSession:
    """A network opened in ONNX Runtime; thread-safe, and pickled with its network.

    Args:
        network: The network's bytes.
        path: The file that error messages name.
        threads: Threads of one call; None for one per core.
        read_float32: As in `bundles.model.Network`.

    Attributes:
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
        read_float32: Callable[[], bytes] | None = None,
    ) -> None:
        options = onnxruntime.SessionOptions()
        if threads:
            options.intra_op_num_threads = threads
        options.log_severity_level = LOG_FATAL_ONLY
        # Threads that spin between calls would take the cores from those that decode images.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.path = path
        # The bytes and not the file, which may have changed when the session is pickled.
        self._arguments = (network, path, threads, read_float32)
        in_float = read_float32 and (lambda: _without_external_tensors(read_float32(), path))
        try:
            self._session = Session(_without_external_tensors(network, path), options, in_float)
        except FacepairsError:
            raise
        except Exception as error:  # noqa: BLE001 - the only class that ONNX Runtime's errors share
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

    @property
    def device(self) -> str:
        """Where it runs, see `support.devices`."""
        return self._session.device

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
            raise BadBundle(
                f"{self.path}: returned a value that is not finite; train the network again"
            )
        return values


def _without_external_tensors(network: bytes, path: Path) -> bytes:
    """Return a network; raise BadBundle if it reads other files."""
    if any(mark in network for mark in _EXTERNAL_TENSOR_MARKS):
        raise BadBundle(f"{path}: has tensors in other files; export it as a single file")
    return network


class Scorer(ABC):
    """Scores faces; thread-safe, and pickled with its model.

    Args:
        model: The model.
        threads: Threads of one call; None for one per core.

    Raises:
        BadBundle: The network cannot be opened, or is not as it is described.
    """

    def __init__(self, model: Model, threads: int | None = None) -> None:
        self.model, self.network = model, model.network
        self._crop_px = model.framing.crop_px
        network = self.network
        self._session = OnnxSession(network.content, network.path, threads, network.read_float32)

    @property
    def device(self) -> str:
        """Where the network runs: `cpu`, or another of `support.devices`."""
        return self._session.device

    @property
    @abstractmethod
    def cache_key(self) -> str:
        """The name under which `represent` of a face is worth keeping; "" if it is not."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers in an embedding; raises BadBundle for a network that has none."""

    @abstractmethod
    def represent(self, crops: Crop) -> npt.NDArray[Any]:
        """Return the input of `compare` for each face.

        Returns:
            The embeddings, float32[N, D] with rows of length 1 in L2; of a network of pairs the
            crops themselves.

        Raises:
            BadData: `crops` is another array than the network takes.
            BadBundle: The network returns no embeddings that can be used.
        """

    @abstractmethod
    def compare(self, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> ScoreArray:
        """Score faces row by row, the same in either order.

        Args:
            left: N rows of `represent`.
            right: The same.

        Returns:
            float32[N].
        """

    @abstractmethod
    def check_threshold(self, threshold: float) -> None:
        """Raise BadConfig for a threshold that no score can be."""

    def _misfit(self, problem: str) -> BadBundle:
        network = self.network
        return BadBundle(
            f"{network.path}: {problem} (described by {network.described_in}; correct it, or "
            "export the network again)"
        )

    def _check_crops(self, crops: Crop) -> None:
        side = self._crop_px
        if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != (side, side, 3):
            raise BadData(
                f"crops are {crops.dtype} {list(crops.shape)}, not uint8 [N, {side}, {side}, 3]; "
                "use the crops of FaceSample"
            )


def open_scorer(model: Model, threads: int | None = None) -> Scorer:
    """Open a model's network; arguments and errors as for `Scorer`."""
    return (EmbeddingScorer if model.network.embeds else PairScorer)(model, threads)


class EmbeddingScorer(Scorer):
    """Embeds each face; the score of two is the cosine of their embeddings."""

    def __init__(self, model: Model, threads: int | None = None) -> None:
        super().__init__(model, threads)
        self._check_input()
        self._output = self._checked_output()
        size = self._input.shape[0]
        self._batch = size if isinstance(size, int) else BATCH_CROPS

    @property
    def cache_key(self) -> str:
        where = "" if self.device == "cpu" else f" {self.device}"  # whose embeddings differ a bit
        return f"{self.network.embedder_sha256}{where}"

    @cached_property
    def width(self) -> int:
        side = self._crop_px
        noise = np.arange(3 * side * side).astype(np.uint8).reshape(1, side, side, 3)
        return int(self.represent(noise).shape[1])

    def represent(self, crops: Crop) -> ScoreArray:
        self._check_crops(crops)
        if not len(crops):
            return np.zeros((0, self.width), np.float32)
        starts = range(0, len(crops), self._batch)
        return np.concatenate([self._embed_batch(crops[at : at + self._batch]) for at in starts])

    def compare(self, left: ScoreArray, right: ScoreArray) -> ScoreArray:
        return pair_scores(left, right)

    def check_threshold(self, threshold: float) -> None:
        if math.isfinite(threshold) and abs(threshold) > 1:  # `operating_point` refuses infinity
            raise BadConfig(f"threshold is {threshold:g}; a cosine is from -1 to 1", "threshold")

    def _embed_batch(self, crops: Crop) -> ScoreArray:
        rows = self._session.run(self._output, {self._input.name: self._pixels(crops)})
        if len(rows) != len(crops) or rows.ndim < 2:
            raise self._misfit(f"its output has shape {list(rows.shape)}, not [N, D]")
        rows = rows.reshape(len(rows), -1)
        lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        if self.network.has_unit_rows:
            if not np.allclose(lengths, 1, atol=1e-3):
                raise self._misfit("its embeddings are not L2-normalised")
            return rows
        if not lengths.all():
            raise self._misfit("it returned an embedding of length 0")
        unit: ScoreArray = rows / lengths
        return unit

    def _pixels(self, crops: Crop) -> Any:
        """Bring crops to the colour order, scale and layout that the network takes."""
        network = self.network
        images: Any = crops[..., ::-1] if network.colours == "bgr" else crops
        if network.scaling:
            scale, offset = network.scaling
            images = images.astype(np.float32) * scale + offset
        if network.layout == "nchw":
            images = images.transpose(0, 3, 1, 2)
        return np.ascontiguousarray(images, INPUT_TYPES[self._input.type])

    @property
    def _input(self) -> Any:
        """ONNX Runtime's description of the input; it cannot be pickled."""
        return next(iter(self._session.inputs.values()))

    def _check_input(self) -> None:
        """Raise BadBundle unless the network takes crops."""
        network, side, inputs = self.network, self._crop_px, self._session.inputs
        if len(inputs) != 1 or (network.inputs and set(network.inputs) != set(inputs)):
            raise self._misfit(f"its inputs are {', '.join(inputs)}: an embedder takes one face")
        node = self._input
        if node.type not in INPUT_TYPES:
            raise self._misfit(f"its input is {node.type}, not one of {', '.join(INPUT_TYPES)}")
        if (node.type == "tensor(uint8)") != (network.scaling is None):
            advice = "leave mean and std out" if network.scaling else "give mean and std"
            raise self._misfit(f"its input is {node.type}; {advice}")
        sizes = [3, side, side] if network.layout == "nchw" else [side, side, 3]
        if not _takes_shape(node, sizes) or (isinstance(node.shape[0], int) and node.shape[0] != 1):
            raise self._misfit(
                f"its input is {node.shape}, not [N, {', '.join(map(str, sizes))}] with N free or "
                "1: size_px or layout is wrong"
            )

    def _checked_output(self) -> str:
        """Return the name of the output with the embeddings; raise BadBundle without one."""
        outputs, wanted = self._session.outputs, self.network.output
        if wanted is None and len(outputs) == 1:
            wanted = next(iter(outputs))
        if wanted is None or wanted not in outputs:
            shapes = ", ".join(f"{name} {node.shape}" for name, node in outputs.items())
            raise self._misfit(f"its outputs are {shapes}; set output to one of them")
        if len(outputs[wanted].shape) < 2:
            raise self._misfit(f"its output {wanted} is {outputs[wanted].shape}, not [N, D]")
        return wanted


class PairScorer(Scorer):
    """Runs a network of two faces, such as `difference`; there are no embeddings."""

    cache_key = ""

    @property
    def width(self) -> int:
        raise self.model.no_embeddings("embeddings are needed")

    def represent(self, crops: Crop) -> Crop:
        return crops

    def compare(self, left: Crop, right: Crop) -> ScoreArray:
        self._check_crops(left)
        self._check_crops(right)
        network, step = self.network, BATCH_CROPS // 2
        scores = [np.zeros(0, np.float32)]
        for start in range(0, len(left), step):
            sides = (side[start : start + step] for side in (left, right))
            inputs = dict(zip(network.inputs, sides, strict=True))
            scores.append(self._session.run(str(network.output), inputs).reshape(-1))
        result = np.concatenate(scores)
        if len(result) != len(left):
            raise self._misfit(f"its scores of {len(left)} pairs are {len(result)} numbers")
        return result

    def check_threshold(self, threshold: float) -> None:
        pass  # the scores of such a network have no limits


def _takes_shape(node: Any, sizes: list[int]) -> bool:
    """Whether a tensor of shape [N, *sizes] fits an input; ONNX names the sizes that are free."""
    if len(node.shape) != len(sizes) + 1:
        return False
    given = zip(node.shape[1:], sizes, strict=True)
    return all(not isinstance(size, int) or size == wanted for size, wanted in given)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
