"""Opening a model: a bundle, or an external embedder that a TOML describes."""

import math
from pathlib import Path
from typing import TypeAlias

from facepairs.bundles.bundle import DEFAULT, FOLDER, Bundle
from facepairs.bundles.embedder import (
    EMBEDDER,
    ExternalEmbedder,
    is_embedder,
)
from facepairs.bundles.embedder_scorer import EmbedderScorer
from facepairs.bundles.scorer import BundleScorer, Scorer
from facepairs.errors import BadConfig

Model: TypeAlias = Bundle | ExternalEmbedder


def open_model(path: Path | str | None, verify_files: bool = True) -> Model:
    """Open a bundle's folder, or an external embedder.

    Args:
        path: A bundle, the TOML of an external embedder, or a folder that holds it as
            `embedder.toml`. None and the word `default` mean the bundle that comes with the
            package.
        verify_files: Check a bundle's network and identities against their SHA-256.

    Raises:
        BadBundle: The model is missing, damaged or cannot be used.
    """
    if path is not None and is_embedder(path):
        return ExternalEmbedder.open(path)
    return Bundle.open(path, verify_files)


def model_name(model: Model) -> str:
    """Return what a command line calls a model: its path, or the word for the package's own."""
    if isinstance(model, Bundle):
        return DEFAULT if model.folder == FOLDER else str(model.folder)
    return str(model.folder if model.path.name == EMBEDDER else model.path)


def open_scorer(model: Model, threads: int | None = None) -> Scorer:
    """Open a model's network; threads as for `BundleScorer`."""
    if isinstance(model, Bundle):
        return BundleScorer(model, threads)
    return EmbedderScorer(model, threads)


def check_threshold(model: Model, threshold: float) -> None:
    """Raise BadConfig for a threshold that no score of the model can be."""
    # `operating_point` refuses what is not finite.
    if model.kind == "embedding" and math.isfinite(threshold) and abs(threshold) > 1:
        raise BadConfig(f"threshold is {threshold:g}; a cosine lies from -1 to 1", "threshold")
