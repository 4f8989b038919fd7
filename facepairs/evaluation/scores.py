"""The scores file: the joint between models and measurement.

CSV, UTF-8, a header and one pair a line: `left,right,genuine,fold,score`; higher scores are more
alike. Only `genuine` and `score` are needed to read one, so that any other system's scores can be
measured too. A column `error`, as `verify --pairs` writes it, says why a pair has no score.
"""

import csv
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.atomic import atomic_file
from facepairs.data.index import StringTable
from facepairs.data.pairs import csv_rows, genuine_word
from facepairs.errors import BadData

COLUMNS = ("left", "right", "genuine", "fold", "score")
MAX_FOLD = 32767  # int16


@dataclass(frozen=True, eq=False)
class Scores:
    """Scored pairs: `left`, `right` str[N], `genuine` bool[N], `fold` int16[N], `score` float64[N].

    Names are "" and folds 0 where nobody gave them. `unscored` counts the pairs of the file that
    had an error instead of a score and are not among these. Raises BadData when the lengths differ.
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
            told = ", ".join(f"{count} {name}" for name, count in lengths.items())
            raise BadData(f"scores need as many entries in every column, not {told}")

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.score)


def write_scores(path: Path, scores: Scores) -> None:
    """Write a scores file, whole or not at all; `read_scores` gives the very same values back.

    Raises BadData when a score is not finite, a fold is negative, a name is not valid Unicode, or
    the place cannot be written.
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
    rows = zip(
        scores.left,
        scores.right,
        scores.genuine.astype(np.int8).tolist(),
        scores.fold.tolist(),
        score.tolist(),  # Python floats: `csv` writes their repr, which reads back exactly
        strict=True,
    )
    with atomic_file(path) as handle:
        writer = csv.writer(handle)
        writer.writerow(COLUMNS)
        try:
            writer.writerows(rows)
        except UnicodeEncodeError as error:
            raise BadData(
                f"cannot write {path}: a name in {error.object.strip()!a} is not valid Unicode; "
                "rename that file or folder"
            ) from None


def read_scores(path: Path) -> Scores:
    """Read a scores file; `left`, `right` and `fold` may be missing, as may a fold's cell.

    A pair with a cell `error` that is not empty is counted, not read. Raises BadData that quotes
    file, line number and cell.
    """
    sides: dict[str, list[str]] = {"left": [], "right": []}
    genuine = bytearray()
    fold = array("h")
    score = array("d")
    unscored = 0
    for line, row in csv_rows(path, ("genuine", "score")):
        if row.get("error", "").strip():
            unscored += 1
            continue
        try:
            genuine.append(genuine_word(row["genuine"]))
            fold.append(_fold(row.get("fold", "")))
            score.append(_score(row["score"]))
        except ValueError as error:
            raise BadData(f"{path}: line {line}: {error}") from None
        for side, names in sides.items():
            if side in row:
                names.append(row[side])
    if not score:
        raise BadData(f"{path}: no scores below the header")
    left, right = (StringTable(names or repeat("", len(score))) for names in sides.values())
    return Scores(
        left,
        right,
        np.frombuffer(genuine, np.bool_),
        np.frombuffer(fold, np.int16),
        np.frombuffer(score, np.float64),
        unscored,
    )


def _fold(cell: str) -> int:
    text = cell.strip() or "0"
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) > MAX_FOLD:
        raise ValueError(f"fold is {cell!r}, not a number from 0 to {MAX_FOLD}")
    return int(text)


def _score(cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in cell:
        raise ValueError(f"score is {cell!r}, not a finite number")
    return value
