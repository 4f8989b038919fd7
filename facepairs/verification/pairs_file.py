"""The pairs that a user lists: CSV `left,right[,genuine][,fold]`, one pair per line.

The file is read line by line, so that one malformed line does not spoil the others; a quoted cell
may hold commas but no line break. Bytes that are not UTF-8 are kept, as file names have them.
"""

import csv
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from facepairs.data.pairs import parse_fold, parse_genuine
from facepairs.errors import BadData

SIDES = ("left", "right")
KEPT = ("genuine", "fold")  # columns that are copied to the output
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
            columns = _split_cells(header)
        except csv.Error:
            columns = []
        if not set(SIDES) <= set(columns) or len(set(columns)) != len(columns):
            raise BadData(
                f"{path}: line 1: the header must be left,right or left,right,genuine, and is "
                f"{header.rstrip()[:200]!r}"
            )
        self._columns = len(columns)
        self._sides = [columns.index(side) for side in SIDES]
        self.kept = tuple(name for name in KEPT if name in columns)
        self._kept = [columns.index(name) for name in self.kept]

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
            cells = _split_cells(line)
        except csv.Error as error:
            return self._malformed(number, [line.strip()], str(error))
        if len(cells) != self._columns:
            return self._malformed(
                number, cells, f"{len(cells)} cells, where the header has {self._columns}"
            )
        left, right = (cells[at] for at in self._sides)
        kept = tuple([cells[at] for at in self._kept])
        problem = _problem(left, right, dict(zip(self.kept, kept, strict=True)))
        problem = f"line {number}: {problem}" if problem else ""
        return ListedPair(left[:MAX_NAME], right[:MAX_NAME], kept, problem)

    def _malformed(self, number: int, cells: list[str], problem: str) -> ListedPair:
        left, right = [cell[:MAX_NAME] for cell in (*cells, "", "")[:2]]
        return ListedPair(left, right, ("",) * len(self.kept), f"line {number}: {problem}")


def _split_cells(line: str) -> list[str]:
    text = line.rstrip("\r\n")
    return next(csv.reader([text], strict=True)) if '"' in text else text.split(",")


def _problem(left: str, right: str, kept: dict[str, str]) -> str:
    """Return what is wrong with the cells of a line, "" when nothing is."""
    for side, name in zip(SIDES, (left, right), strict=True):
        if not name.strip():
            return f"{side} is empty"
        if len(name) > MAX_NAME:
            return f"{side} is longer than {MAX_NAME:,} characters"
    try:
        if "genuine" in kept:
            parse_genuine(kept["genuine"])
        parse_fold(kept.get("fold", ""))
    except ValueError as error:
        return str(error)
    return ""


def printable(text: str) -> str:
    """Replace bytes that are not UTF-8 by backslash escapes, so that an output is UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
