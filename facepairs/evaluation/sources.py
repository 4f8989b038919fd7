"""The sources that `facepairs evaluate` measures: verifiers, scores files, `crossval` folders.

Beside its scores, `crossval` writes how the network of each fold decides. Pairs that show people on
whom a model was trained or calibrated are found here: its figures would be too good.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from facepairs.bundles.bundle import DEFAULT
from facepairs.bundles.embedder import is_embedder
from facepairs.bundles.error_profile import Calibration
from facepairs.bundles.manifest import MANIFEST, hashed_in
from facepairs.bundles.model import Model
from facepairs.data.pairs import person_name
from facepairs.errors import BadConfig, BadData
from facepairs.evaluation.protocols import FOLDED, PairSelection
from facepairs.evaluation.scores import ScoredPairs
from facepairs.support.places import refuse_url
from facepairs.support.validation import validate

SCORES, RESULT = "scores.csv", "result.json"  # the files that `crossval` writes for a method
Kind = Literal["model", "scores", "view2"]
Known = tuple[int | None, list[str]]
"""The number of pairs that show people whom a model knows, None where it cannot be known, and
warnings."""


def find_sources(words: Sequence[str]) -> tuple[list[tuple[str, str]], Path | None]:
    """Split the words of a command into what is to be measured and the folder of photos, if any.

    Args:
        words: `default`, a bundle, an external embedder, a scores file (.csv), or a folder of
            `crossval`, of one method or of several; the last word may be the folder of photos.

    Returns:
        Path and short name of each source, and the folder.

    Raises:
        BadConfig: The words do not fit together.
        BadData: The folder is missing.
    """
    data = Path(words[-1]) if words and kind_of(words[-1]) is None else None
    if data is not None and not data.is_dir():
        refuse_url(words[-1])
        raise BadData(f"{data}: no such folder, bundle, TOML file or scores file")
    paths: list[str] = []
    for word in words[: len(words) - (data is not None)]:
        is_method = kind_of(word) == "view2"
        paths += map(str, _method_folders(Path(word))) if is_method else [word]
    if not paths:
        folder = f"{data}: give" if data else "give"
        raise BadConfig(f"{folder} a verifier and a folder of photos, or a scores file alone")
    if data is None and any(kind_of(path) in ("model", None) for path in paths):
        raise BadConfig("give the folder of photos after the bundle")
    names = [short_name(Path(path)) for path in paths]
    return list(zip(paths, names if len({*names}) == len(names) else paths, strict=True)), data


def kind_of(word: str) -> Kind | None:
    """Return what a word of a command is; None for a folder of photos, or what cannot be opened."""
    path = Path(word)
    if word == DEFAULT or is_embedder(word) or (path / MANIFEST).is_file():
        return "model"
    if path.is_dir():
        return "view2" if _method_folders(path) else None
    return "scores" if path.is_file() or word.lower().endswith(".csv") else None


def _method_folders(folder: Path) -> list[Path]:
    """Return the folders of `crossval`'s methods: this one itself, or those directly below it."""
    result = folder / RESULT  # a training run has a file of that name, too, without folds
    if (folder / SCORES).is_file() and result.is_file() and b'"folds"' in result.read_bytes():
        return [folder]
    return sorted(
        path.parent for path in folder.glob(f"*/{RESULT}") if _method_folders(path.parent)
    )


def short_name(path: Path) -> str:
    """Return the end of a path that tells verifiers apart."""
    parent = path.absolute().parent.name
    if path.name in ("bundle", SCORES) and parent:
        return parent
    return path.stem if path.suffix else path.name


class FoldNetwork(msgspec.Struct, frozen=True):
    """How the network of a fold decides: at the threshold of its calibration."""

    fold: int
    calibration: Calibration


class CrossvalResult(msgspec.Struct, frozen=True, kw_only=True):
    """The folds of a method that are done, and the number of folds in all."""

    folds: list[FoldNetwork]
    folds_in_all: int | None = None


def read_result(path: Path) -> CrossvalResult:
    """Read a method's result.json; raises BadData unless it has a calibration of every fold."""
    advice = "run crossval again"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadData(f"{path}: cannot be read ({error}); {advice}") from None
    return validate(values, CrossvalResult, str(path), BadData, advice)


def known_in_selection(model: Model, path: str, selection: PairSelection) -> Known:
    """Count the pairs of an index that show people whom a model knows.

    Args:
        model: A bundle or an external embedder.
        path: Of the model, for messages.
        selection: The pairs.

    Raises:
        BadData: There are such pairs, although the pairs are those of a protocol.
    """
    names, person = list(selection.index.people), selection.index.person_of
    # Folds take their thresholds from each other: calibration alone changes nothing there.
    folded = selection.protocol in FOLDED
    known = (
        model.origin.identities.trained_with(names)
        if folded
        else model.origin.identities.knows(names)
    )
    pairs = selection.pairs
    of_pair = known[person[pairs.left]] | known[person[pairs.right]]
    if not model.origin.lists_training and (folded or not of_pair.any()):
        return None, [describe_unknown_training(path)]
    return _judge(int(of_pair.sum()), len(pairs), path, selection.protocol)


def known_in_file(scores: ScoredPairs, path: Path) -> Known:
    """Count the pairs of a scores file that show people whom its model knows.

    Args:
        scores: The pairs; people are told by the folders of their photos.
        path: The file, for messages.

    Raises:
        BadData: As `known_in_selection`.
    """
    known_by = scores.origin
    if known_by is None:
        return None, [
            f"{path}: of unknown origin (no {path.name}.json beside it): the people of the pairs "
            "may be those that its model was trained on"
        ]
    if known_by.identities is None:
        one_network = known_by.embedder_sha256 is not None
        return None, [describe_unknown_training(known_by.model)] if one_network else []
    hashes = known_by.identities.training
    if known_by.protocol not in FOLDED:  # it was looked at when they were scored
        hashes |= known_by.identities.calibration
    sides = np.array([[person_name(name) for name in side] for side in scores.sides], object)
    people, numbers = np.unique(sides.astype(str), return_inverse=True)
    if not people[0]:
        return None, [
            f"{path}: photos are not named Person_Name/photo.jpg, so their people may be those "
            f"that {known_by.model} was trained on"
        ]
    known = hashed_in(people.tolist(), hashes)[numbers.reshape(2, -1)]
    return _judge(int(known.any(axis=0).sum()), len(scores), known_by.model, known_by.protocol)


def describe_unknown_training(model: str) -> str:
    """Return a warning about a model that does not list the people of its training."""
    return f"the training people of {model} are unknown; they may be those of these pairs"


def _judge(count: int, pairs: int, model: str, protocol: str | None) -> Known:
    """Return the count and a warning; raise BadData where the pairs are those of a protocol."""
    if not count:
        return 0, []
    line = f"{count:,} of {pairs:,} pairs show people that {model} was trained or calibrated on"
    if protocol:
        advice = f", or train by protocol {protocol}" if protocol in ("view1", "view2") else ""
        raise BadData(f"{line}; the figures would be too good: measure on other people{advice}")
    return count, [f"{line}; the figures are too good: measure on other people"]
