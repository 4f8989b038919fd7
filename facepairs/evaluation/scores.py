"""The scores file, the interface between models and measurement, and its pairs in memory.

CSV, UTF-8, a header and one pair a line: `left,right,genuine,fold,score`; higher scores mean more
alike. Only `genuine` and `score` are required, so that the scores of any other system can be
measured too. A column `error`, as `verify --pairs` writes it, says why a pair has no score. Files
written here have their SHA-256 beside them, NAME.sha256; files without one are not checked.
"""

import csv
import math
from array import array
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.data.index import StringTable
from facepairs.data.pairs import csv_rows, parse_fold, parse_genuine
from facepairs.errors import BadData
from facepairs.evaluation.metrics.arrays import Ints
from facepairs.support.checksum import checksummed_file, verify_checksum

COLUMNS = ("left", "right", "genuine", "fold", "score")


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scored pairs, one entry for each pair in every column.

    Attributes:
        left, right: str[N], names of the photos; "" where the file has none.
        genuine: bool[N].
        fold: int16[N]; 0 where the file has none.
        score: float64[N].
        unscored: Number of pairs of the file that had an error instead of a score; left out here.

    Raises:
        BadData: The columns have different lengths.
    """

    left: Sequence[str]
    right: Sequence[str]
    genuine: npt.NDArray[np.bool_]
    fold: npt.NDArray[np.int16]
    score: npt.NDArray[np.float64]
    unscored: int = 0

    def __post_init__(self) -> None:
        """Refuse columns of different lengths."""
        lengths = {name: len(getattr(self, name)) for name in COLUMNS}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{count} {name}" for name, count in lengths.items())
            raise BadData(f"scores need as many entries in every column, not {counts}")

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.score)

    @property
    def has_names(self) -> bool:
        """Whether the photos are named."""
        return bool(self.left[0])

    def take(self, order: Ints) -> "ScoreTable":
        """Return the pairs at these places, int64[M], in that order."""
        left, right = (StringTable(side[int(k)] for k in order) for side in (self.left, self.right))
        return ScoreTable(left, right, self.genuine[order], self.fold[order], self.score[order])


def write_scores(path: Path, scores: ScoreTable) -> None:
    """Write a scores file, completely or not at all; `read_scores` reads the same values back.

    Raises:
        BadData: A score is not finite, a fold is negative, a name is not valid Unicode, or the file
            cannot be written.
    """
    score = np.asarray(scores.score, np.float64)
    bad = np.flatnonzero(~np.isfinite(score))
    if bad.size:
        raise BadData(
            f"cannot write {path}: the score of pair {bad[0]} is {score[bad[0]]}, not a finite "
            "number; check the model that made it"
        )
    if len(scores) and int(scores.fold.min()) < 0:
        raise BadData(f"cannot write {path}: fold {scores.fold.min()} is not from 0 up")
    # Python numbers: `csv` writes the repr of a float, which reads back exactly
    numbers = map(int, scores.genuine), map(int, scores.fold), map(float, score)
    with checksummed_file(path) as handle:
        writer = csv.writer(handle)
        writer.writerow(COLUMNS)
        try:
            writer.writerows(zip(scores.left, scores.right, *numbers, strict=True))
        except UnicodeEncodeError as error:
            raise BadData(
                f"cannot write {path}: a name in {error.object.strip()!a} is not valid Unicode; "
                "rename that file or folder"
            ) from None


def read_scores(path: Path) -> ScoreTable:
    """Read a scores file; columns `left`, `right` and `fold` may be missing, and folds be empty.

    A pair with text in a column `error` is only counted.

    Raises:
        BadData: A line cannot be read (with file, line number and cell), or the file has changed
            since its checksum was written.
    """
    verify_checksum(path)
    sides = {"left": StringTable(), "right": StringTable()}
    genuine = bytearray()
    fold = array("h")
    score = array("d")
    unscored = 0
    for line, row in csv_rows(path, ("genuine", "score")):
        if row.get("error", "").strip():
            unscored += 1
            continue
        try:
            genuine.append(parse_genuine(row["genuine"]))
            fold.append(parse_fold(row.get("fold", "")))
            score.append(_score(row["score"]))
        except ValueError as error:
            raise BadData(f"{path}: line {line}: {error}") from None
        for side, names in sides.items():
            names.add(row.get(side, ""))
    if not score:
        raise BadData(f"{path}: no scores below the header")
    return ScoreTable(
        sides["left"],
        sides["right"],
        np.frombuffer(genuine, np.bool_),
        np.frombuffer(fold, np.int16),
        np.frombuffer(score, np.float64),
        unscored,
    )


def _score(cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in cell:
        raise ValueError(f"score is {cell!r}, not a finite number")
    return value


def match_pairs(first: ScoreTable, other: ScoreTable, names: tuple[str, str]) -> Ints:
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
        places[frozenset(pair)].append(place)
    queues = [places[frozenset(pair)] for pair in zip(first.left, first.right, strict=True)]
    found = [queue.popleft() if queue else -1 for queue in queues]
    missing = found.count(-1)
    if missing or len(other) != len(first):
        raise BadData(
            f"{names[1]} has {len(other):,} pairs and lacks {missing:,} of the {len(first):,} of "
            f"{names[0]}; compare scores of the same pairs, for bundles with --pairs FILE"
        )
    matched = np.array(found, np.int64)
    if (other.genuine[matched] != first.genuine).any():
        raise BadData(f"{names[0]} and {names[1]} disagree on which pairs are genuine")
    return matched
