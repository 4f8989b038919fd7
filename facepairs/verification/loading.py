"""Opening a model: a bundle, or the TOML of an external embedder."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.manifest import MANIFEST
from facepairs.verification.scorer import BundleScorer, ExternalScorer, Scorer

if TYPE_CHECKING:
    from facepairs.verification.external_embedder import ExternalEmbedder

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
        from facepairs.verification.external_embedder import ExternalEmbedder

        return ExternalEmbedder.open(path)
    return Bundle.open(path, verify_files)


def open_scorer(model: Model, threads: int | None = None, quick: bool = False) -> Scorer:
    """Open a model's network; see `BundleScorer` and `ExternalScorer`."""
    if isinstance(model, Bundle):
        return BundleScorer(model, threads, quick)
    return ExternalScorer(model, threads)


def model_files(model: Model) -> tuple[str, dict[str, bytes]]:
    """Return the files that a verifier needs, to take the model to another machine.

    Returns:
        The file to open ("" for the folder itself), and file name → content.

    Raises:
        BadBundle: A file is missing or damaged.
    """
    if isinstance(model, Bundle):
        manifest = (model.folder / MANIFEST).read_bytes()
        return "", {MANIFEST: manifest, model.network.file: model.read(model.network.file)}
    toml = model.path.read_bytes()
    return model.path.name, {model.path.name: toml, model.network_path.name: model.read_network()}
