"""What the words after `facepairs evaluate` name: verifiers, scores files, `crossval` folders.

Beside its scores, `crossval` writes how the network of each fold decides.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from facepairs.bundles.bundle import DEFAULT
from facepairs.bundles.calibration import Calibration
from facepairs.bundles.manifest import MANIFEST
from facepairs.config import read_table
from facepairs.errors import BadConfig, BadData, FacepairsError
from facepairs.evaluation.protocols import CATEGORIES, OUTSIDE_LABELS
from facepairs.images.crop_plan import ALIGNMENTS
from facepairs.support.validation import validate
from facepairs.verification.embedders.embedder import is_embedder

SCORES, RESULT = "scores.csv", "result.json"  # the files that `crossval` writes for a method
Kind = Literal["model", "scores", "view2"]


class ScoreSource(NamedTuple):
    """Something to measure: a verifier, a scores file, or the folder of a `crossval` method."""

    kind: Kind
    path: str
    name: str


def find_sources(words: Sequence[str]) -> tuple[list[ScoreSource], Path | None]:
    """Split the words of a command into what is to be measured and the folder of photos, if any.

    Args:
        words: `default`, a bundle, an external embedder, a scores file (.csv), or a folder of
            `crossval`, of one method or of several; the last word may be the folder of photos.

    Raises:
        BadConfig: The words do not fit together.
    """
    kinds = [_kind(word) for word in words]
    data = Path(words[-1]) if words and kinds[-1] is None else None
    named = list(zip(words, kinds, strict=True))[: len(words) - (data is not None)]
    found: list[tuple[Kind, str]] = []
    for word, kind in named:
        if kind == "view2":
            found += [("view2", str(folder)) for folder in _method_folders(Path(word))]
        else:
            found.append((kind or "model", word))  # opening the model explains what is wrong
    verifiers = sum(kind == "model" for kind, _ in found)
    if not found:
        folder = f"{data}: give" if data else "give"
        raise BadConfig(f"{folder} a verifier and a folder of photos, or a scores file alone")
    if verifiers and data is None:
        raise BadConfig("give the folder of photos after the bundle")
    names = _unique_names([path for _, path in found])
    sources = [
        ScoreSource(kind, path, name) for (kind, path), name in zip(found, names, strict=True)
    ]
    return sources, data


def _kind(word: str) -> Kind | None:
    path = Path(word)
    if word == DEFAULT or is_embedder(word) or (path / MANIFEST).is_file():
        return "model"
    if path.is_dir():
        return "view2" if _method_folders(path) else None
    return "scores" if path.is_file() or word.lower().endswith(".csv") else None


def _method_folders(folder: Path) -> list[Path]:
    """Return the folders of `crossval`'s methods: this one itself, or those directly below it."""
    if (folder / SCORES).is_file() and (folder / RESULT).is_file():
        return [folder]
    return sorted(
        path.parent for path in folder.glob(f"*/{RESULT}") if _method_folders(path.parent)
    )


def _unique_names(paths: Sequence[str]) -> list[str]:
    """Name each source by the end of its path; by all of it, or a number, where names are equal."""
    names = [_short_name(Path(path)) for path in paths]
    if len(set(names)) < len(names):
        names = list(paths)
    seen: Counter[str] = Counter()
    for place, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[place] = f"{name} ({seen[name]})"
    return names


def _short_name(path: Path) -> str:
    parent = path.absolute().parent.name
    if path.name in ("bundle", SCORES) and parent:
        return parent
    return path.stem if path.suffix else path.name


class FoldTraining(msgspec.Struct, frozen=True):
    """How a fold was trained and decides; `people` in each part of the split."""

    fold: int
    threshold: float
    calibration: Calibration
    people: dict[str, int] = {}
    epochs: int | None = None
    minutes: float | None = None
    seed: int | None = None


class CrossvalResult(msgspec.Struct, frozen=True, kw_only=True):
    """The folds of a method that are done, and the number of folds in all."""

    method: str | None = None
    folds: list[FoldTraining]
    folds_in_all: int | None = None


def read_result(path: Path) -> CrossvalResult:
    """Read a method's result.json; raises BadData unless it has a threshold for every fold."""
    advice = "run crossval again"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadData(f"{path}: cannot be read ({error}); {advice}") from None
    return validate(values, CrossvalResult, str(path), BadData, advice)


def read_alignment(folder: Path) -> tuple[str | None, str | None]:
    """Return the alignment and LFW's category of a run; None where it does not record them."""
    try:
        train = read_table(folder / "config.toml")
        alignment = ALIGNMENTS[train["align"]]
        return alignment, OUTSIDE_LABELS if train.get("init") else CATEGORIES[alignment]
    except (FacepairsError, AttributeError, KeyError, TypeError, ValueError):
        return None, None
