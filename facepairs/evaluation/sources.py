"""What the words after `facepairs evaluate` stand for, and how scores of one pair list line up."""

import json
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.bundles.default import DEFAULT
from facepairs.bundles.manifest import MANIFEST
from facepairs.errors import BadConfig, BadData
from facepairs.evaluation.metrics import Counts
from facepairs.evaluation.scores import Scores

SCORES, RESULT = "scores.csv", "result.json"  # what `crossval` leaves in a method's folder
Kind = Literal["model", "scores", "view2"]


class Source(NamedTuple):
    """Something to measure: a verifier, a scores file, or a method's folder of `crossval`."""

    kind: Kind
    path: str
    name: str


def find_sources(words: Sequence[str], scores: Path | None) -> tuple[list[Source], Path | None]:
    """Sort the words of a command into what is to be measured and the folder of photos, if any.

    A word is `default`, a bundle, the .toml of an embedder made elsewhere, a scores file (.csv), or
    a folder of `crossval`, of one method or of several; the last may be the folder of photos.
    `scores` is read where no verifier is there to write it. Raises BadConfig for words that make no
    sense together.
    """
    kinds = [_kind(word) for word in words]
    data = Path(words[-1]) if words and kinds[-1] is None else None
    named = list(zip(words, kinds, strict=True))[: len(words) - (data is not None)]
    found: list[tuple[Kind, str]] = []
    for word, kind in named:
        if kind == "view2":
            found += [("view2", str(folder)) for folder in _methods(Path(word))]
        else:
            found.append((kind or "model", word))  # whatever is no bundle either is told as such
    verifiers = sum(kind == "model" for kind, _ in found)
    if not verifiers and scores is not None:
        found.append(("scores", str(scores)))
    if not found:
        missing = f"{data}: give" if data else "give"
        raise BadConfig(f"{missing} BUNDLE and DATA, or --scores FILE alone")
    if verifiers and data is None:
        raise BadConfig("give the folder of photos after the bundle")
    if verifiers > 1 and scores is not None:
        raise BadConfig(
            "--scores takes the scores of one verifier; for several use --report-dir, which keeps "
            "those of each"
        )
    names = _names([path for _, path in found])
    return [Source(kind, path, name) for (kind, path), name in zip(found, names, strict=True)], data


def _kind(word: str) -> Kind | None:
    path = Path(word)
    if word == DEFAULT or word.lower().endswith(".toml"):
        return "model"
    if path.is_dir():
        return "model" if (path / MANIFEST).is_file() else "view2" if _methods(path) else None
    return "scores" if path.is_file() or word.lower().endswith(".csv") else None


def _methods(folder: Path) -> list[Path]:
    """Give the folders of `crossval`'s methods: this one itself, or those right below it."""
    if (folder / SCORES).is_file() and (folder / RESULT).is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"*/{RESULT}") if _methods(path.parent))


def _names(paths: Sequence[str]) -> list[str]:
    """Name each thing by the end of its path, and by more of it where two ends are alike."""
    names = [_short(Path(path)) for path in paths]
    if len(set(names)) < len(names):
        names = list(paths)
    told: list[str] = []
    for name in names:
        again = sum(other == name or other.startswith(f"{name} (") for other in told)
        told.append(f"{name} ({again + 1})" if again else name)
    return told


def _short(path: Path) -> str:
    plain = path.name in ("bundle", SCORES) and path.absolute().parent.name
    return path.absolute().parent.name if plain else path.stem if path.suffix else path.name


def read_result(path: Path) -> dict[str, Any]:
    """Read a method's result.json; raises BadData unless it has a threshold for each fold."""
    try:
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for row in result["folds"]:
            int(row["fold"]), float(row["threshold"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadData(
            f"{path}: has no threshold for every fold ({error}); run crossval again"
        ) from None
    return result


def lined_up(first: Scores, other: Scores, names: tuple[str, str]) -> Counts:
    """Give the places of `other`'s pairs in the order of `first`'s: int64[N].

    Pairs are told by their two images, in whichever order; without names by their place. Raises
    BadData unless both hold the same pairs with the same labels.
    """
    keys, others = _keys(first), _keys(other)
    order, place = (np.lexsort(columns) for columns in (keys, others))  # stable: by place too
    if not np.array_equal(keys[:, order], others[:, place]):
        missing = len(first) - _shared(keys, others)
        raise BadData(
            f"{names[1]} has {len(other):,} pairs and lacks {missing:,} of the {len(first):,} of "
            f"{names[0]}; compare scores of the same pairs, for bundles with --pairs FILE"
        )
    lined = np.empty(len(first), np.int64)
    lined[order] = place
    if (other.genuine[lined] != first.genuine).any():
        raise BadData(f"{names[0]} and {names[1]} disagree on which pairs are genuine")
    return lined


def _keys(scores: Scores) -> npt.NDArray[np.uint64]:
    """Give a hash of each pair's two names, in whichever order they come: uint64[2, N]."""
    hashes = bytearray()
    for pair in zip(scores.left, scores.right, strict=True):
        both = "\0".join(sorted(pair)).encode("utf-8", "surrogateescape")
        hashes += blake2b(both, digest_size=16).digest()
    return np.frombuffer(hashes, np.uint64).reshape(-1, 2).T


def _shared(keys: npt.NDArray[np.uint64], others: npt.NDArray[np.uint64]) -> int:
    """Count the pairs of one list that the other has too, each as often as it comes."""
    both = np.concatenate([keys, others], axis=1)
    _, group = np.unique(both, axis=1, return_inverse=True)
    parts = np.split(group, [keys.shape[1]])
    return int(np.minimum(*(np.bincount(part, minlength=group.max() + 1) for part in parts)).sum())
