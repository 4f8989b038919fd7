"""The scores file, the interface between models and measurement, and its pairs in memory.

CSV, UTF-8, a header and one pair a line: `left,right,genuine,fold,score`; higher scores mean more
alike. Only `genuine` and `score` are required, so that the scores of any other system can be
measured too; cells may be separated by semicolons, tabs or bars, and scores have decimal commas.
Optional columns: `alike`, 1 for strangers who look alike, and otherwise empty; `alike_again`, a 0
or 1 for each time that these were found on half of the people, empty for none; and `error`, why a
pair has no score. Beside files that were written here lies their origin, NAME.json with their
SHA-256 and the photos that could not be used; files without it are not checked.
"""

import csv
import itertools
import math
import sys
from array import array
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from facepairs.evaluation.metrics.intervals import PeopleOfPairs
from facepairs.verification.provenance import Provenance, read_provenance, scores_file

COLUMNS: tuple[str, ...] = ("left", "right", "genuine", "fold", "score")
ALIKE, AGAIN, ERROR = "alike", "alike_again", "error"
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
        failed: The pairs with photos that could not be used, with scores of minus infinity; None
            if there are none.
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
    failed: "ScoredPairs | None" = None
    origin: Provenance | None = None
    families: PeopleGroups | None = None

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.score)

    @cached_property
    def attempted(self) -> "ScoredPairs":
        """These pairs, and then those with photos that failed, which no threshold accepts."""
        failed = self.failed
        if failed is None:
            return self
        return replace(
            self,
            left=[*self.left, *failed.left],
            right=[*self.right, *failed.right],
            genuine=np.append(self.genuine, failed.genuine),
            fold=np.append(self.fold, failed.fold),
            score=np.append(self.score, failed.score),
            alike=None,
            failed=None,
        )

    @property
    def failures(self) -> Mapping[str, str] | None:
        """Why photos could not be used, by their names, such as `no_face`; None if unknown."""
        return self.origin.failures if self.origin else None

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

    @cached_property
    def sample(self) -> PeopleOfPairs:
        """Who is in the pairs, for intervals; raises BadData as `relatives` does."""
        return PeopleOfPairs(self.people, len(self), self.relatives)


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
    every, names = scores.attempted, COLUMNS
    reasons = _reasons(scores.failed, scores.failures or {})
    none = [""] * len(reasons)
    columns: list[Iterable[object]] = [every.left, every.right]
    columns += [map(int, every.genuine), map(int, every.fold), [*map(float, score), *none]]
    if scores.alike is not None:
        names = (*names, ALIKE, AGAIN)
        columns.append(["1" if alike else "" for alike in scores.alike.pairs.tolist()] + none)
        columns.append([_digits(row) for row in scores.alike.again.T.tolist()] + none)
    if reasons:
        names = (*names, ERROR)
        columns.append([""] * len(scores) + reasons)
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

    A pair with text in a column `error`, or without `genuine`, is only counted, unless it shows a
    photo that the origin says could not be used.

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
    failures = origin.failures if origin else None
    failed, unscored = list[tuple[str, str, bool, int]](), 0
    for line, row in csv_rows(path, ("genuine", "score")):
        try:
            if row.get(ERROR, "").strip() or not row["genuine"].strip():
                known = failures and {row.get("left"), row.get("right")} & failures.keys()
                if known and row["genuine"].strip():
                    label, number = parse_genuine(row["genuine"]), parse_fold(row.get("fold", ""))
                    failed.append((row["left"], row["right"], label, number))
                else:
                    unscored += 1
                continue
            genuine.append(parse_genuine(row["genuine"]))
            fold.append(parse_fold(row.get("fold", "")))
            score.append(parse_score(row["score"]))
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
        failed_pairs(failed),
        origin,
    )


def failed_pairs(rows: Sequence[tuple[str, str, bool, int]]) -> ScoredPairs | None:
    """Return pairs that could not be scored: left, right, genuine and fold; None for no pairs."""
    if not rows:
        return None
    left, right, genuine, fold = zip(*rows, strict=True)
    score = np.full(len(rows), -np.inf)
    return ScoredPairs(left, right, np.array(genuine), np.array(fold, np.int16), score)


def _reasons(failed: ScoredPairs | None, failures: Mapping[str, str]) -> list[str]:
    """Return why each pair could not be scored."""
    sides = zip(*failed.sides, strict=True) if failed else ()
    return [failures.get(left) or failures[right] for left, right in sides]


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


def parse_score(cell: str) -> float:
    """Return the number of a cell; raise ValueError for one that is not finite."""
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
