"""facepairs turns a folder of faces into a face verifier whose errors are known."""

import importlib
import os
from typing import TYPE_CHECKING

from facepairs.version import __version__

# From 1.29 on ONNX Runtime reports every session to its maker unless this is set before its import;
# a value that the user has set stays.
for _name in ("ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED"):
    os.environ.setdefault(_name, "1")

if TYPE_CHECKING:
    from facepairs.api.crossval import crossval
    from facepairs.api.embedder import FaceEmbedder
    from facepairs.api.networks import build_keras, load_keras
    from facepairs.api.pairs import PairMetrics, pairs_dataset
    from facepairs.api.training import train
    from facepairs.config import TrainConfig
    from facepairs.errors import (
        BadBundle,
        BadConfig,
        BadData,
        BadGallery,
        BadImage,
        BadRun,
        FacepairsError,
        MissingExtra,
        NoFace,
        NotEnough,
        NotEnrolled,
        TooSmallFace,
    )
    from facepairs.evaluation.evaluate import Evaluation, evaluate
    from facepairs.gallery.gallery import Gallery
    from facepairs.models.losses.build import EmbeddingLoss
    from facepairs.training.options import TrainOptions
    from facepairs.training.recalibrate import calibrate
    from facepairs.training.run_folder.result import Run
    from facepairs.training.view2.methods import make_plan
    from facepairs.verification.verdict import Verdict
    from facepairs.verification.verifier import Verifier

__all__ = [
    "BadBundle",
    "BadConfig",
    "BadData",
    "BadGallery",
    "BadImage",
    "BadRun",
    "EmbeddingLoss",
    "Evaluation",
    "FaceEmbedder",
    "FacepairsError",
    "Gallery",
    "MissingExtra",
    "NoFace",
    "NotEnough",
    "NotEnrolled",
    "PairMetrics",
    "Run",
    "TooSmallFace",
    "TrainConfig",
    "TrainOptions",
    "Verdict",
    "Verifier",
    "__version__",
    "build_keras",
    "calibrate",
    "crossval",
    "evaluate",
    "load_keras",
    "make_plan",
    "pairs_dataset",
    "train",
]
_MODULES = {
    "EmbeddingLoss": "facepairs.models.losses.build",
    "Evaluation": "facepairs.evaluation.evaluate",
    "FaceEmbedder": "facepairs.api.embedder",
    "Gallery": "facepairs.gallery.gallery",
    "PairMetrics": "facepairs.api.pairs",
    "Run": "facepairs.training.run_folder.result",
    "TrainConfig": "facepairs.config",
    "TrainOptions": "facepairs.training.options",
    "Verdict": "facepairs.verification.verdict",
    "Verifier": "facepairs.verification.verifier",
    "build_keras": "facepairs.api.networks",
    "calibrate": "facepairs.training.recalibrate",
    "crossval": "facepairs.api.crossval",
    "evaluate": "facepairs.evaluation.evaluate",
    "load_keras": "facepairs.api.networks",
    "make_plan": "facepairs.training.view2.methods",
    "pairs_dataset": "facepairs.api.pairs",
    "train": "facepairs.api.training",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that `import facepairs` stays fast and light."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES.get(name, "facepairs.errors")), name)
    globals()[name] = value
    return value
