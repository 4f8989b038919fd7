"""A foreign embedder in ONNX Runtime: crops in, embeddings and scores out, as its TOML says.

Array contract: uint8[N, size_px, size_px, 3] RGB in; higher scores are more alike, so distances are
negated here, once.
"""

from typing import Any

import numpy as np

from facepairs.errors import BadBundle, BadData
from facepairs.images.photo import Crop
from facepairs.verification.external_embedder import ExternalEmbedder
from facepairs.verification.scorer import BATCH_CROPS, ScoreArray, open_session, run_session

TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}


class ExternalScorer:
    """Runs a foreign embedder on the CPU; thread-safe.

    `threads` are those of one call, by default one a core. Raises BadBundle for a network that ONNX
    Runtime refuses, that reads files besides its own, or that does not fit the TOML.
    """

    def __init__(self, model: ExternalEmbedder, threads: int | None = None) -> None:
        self._model = model
        self._session = open_session(model.read_network(), model.network, threads)
        self._input, self._type, self._batch = self._checked_input()
        self._output = self._checked_output()

    def _checked_input(self) -> tuple[str, str, int]:
        """Give the only input's name and type, and how many images a call takes."""
        side, inputs = self._model.framing.crop_px, self._session.get_inputs()
        if len(inputs) != 1:
            raise self._misfit(f"it has {len(inputs)} inputs, not 1: an embedder takes one face")
        (node,) = inputs
        if node.type not in TYPES:
            raise self._misfit(f"its input is {node.type}, not one of {', '.join(TYPES)}")
        if (node.type == "tensor(uint8)") != (self._model.scaling is None):
            advice = (
                "leave mean, std, scale and offset out"
                if self._model.scaling
                else "give mean and std, or scale and offset"
            )
            raise self._misfit(f"its input is {node.type}; {advice}")
        wanted = [3, side, side] if self._model.layout == "nchw" else [side, side, 3]
        shape = list(node.shape)
        fits = len(shape) == 4 and all(
            not isinstance(size, int) or size == want
            for size, want in zip(shape[1:], wanted, strict=True)
        )
        fixed = shape[0] if shape and isinstance(shape[0], int) else None
        if not fits or fixed not in (None, 1):
            raise self._misfit(
                f"its input is {shape}, not [N, {', '.join(map(str, wanted))}] with N free or 1; "
                "mend size_px or layout"
            )
        return node.name, node.type, fixed or BATCH_CROPS

    def _checked_output(self) -> str:
        names = [node.name for node in self._session.get_outputs()]
        wanted = self._model.output
        if wanted is None and len(names) == 1:
            return str(names[0])
        if wanted is None or wanted not in names:
            raise self._misfit(f"its outputs are {', '.join(names)}; set output to one of them")
        return wanted

    def _misfit(self, what: str) -> BadBundle:
        return BadBundle(f"{self._model.network}: {what} (described by {self._model.path})")

    def embed(self, crops: Crop) -> ScoreArray:
        """Embed crops: float32[N, D], of length 1 where the distance or the TOML asks for it.

        Raises BadBundle where the network gives no such rows, or a number that is not finite.
        """
        self._check_crops(crops)
        if not len(crops):
            return np.zeros((0, 0), np.float32)
        starts = range(0, len(crops), self._batch)
        return np.concatenate([self._rows(crops[at : at + self._batch]) for at in starts])

    def score_pairs(self, left: Crop, right: Crop) -> ScoreArray:
        """Score pairs of crops, two arrays of the same length N: float32[N], higher is more alike.

        Raises BadData for other arrays, BadBundle as `embed` does.
        """
        if len(left) != len(right):
            raise BadData(f"{len(left)} left crops and {len(right)} right ones make no pairs")
        return self.compare(self.embed(left), self.embed(right))

    def compare(self, left: ScoreArray, right: ScoreArray) -> ScoreArray:
        """Score embeddings row by row, the same in either order: float32[N, D] twice → [N]."""
        if self._model.distance == "cosine":
            products: ScoreArray = (left * right).sum(axis=1, dtype=np.float32)
            return products
        gap = np.abs(left - right)
        if self._model.distance == "manhattan":
            distance = gap.sum(axis=1, dtype=np.float32)
        else:
            distance = (gap * gap).sum(axis=1, dtype=np.float32)
        if self._model.distance == "euclidean":
            distance = np.sqrt(distance)
        scores: ScoreArray = -distance
        return scores

    def _check_crops(self, crops: Crop) -> None:
        side = self._model.framing.crop_px
        if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != (side, side, 3):
            raise BadData(
                f"crops are {crops.dtype} {list(crops.shape)}, not uint8 [N, {side}, {side}, 3]; "
                "make them with load_crop"
            )

    def _fed(self, crops: Crop) -> Any:
        """Bring crops to the order, scale and layout that the network takes."""
        images: Any = crops[..., ::-1] if self._model.colours == "bgr" else crops
        if self._model.scaling:
            scale, offset = self._model.scaling
            images = images.astype(np.float32) * scale + offset
        if self._model.layout == "nchw":
            images = images.transpose(0, 3, 1, 2)
        return np.ascontiguousarray(images, TYPES[self._type])

    def _rows(self, crops: Crop) -> ScoreArray:
        fed = {self._input: self._fed(crops)}
        rows = run_session(self._session, self._output, fed, self._model.network)
        if len(rows) != len(crops) or rows.ndim < 2:
            raise self._misfit(f"its output has shape {list(rows.shape)}, not [N, D]")
        rows = rows.reshape(len(rows), -1)
        if self._model.distance == "cosine" or self._model.normalise:
            lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
            if not lengths.all():
                raise self._misfit("it gave an embedding of length 0")
            rows = rows / lengths
        return rows
