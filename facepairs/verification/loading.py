"""What a path or the word `default` stands for: a bundle, or a TOML that describes an embedder."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from facepairs.bundles.bundle import Bundle
from facepairs.verification.scorer import Scorer

if TYPE_CHECKING:
    from facepairs.verification.external_embedder import ExternalEmbedder
    from facepairs.verification.foreign_scorer import ExternalScorer

Model: TypeAlias = "Bundle | ExternalEmbedder"
AnyScorer: TypeAlias = "Scorer | ExternalScorer"


def open_model(path: Path | str | None, verify_files: bool = True) -> Model:
    """Open a bundle's folder, or a TOML as `verification.foreign` describes it.

    None and the word `default` are the package's own bundle. Raises BadBundle.
    """
    if path is not None and str(path).lower().endswith(".toml"):
        from facepairs.verification.external_embedder import ExternalEmbedder

        return ExternalEmbedder.open(path)
    return Bundle.open(path, verify_files)


def open_scorer(model: Model, threads: int | None = None, quick: bool = False) -> AnyScorer:
    """Open a model's network; `threads` are those of one call, by default one a core.

    `quick` opens a bundle's network sooner and runs it slower: for a pair or two.
    """
    if isinstance(model, Bundle):
        return Scorer(model, threads, quick)
    from facepairs.verification.foreign_scorer import ExternalScorer

    return ExternalScorer(model, threads)
