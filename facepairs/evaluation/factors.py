"""Errors by factor, a property of photos or of pairs, and without the worst photos.

A factor is a column of a file that the user gives, by photo or by pair, or what is known of the
faces themselves. A word has levels: pairs with one word, or with one word on either side. A number
has four levels, of as many genuine pairs each. Of two photos, the worse number counts, and where
numbers are of photos, the errors are also measured without the pairs of the worst ones.

References:
    Grother and Tabassi, "Performance of Biometric Quality Measures", IEEE Transactions on Pattern
    Analysis and Machine Intelligence 29, 2007: error against the share discarded.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from facepairs.bundles.rates import Errors
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import csv_rows, normalize_name
from facepairs.errors import BadConfig, BadData
from facepairs.evaluation.error_rates import errors_of, pairs_of_labels
from facepairs.evaluation.metrics.arrays import Bools, Floats
from facepairs.evaluation.scores import AGAIN, ALIKE, COLUMNS, ERROR, ScoredPairs
from facepairs.photos.face_sample import FaceSample
from facepairs.photos.photo_cache import photo_cache
from facepairs.photos.reader import PhotoReader
from facepairs.support.parallel import batches, thread_map, unbatched
from facepairs.verification.provenance import FaceNumbers

FACES = "faces"  # the word for what is known of the faces, without a file
LEVELS, MOST_WORDS = 4, 20
DISCARDED = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
NOT_GIVEN = "not given"
KEYS = ("photo", "left", "right")
NO_FACTORS = {*KEYS, *COLUMNS, ALIKE, AGAIN, ERROR, "probability", "same"}
BATCH = 32  # photos whose sharpness is measured at a time

OF_FACES: dict[str, Literal["lowest", "highest"]] = {
    "face size, pixels": "lowest",
    "sharpness": "lowest",
    "yaw": "highest",
    "roll, degrees": "highest",
}

Key = str | frozenset[str]
"""The name of a photo, or those of the two photos of a pair."""


class Discarded(msgspec.Struct, frozen=True, kw_only=True):
    """The errors without the pairs of the worst photos.

    Attributes:
        share: Share of the genuine pairs that are left out.
        bound: The worst number that is kept.
        errors: Of the pairs that are kept.
    """

    share: float
    bound: float
    errors: Errors


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """The errors by the levels of a factor.

    Attributes:
        name: Its name.
        worst: Which of two photos' numbers counts; None for words and for numbers of pairs.
        levels: Errors by level; the last one is that of pairs without a value, if there are any.
        discarded: Errors without the pairs of the worst photos, by rising share; empty for words,
            and for numbers of pairs.
    """

    name: str
    worst: Literal["lowest", "highest"] | None
    levels: dict[str, Errors]
    discarded: list[Discarded]


@dataclass(frozen=True, eq=False)
class Column:
    """What is known of photos, or of pairs.

    Attributes:
        name: The name of the factor.
        values: Numbers, or words, by photo or by pair.
        worst: Which of two photos' numbers counts.
        path: The file.
    """

    name: str
    values: Mapping[Key, float] | Mapping[Key, str]
    worst: Literal["lowest", "highest"] = "lowest"
    path: Path | None = None

    def measure(self, pairs: ScoredPairs, accepted: Bools) -> Factor:
        """Return the errors of pairs by level.

        Args:
            pairs: N pairs.
            accepted: bool[N], the decisions.

        Raises:
            BadData: None of the photos or pairs of the file is there.
        """
        first, value = next(iter(self.values.items()))
        clean = {name: normalize_name(name) for name in {*pairs.left, *pairs.right}}
        sides: list[list[Key]] = [[clean[name] for name in side] for side in pairs.sides]
        if isinstance(first, frozenset):
            sides = [[frozenset(pair) for pair in zip(*sides, strict=True)]]
        discards: list[tuple[float, float, Bools]] = []
        if isinstance(value, str):
            levels = self._words(sides)
        else:
            known = [np.array([self.values.get(key, np.nan) for key in side]) for side in sides]
            number = reduce(np.minimum if self.worst == "lowest" else np.maximum, known)
            levels = _quantiles(number, pairs.genuine)
            if len(sides) == 2:
                discards = self._discards(number, pairs.genuine)
        if not np.any([*levels.values()]):
            shown = " and ".join(sorted(first)) if isinstance(first, frozenset) else first
            raise BadData(
                f"{self.path}: no pair has a value of {self.name}: the file names {shown}; use the "
                f"names in the pairs, such as {pairs.left[0] or 'Person_Name/photo.jpg'}",
                "factors",
            )
        unknown = ~np.any([*levels.values()], axis=0)
        levels[NOT_GIVEN] = unknown | levels.get(NOT_GIVEN, unknown)
        levels = {name: members for name, members in levels.items() if members.any()}
        parts = [*levels.values(), *(kept for _, _, kept in discards)]
        within = [(members, accepted) for members in parts]
        errors = errors_of(within, pairs.genuine, pairs.sample)
        return Factor(
            name=self.name,
            worst=self.worst if discards else None,
            levels=dict(zip(levels, errors, strict=False)),
            discarded=[
                Discarded(share=share, bound=bound, errors=found)
                for (share, bound, _), found in zip(discards, errors[len(levels) :], strict=True)
            ],
        )

    def _words(self, sides: Sequence[Sequence[Key]]) -> dict[str, Bools]:
        """Return the pairs of each word, or of two words."""
        words = sorted({str(word) for word in self.values.values()})
        number = {word: place for place, word in enumerate(words)}
        codes = [
            np.array([number.get(self.values.get(key), -1) for key in side])  # type: ignore[arg-type]
            for side in sides
        ]
        labels = [{word: code == place for word, place in number.items()} for code in codes]
        if len(labels) == 1:
            return labels[0]
        both = pairs_of_labels(*labels)
        return {one if one == other else f"{one}, {other}": both[one, other] for one, other in both}

    def _discards(self, value: Floats, genuine: Bools) -> list[tuple[float, float, Bools]]:
        """Return share left out, bound and pairs that are kept; equal numbers stay together."""
        sign = 1 if self.worst == "lowest" else -1
        value = sign * value
        known = value[genuine & ~np.isnan(value)]
        found: dict[float, tuple[float, float, Bools]] = {}
        for share in DISCARDED if len(known) else ():
            cut = float(np.quantile(known, share) if share else np.nanmin(value))
            kept = value >= cut
            left_out = 1 - float((kept & genuine).sum()) / len(known)
            found.setdefault(cut, (left_out, sign * cut, kept))
        return [*found.values()]


def measure_factors(columns: Sequence[Column], pairs: ScoredPairs, accepted: Bools) -> list[Factor]:
    """Return the errors by each column, and by what is known of the faces.

    Args:
        columns: Of the user's file.
        pairs: N pairs.
        accepted: bool[N], the decisions.

    Raises:
        BadConfig: Nothing is known.
        BadData: The pairs show none of a file's photos.
    """
    known = [*columns, *face_columns((pairs.origin and pairs.origin.faces) or {})]
    if not known:
        reason = "these scores have no measurements of faces; give a CSV file of factors"
        raise BadConfig(reason, "factors")
    return [column.measure(pairs, accepted) for column in known]


def not_measured(columns: Sequence[Column], pairs: ScoredPairs) -> list[str]:
    """Return a warning if some photos, or pairs, of a file with these columns are in no pair."""
    every = pairs.attempted
    rows = [tuple(map(normalize_name, pair)) for pair in zip(*every.sides, strict=True)]
    shown: set[Key] = {*map(frozenset, rows), *(name for row in rows for name in row)}
    keys = dict.fromkeys(key for column in columns for key in column.values)
    missing = [key for key in keys if key not in shown]
    if not missing:
        return []
    first = missing[0]
    photos, name = (
        ("photos", first) if isinstance(first, str) else ("pairs", " and ".join(sorted(first)))
    )
    return [
        f"{columns[0].path}: {len(missing):,} of its {len(keys):,} {photos} are not in the pairs "
        f"that are measured, such as {name}"
    ]


def _quantiles(value: Floats, genuine: Bools) -> dict[str, Bools]:
    """Return pairs by number, in levels with as many genuine pairs each."""
    known = value[genuine & ~np.isnan(value)]
    known = known if len(known) else value[~np.isnan(value)]
    if not len(known):
        return {}
    inner = np.quantile(known, np.arange(1, LEVELS) / LEVELS)
    edges = sorted({float(f"{edge:.3g}") for edge in inner})
    ends = [-math.inf, *edges, math.inf]
    names = [f"below {edges[0]:g}", *(f"{low:g} to {high:g}" for low, high in pairwise(edges))]
    names.append(f"{edges[-1]:g} or more")
    return {
        name: (low <= value) & (value < high)
        for name, (low, high) in zip(names, pairwise(ends), strict=True)
    }


def read_factors(path: Path) -> list[Column]:
    """Read factors from a CSV file: photo, or left and right, and a column for each factor.

    A cell may be empty. Other columns of a scores file are left out.

    Raises:
        BadData: The file cannot be read, has no factors, or a photo has two values of one.
    """
    cells: dict[str, dict[Key, str]] = {}
    for line, row in csv_rows(path, ()):
        sides = [name for name in KEYS if name in row]
        names = [normalize_name(row[name].strip()) for name in sides]
        if sides not in (["photo"], ["left", "right"]) or not all(names):
            raise BadData(
                f"{path}: line {line}: names no photo; give a column photo, or left and right, and "
                "a column for each factor"
            )
        key: Key = names[0] if len(names) == 1 else frozenset(names)
        for name, cell in row.items():
            if name in NO_FACTORS or not (cell := cell.strip()):
                continue
            if (earlier := cells.setdefault(name, {}).setdefault(key, cell)) != cell:
                raise BadData(
                    f"{path}: line {line}: {name} is {cell!r} here and {earlier!r} above; give "
                    f"{' and '.join(names)} one value"
                )
    if not cells:
        raise BadData(f"{path}: no factors; add a column with a value for each photo or pair")
    return [_column(name, values, path) for name, values in cells.items()]


def _column(name: str, cells: Mapping[Key, str], path: Path) -> Column:
    """Return a column of numbers, or of words."""
    words, numbers = {*cells.values()}, {key: _number(cell) for key, cell in cells.items()}
    if len(words) > LEVELS and all(map(math.isfinite, numbers.values())):
        return Column(name, numbers, path=path)
    if len(words) > MOST_WORDS:
        odd = next(cells[key] for key, number in numbers.items() if not math.isfinite(number))
        raise BadData(
            f"{path}: {name} has {len(words):,} different values, such as {odd!r}; give numbers, "
            f"or at most {MOST_WORDS} different words"
        )
    return Column(name, cells, path=path)


def _number(cell: str) -> float:
    try:
        return float(cell.replace(",", ".") if "." not in cell else cell)
    except ValueError:
        return math.nan


def measure_faces(index: FaceIndex, samples: Mapping[int, FaceSample]) -> dict[str, FaceNumbers]:
    """Return what is known of faces, by the name of the photo: numbers in the order of `OF_FACES`.

    Args:
        index: The photos.
        samples: Faces that were found, by the number of the photo.
    """
    found = {
        index.name(image): (sample, index.path(image))
        for image, sample in samples.items()
        if sample.face and not sample.error
    }
    read = thread_map(
        PhotoReader(True, cache=photo_cache()).sharpness, batches(found.values(), BATCH)
    )
    sharp = unbatched(read, "measuring sharpness", len(found))
    faces = {name: sample.face for name, (sample, _) in found.items() if sample.face}
    numbers = zip(faces.items(), sharp, strict=True)
    return {
        name: (
            round(face.side_px, 2),
            round(sharpness, 4),
            round(abs(face.yaw), 4),
            round(abs(face.roll_deg), 2),
        )
        for (name, face), sharpness in numbers
    }


def face_columns(faces: Mapping[str, FaceNumbers]) -> list[Column]:
    """Return the factors of faces that `measure_faces` measured."""
    names: list[Key] = [normalize_name(name) for name in faces]
    return [
        Column(name, dict(zip(names, numbers, strict=True)), worst)
        for (name, worst), numbers in zip(
            OF_FACES.items(), zip(*faces.values(), strict=True), strict=False
        )
    ]
