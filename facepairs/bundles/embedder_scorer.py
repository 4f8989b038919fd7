"""Embeddings and scores of external embedders."""

from typing import Any

import numpy as np

from facepairs.bundles.embedder import ExternalEmbedder
from facepairs.bundles.scorer import OnnxSession, ScoreArray, Scorer
from facepairs.errors import BadBundle
from facepairs.photos.crop import Crop

_INPUT_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
}


class EmbedderScorer(Scorer):
    """Runs an ONNX network as its TOML describes it.

    Args:
        model: The embedder.
        threads: Threads of one call; None for one per core.

    Raises:
        BadBundle: As `OnnxSession` does, or the network does not fit the TOML.
    """

    def __init__(self, model: ExternalEmbedder, threads: int | None = None) -> None:
        super().__init__(model.framing)
        self._model = model
        self._session = OnnxSession(model.read_network(), model.network_path, threads)
        self._check_input()
        self._output = self._checked_output()
        if isinstance(self._input.shape[0], int):
            self._batch = self._input.shape[0]

    def _embed_batch(self, crops: Crop) -> ScoreArray:
        inputs = {self._input.name: self._network_input(crops)}
        rows: ScoreArray = self._session.run(self._output, inputs)
        if len(rows) != len(crops) or rows.ndim < 2:
            raise self._misfit(f"its output has shape {list(rows.shape)}, not [N, D]")
        rows = rows.reshape(len(rows), -1)
        lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        if not lengths.all():
            raise self._misfit("it returned an embedding of length 0")
        unit: ScoreArray = rows / lengths
        return unit

    def _misfit(self, problem: str) -> BadBundle:
        return BadBundle(f"{self._model.network_path}: {problem} (described by {self._model.path})")

    @property
    def _input(self) -> Any:
        return next(iter(self._session.inputs.values()))

    def _check_input(self) -> None:
        side, count = self._crop_px, len(self._session.inputs)
        if count != 1:
            raise self._misfit(f"it has {count} inputs, not 1: an embedder takes one face")
        node = self._input
        if node.type not in _INPUT_TYPES:
            raise self._misfit(f"its input is {node.type}, not one of {', '.join(_INPUT_TYPES)}")
        if (node.type == "tensor(uint8)") != (self._model.scaling is None):
            advice = "leave mean and std out" if self._model.scaling else "give mean and std"
            raise self._misfit(f"its input is {node.type}; {advice}")
        sizes = [3, side, side] if self._model.layout == "nchw" else [side, side, 3]
        if not _takes_shape(node, sizes) or (isinstance(node.shape[0], int) and node.shape[0] != 1):
            raise self._misfit(
                f"its input is {node.shape}, not [N, {', '.join(map(str, sizes))}] with N free or "
                "1; correct size_px or layout"
            )

    def _checked_output(self) -> str:
        outputs, wanted = self._session.outputs, self._model.output
        if wanted is None and len(outputs) == 1:
            wanted = next(iter(outputs))
        if wanted is None or wanted not in outputs:
            shapes = ", ".join(f"{name} {node.shape}" for name, node in outputs.items())
            raise self._misfit(f"its outputs are {shapes}; set output to one of them")
        if len(outputs[wanted].shape) < 2:
            raise self._misfit(f"its output {wanted} is {outputs[wanted].shape}, not [N, D]")
        return wanted

    def _network_input(self, crops: Crop) -> Any:
        """Bring crops to the colour order, scale and layout that the network takes."""
        images: Any = crops[..., ::-1] if self._model.colours == "bgr" else crops
        if self._model.scaling:
            scale, offset = self._model.scaling
            images = images.astype(np.float32) * scale + offset
        if self._model.layout == "nchw":
            images = images.transpose(0, 3, 1, 2)
        return np.ascontiguousarray(images, _INPUT_TYPES[self._input.type])


def _takes_shape(node: Any, sizes: list[int]) -> bool:
    """Whether a tensor of shape [N, *sizes] fits an input; ONNX names the sizes that are free."""
    if len(node.shape) != len(sizes) + 1:
        return False
    given = zip(node.shape[1:], sizes, strict=True)
    return all(not isinstance(size, int) or size == wanted for size, wanted in given)
