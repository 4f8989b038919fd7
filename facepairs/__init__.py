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
    from facepairs.bundles.networks import fetch_network
    from facepairs.config import TrainConfig
    from facepairs.errors import (
        BadBundle,
        BadConfig,
        BadData,
        BadGallery,
        BadImage,
        BadRun,
        BadTransfer,
        FacepairsError,
        MissingExtra,
        NoFace,
        NotEnough,
        NotEnrolled,
        TooSmallFace,
    )
    from facepairs.evaluation.calibrate import calibrate
    from facepairs.evaluation.evaluate import Evaluation, evaluate
    from facepairs.gallery.gallery import Gallery
    from facepairs.gallery.migration import migrate_gallery
    from facepairs.grouping.group import group
    from facepairs.grouping.groups import Groups
    from facepairs.models.losses import EmbeddingLoss
    from facepairs.models.metrics import PairMetrics
    from facepairs.support.console import showing
    from facepairs.training.keras_models import build_keras, load_keras
    from facepairs.training.pairs_dataset import pairs_dataset
    from facepairs.training.run_folder import Run
    from facepairs.training.train import train
    from facepairs.training.view2.crossval import crossval
    from facepairs.verification.verdict import Verdict
    from facepairs.verification.verifier import Verifier

__all__ = [
    "BadBundle",
    "BadConfig",
    "BadData",
    "BadGallery",
    "BadImage",
    "BadRun",
    "BadTransfer",
    "EmbeddingLoss",
    "Evaluation",
    "FacepairsError",
    "Gallery",
    "Groups",
    "MissingExtra",
    "NoFace",
    "NotEnough",
    "NotEnrolled",
    "PairMetrics",
    "Run",
    "TooSmallFace",
    "TrainConfig",
    "Verdict",
    "Verifier",
    "__version__",
    "build_keras",
    "calibrate",
    "crossval",
    "evaluate",
    "fetch_network",
    "group",
    "load_keras",
    "migrate_gallery",
    "pairs_dataset",
    "showing",
    "train",
]
_MODULES = {
    "EmbeddingLoss": "facepairs.models.losses",
    "Evaluation": "facepairs.evaluation.evaluate",
    "Gallery": "facepairs.gallery.gallery",
    "Groups": "facepairs.grouping.groups",
    "PairMetrics": "facepairs.models.metrics",
    "Run": "facepairs.training.run_folder",
    "TrainConfig": "facepairs.config",
    "Verdict": "facepairs.verification.verdict",
    "Verifier": "facepairs.verification.verifier",
    "build_keras": "facepairs.training.keras_models",
    "calibrate": "facepairs.evaluation.calibrate",
    "crossval": "facepairs.training.view2.crossval",
    "evaluate": "facepairs.evaluation.evaluate",
    "fetch_network": "facepairs.bundles.networks",
    "group": "facepairs.grouping.group",
    "load_keras": "facepairs.training.keras_models",
    "migrate_gallery": "facepairs.gallery.migration",
    "pairs_dataset": "facepairs.training.pairs_dataset",
    "showing": "facepairs.support.console",
    "train": "facepairs.training.train",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that `import facepairs` stays fast and light."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES.get(name, "facepairs.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
