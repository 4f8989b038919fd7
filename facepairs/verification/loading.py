"""Opening a model: a bundle, or the TOML of an external embedder."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.default import DEFAULT, FOLDER
from facepairs.verification.scorer import BundleScorer, ExternalScorer, Scorer

if TYPE_CHECKING:
    from facepairs.verification.embedders.embedder import ExternalEmbedder

Model: TypeAlias = "Bundle | ExternalEmbedder"


def open_model(path: Path | str | None, verify_files: bool = True) -> Model:
    """Open a bundle's folder, or the TOML of an external embedder.

    Args:
        path: None and the word `default` mean the bundle that comes with the package.
        verify_files: Check a bundle's network and identities against their SHA-256.

    Raises:
        BadBundle: The model is missing, damaged or cannot be used.
    """
    if path is not None and str(path).lower().endswith(".toml"):
        from facepairs.verification.embedders.embedder import ExternalEmbedder

        return ExternalEmbedder.open(path)
    return Bundle.open(path, verify_files)


def model_name(model: Model) -> str:
    """Return what a command line calls a model: its path, or `default` for the package's own."""
    if isinstance(model, Bundle):
        return DEFAULT if model.folder == FOLDER else str(model.folder)
    return str(model.path)


def describe_scoring(model: Model) -> str:
    """Return in words what is done with photos to score pairs of them, for displays of progress."""
    scoring = "embedding" if model.kind == "embedding" else "comparing"
    return f"finding faces and {scoring}" if model.aligned else scoring


def open_scorer(model: Model, threads: int | None = None, quick: bool = False) -> Scorer:
    """Open a model's network; see `BundleScorer` and `ExternalScorer`."""
    if isinstance(model, Bundle):
        return BundleScorer(model, threads, quick)
    return ExternalScorer(model, threads)
