"""The scores file: the joint between models and measurement.

CSV, UTF-8, a header and one pair a line: `left,right,genuine,fold,score`; higher scores are more
alike. Only `genuine` and `score` are needed to read one, so that any other system's scores can be
measured too. A column `error`, as `verify --pairs` writes it, says why a pair has no score. Files
written here have their SHA-256 beside them, NAME.sha256; others go unchecked.
"""

import csv
import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.data.index import StringTable
from facepairs.data.pairs import csv_rows, fold_number, genuine_word
from facepairs.errors import BadData
from facepairs.support.checksum import check_sum, summed_file

COLUMNS = ("left", "right", "genuine", "fold", "score")
WRITTEN_AT_ONCE = 65_536  # pairs


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
    with summed_file(path) as handle:
        writer = csv.writer(handle)
        writer.writerow(COLUMNS)
        try:
            for start in range(0, len(scores), WRITTEN_AT_ONCE):
                writer.writerows(_rows(scores, slice(start, start + WRITTEN_AT_ONCE)))
        except UnicodeEncodeError as error:
            raise BadData(
                f"cannot write {path}: a name in {error.object.strip()!a} is not valid Unicode; "
                "rename that file or folder"
            ) from None


def _rows(scores: Scores, part: slice) -> Iterator[tuple[object, ...]]:
    return zip(
        scores.left[part],
        scores.right[part],
        scores.genuine[part].astype(np.int8).tolist(),
        scores.fold[part].tolist(),
        # Python floats: `csv` writes their repr, which reads back exactly
        np.asarray(scores.score[part], np.float64).tolist(),
        strict=True,
    )


def read_scores(path: Path) -> Scores:
    """Read a scores file; `left`, `right` and `fold` may be missing, as may a fold's cell.

    A pair with a cell `error` that is not empty is counted, not read. Raises BadData that quotes
    file, line number and cell, or says that the file is not the one its checksum was taken of.
    """
    check_sum(path)
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
            genuine.append(genuine_word(row["genuine"]))
            fold.append(fold_number(row.get("fold", "")))
            score.append(_score(row["score"]))
        except ValueError as error:
            raise BadData(f"{path}: line {line}: {error}") from None
        for side, names in sides.items():
            names.add(row.get(side, ""))
    if not score:
        raise BadData(f"{path}: no scores below the header")
    return Scores(
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
