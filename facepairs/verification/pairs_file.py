"""The pairs that a user lists: CSV `left,right[,genuine][,fold]`, one pair per line.

Names of columns may have capitals, and `genuine` may be empty where it is not known. Semicolons,
tabs or bars may stand for the commas. The file is read line by line, so that one malformed line
does not spoil the others; a quoted cell may hold commas, and begin with blanks, but holds no line
break. Bytes that are not UTF-8 are kept, as file names have them.
"""

import csv
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from facepairs.data.pairs import parse_fold, parse_genuine, separator_of
from facepairs.errors import BadData

SIDES = ("left", "right")
KEPT = ("genuine", "fold")  # columns that are copied to the output
SAME_CONTENT = "same-content"  # in the output, a hint on a pair of a photo and itself or a copy
MAX_NAME = 4096  # characters; no path is longer, and CSV readers refuse huge cells


class ListedPair(NamedTuple):
    """One line of a pairs file.

    Attributes:
        left: Name of an image.
        right: Name of the other image.
        kept: The cells of the file's `kept` columns.
        error: What is wrong with the line; empty when nothing is.
    """

    left: str
    right: str
    kept: tuple[str, ...]
    error: str


class PairsFile:
    """A pairs file; it can be read several times and is never held in memory.

    Attributes:
        path: The file.
        kept: Those of `genuine` and `fold` that it has; other columns are ignored.

    Raises:
        BadData: The file cannot be read, is not a regular file, or lacks a column.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        header = next(self._lines(), "")
        try:
            self._separator = separator_of(header)
            columns = [name.strip().lower() for name in self._cells(header)]
        except csv.Error:
            columns = []
        if not set(SIDES) <= set(columns) or len(set(columns)) != len(columns):
            raise BadData(
                f"{path}: line 1: the header must be left,right or left,right,genuine, and is "
                f"{header.rstrip()[:200]!r}; give a CSV file of pairs, separated by commas"
            )
        self._columns = columns
        self.kept = tuple(name for name in KEPT if name in columns)

    def _lines(self) -> Iterator[str]:
        try:
            if not stat.S_ISREG(self.path.stat().st_mode):
                raise BadData(f"{self.path}: not a regular file; give a CSV file of pairs")
            with open(
                self.path, encoding="utf-8-sig", errors="surrogateescape", newline=""
            ) as handle:
                yield from handle
        except OSError as error:
            raise BadData(
                f"{self.path}: {error.strerror}; give a CSV file with left,right"
            ) from None

    def rows(self) -> Iterator[ListedPair]:
        """Yield the pairs in order, malformed lines included; empty lines are skipped."""
        lines = self._lines()
        next(lines, None)
        for number, line in enumerate(lines, 2):
            if line.strip():
                yield self._parse(number, line)

    def _parse(self, number: int, line: str) -> ListedPair:
        try:
            cells = self._cells(line)
            if len(cells) != len(self._columns):
                width = len(self._columns)
                raise csv.Error(f"{len(cells)} cells, where the header has {width}")
            row = dict(zip(self._columns, cells, strict=True))
            problem = _problem(row)
        except csv.Error as error:
            row = dict(zip(SIDES, line.strip().split(self._separator), strict=False))
            problem = str(error)
        left, right = (row.get(side, "")[:MAX_NAME] for side in SIDES)
        kept = tuple(row.get(name, "") for name in self.kept)
        return ListedPair(left, right, kept, f"line {number}: {problem}" if problem else "")

    def _cells(self, line: str) -> list[str]:
        """Return the cells of a line; blanks around a cell count only within quotes."""
        text, mark = line.rstrip("\r\n"), self._separator
        if '"' in text:
            return next(csv.reader([text], delimiter=mark, strict=True, skipinitialspace=True))
        return [cell.strip(" \t") for cell in text.split(mark)]


def _problem(row: dict[str, str]) -> str:
    """Return what is wrong with the cells of a line, "" when nothing is."""
    for side in SIDES:
        if not row[side].strip():
            return f"{side} is empty"
        if len(row[side]) > MAX_NAME:
            return f"{side} is longer than {MAX_NAME:,} characters"
    try:
        if row.get("genuine", "").strip():  # empty where it is not known
            parse_genuine(row["genuine"])
        parse_fold(row.get("fold", ""))
    except ValueError as error:
        return str(error)
    return ""


def printable(text: str) -> str:
    """Replace bytes that are not UTF-8 by backslash escapes, so that an output is UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
