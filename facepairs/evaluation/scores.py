"""The scores file, the interface between models and measurement, and its pairs in memory.

CSV, UTF-8, a header and one pair a line: `left,right,genuine,fold,score`; higher scores mean more
alike. Only `genuine` and `score` are required, so that the scores of any other system can be
measured too; cells may be separated by semicolons, tabs or bars, and scores have decimal commas.
Optional columns: `alike`, 1 for strangers who look alike, and otherwise empty; `alike_again`, a 0
or 1 for each time that these were found on half of the people, empty for none; and `error`, why a
pair has no score, as `score` writes it. Beside files that were written here lies their origin,
NAME.json with their SHA-256; files without it are not checked.
"""

import csv
import itertools
import math
import sys
from array import array
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.data.groups import PeopleGroups
from facepairs.data.pairs import (
    csv_rows,
    normalize_name,
    parse_fold,
    parse_genuine,
    person_name,
    person_of,
)
from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.lookalikes import LookAlikes
from facepairs.evaluation.metrics.arrays import Ints, PairPeople
from facepairs.verification.provenance import Provenance, read_provenance, scores_file

COLUMNS = ("left", "right", "genuine", "fold", "score")
ALIKE, AGAIN = "alike", "alike_again"
MAX_ROUNDS = 64


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Scored pairs, one entry for each pair in every column.

    Attributes:
        left, right: str[N], names of the photos; "" where the file has none.
        genuine: bool[N].
        fold: int16[N]; 0 where the file has none.
        score: float64[N].
        alike: Strangers who look alike; None where that is not known.
        unscored: Number of pairs of the file that had an error instead of a score, or no label;
            left out here.
        origin: What made the scores; None if unknown.
        families: The people's families, for intervals; None if all are unrelated.
    """

    left: Sequence[str]
    right: Sequence[str]
    genuine: npt.NDArray[np.bool_]
    fold: npt.NDArray[np.int16]
    score: npt.NDArray[np.float64]
    alike: LookAlikes | None = None
    unscored: int = 0
    origin: Provenance | None = None
    families: PeopleGroups | None = None

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.score)

    @property
    def sides(self) -> tuple[Sequence[str], Sequence[str]]:
        """The names of the photos on both sides."""
        return self.left, self.right

    @property
    def has_names(self) -> bool:
        """Whether the photos are named."""
        return len(self) > 0 and bool(self.left[0])

    @cached_property
    def people(self) -> PairPeople | None:
        """Numbers of the people on both sides, int64[N] each, by the folders of the photos.

        None where photos are not named with folders, or where folders contradict `genuine`, so
        that they cannot be people.
        """
        person = {name: person_of(name) for name in {*self.left, *self.right}}
        number = {name: place for place, name in enumerate(sorted(set(person.values())))}
        left, right = (
            np.array([number[person[name]] for name in side], np.int64) for side in self.sides
        )
        if not number or "" in number or ((left == right) != self.genuine).any():
            return None
        return left, right

    @property
    def people_names(self) -> list[str]:
        """The names of the people in the pairs, sorted, by the folders of the photos."""
        return sorted({person_name(name) for side in self.sides for name in side} - {""})

    def without_photos(self, names: Collection[str]) -> "ScoredPairs":
        """Return them without the pairs that show some photos."""
        if not names:
            return self
        shown = [one in names or other in names for one, other in zip(*self.sides, strict=True)]
        keep = ~np.array(shown, np.bool_)
        left, right = ([*itertools.compress(side, keep)] for side in self.sides)
        return replace(
            self,
            left=left,
            right=right,
            genuine=self.genuine[keep],
            fold=self.fold[keep],
            score=self.score[keep],
            alike=self.alike and self.alike.where(keep),
        )

    @cached_property
    def relatives(self) -> PairPeople | None:
        """Numbers of the families of the people on both sides; None without families.

        Raises:
            BadData: The people are not known.
        """
        if self.families is None:
            return None
        if self.people is None:
            raise BadData(
                f"{self.families.path}: the people of the pairs are unknown; families need photos "
                "named Person_Name/photo.jpg",
                "families",
            )
        left, right = ([person_name(name) for name in side] for side in self.sides)
        return self.families.numbers(left, right)


def write_scores(path: Path, scores: ScoredPairs) -> None:
    """Write a scores file, completely or not at all; `read_scores` reads the same values back.

    Args:
        path: The file; the origin is written beside it.
        scores: The pairs.

    Raises:
        BadData: A score is not finite, a name is not valid Unicode, or the file cannot be written.
    """
    score = np.asarray(scores.score, np.float64)
    bad = np.flatnonzero(~np.isfinite(score))
    if bad.size:
        raise BadData(
            f"cannot write {path}: the score of pair {bad[0]} is {score[bad[0]]}, not a finite "
            "number; check the model that made it"
        )
    # Python numbers: `csv` writes the repr of a float, which reads back exactly
    columns: list[Iterable[object]] = [scores.left, scores.right]
    columns += [map(int, scores.genuine), map(int, scores.fold), map(float, score)]
    names: tuple[str, ...] = COLUMNS
    if scores.alike is not None:
        names = (*COLUMNS, ALIKE, AGAIN)
        columns.append("1" if alike else "" for alike in scores.alike.pairs.tolist())
        columns.append(_digits(row) for row in scores.alike.again.T.tolist())
    with scores_file(path, scores.origin) as handle:
        writer = csv.writer(handle)
        writer.writerow(names)
        try:
            writer.writerows(zip(*columns, strict=True))
        except UnicodeEncodeError as error:
            raise BadData(
                f"cannot write {path}: a name in {error.object.strip()!a} is not valid Unicode; "
                "rename that file or folder"
            ) from None


def read_scores(path: Path) -> ScoredPairs:
    """Read a scores file; only `genuine` and `score` must be there, and folds may be empty.

    A pair with text in a column `error`, or without `genuine`, is only counted.

    Raises:
        BadData: A line cannot be read (with file, line number and cell), or the file has changed
            since its origin was written.
        NotEnough: No pair is left after those with an error.
    """
    origin = read_provenance(path)
    sides: dict[str, list[str]] = {"left": [], "right": []}
    genuine, alike = bytearray(), bytearray()
    again: list[str] = []
    fold, score = array("h"), array("d")
    unscored = 0
    for line, row in csv_rows(path, ("genuine", "score")):
        if row.get("error", "").strip() or not row["genuine"].strip():
            unscored += 1
            continue
        try:
            genuine.append(parse_genuine(row["genuine"]))
            fold.append(parse_fold(row.get("fold", "")))
            score.append(_score(row["score"]))
            alike.append(bool(row.get(ALIKE, "").strip()) and not genuine[-1])
            again.append(_rounds(row.get(AGAIN, "")))
        except ValueError as error:
            raise BadData(f"{path}: line {line}: {error}") from None
        for side, names in sides.items():
            names.append(sys.intern(row.get(side, "")))
    if not score:
        raise NotEnough(f"{path}: no pairs with a label and a score below the header")
    return ScoredPairs(
        sides["left"],
        sides["right"],
        np.frombuffer(genuine, np.bool_),
        np.frombuffer(fold, np.int16),
        np.frombuffer(score, np.float64),
        LookAlikes(np.frombuffer(alike, np.bool_), _again(again)) if any(alike) else None,
        unscored,
        origin,
    )


def _digits(row: list[bool]) -> str:
    """Return a digit for each; "" if none is true."""
    return "".join("01"[mark] for mark in row) if any(row) else ""


def _rounds(cell: str) -> str:
    if set(cell := cell.strip()) - {"0", "1"} or len(cell) > MAX_ROUNDS:
        raise ValueError(f"{AGAIN} is {cell!r}, not up to {MAX_ROUNDS} digits of 0 and 1")
    return sys.intern(cell)


def _again(cells: list[str]) -> npt.NDArray[np.bool_]:
    """Return bool[R, N] of N cells of up to R digits."""
    rounds = max(map(len, cells))
    digits = {cell: [digit == "1" for digit in cell.ljust(rounds, "0")] for cell in set(cells)}
    return np.array([digits[cell] for cell in cells], np.bool_).reshape(len(cells), rounds).T


def _score(cell: str) -> float:
    if cell.count(",") == 1 and "." not in cell:  # a decimal comma
        cell = cell.replace(",", ".")
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in cell:
        raise ValueError(f"score is {cell!r}, not a finite number")
    return value


def match_pairs(first: ScoredPairs, other: ScoredPairs, names: tuple[str, str]) -> Ints:
    """Return the places of `other`'s pairs in the order of `first`'s pairs.

    Pairs are matched by their two photos, in either order, and without names by position.

    Args:
        first: Gives the order.
        other: Has the same pairs.
        names: Of both, for error messages.

    Returns:
        int64[N].

    Raises:
        BadData: They do not hold the same pairs with the same labels.
    """
    places: defaultdict[frozenset[str], deque[int]] = defaultdict(deque)
    for place, pair in enumerate(zip(other.left, other.right, strict=True)):
        places[frozenset(map(normalize_name, pair))].append(place)
    pairs = zip(first.left, first.right, strict=True)
    queues = [places[frozenset(map(normalize_name, pair))] for pair in pairs]
    found = [queue.popleft() if queue else -1 for queue in queues]
    missing = found.count(-1)
    if missing or len(other) != len(first):
        raise BadData(
            f"{names[1]} has {len(other):,} pairs and lacks {missing:,} of the {len(first):,} of "
            f"{names[0]}; compare scores of the same pairs, or give bundles and list the pairs",
            "pairs",
        )
    matched = np.array(found, np.int64)
    if (other.genuine[matched] != first.genuine).any():
        raise BadData(f"{names[0]} and {names[1]} disagree on which pairs are genuine")
    return matched
