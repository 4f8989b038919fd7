"""The pairs that a user lists: CSV `left,right[,genuine][,fold]`, one pair a line.

Read line by line, so that one malformed line spoils no other; a cell in quotes may hold commas but
no line break. Bytes that are not UTF-8 are kept, as file names have them.
"""

import csv
import hashlib
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from facepairs.data.pairs import fold_number, genuine_word
from facepairs.errors import BadData

SIDES = ("left", "right")
KEPT = ("genuine", "fold")  # columns that go into the output as they are
MAX_NAME = 4096  # characters; longer paths exist nowhere, and CSV readers refuse huge cells


class Row(NamedTuple):
    """One pair as it was listed: `kept` are the cells of the file's `kept` columns.

    `error` says what is wrong with the line, empty where nothing is.
    """

    left: str
    right: str
    kept: tuple[str, ...]
    error: str


class PairsFile:
    """A pairs file that is read once or more, never held in memory; other columns are passed over.

    `kept` names those of `genuine` and `fold` that it has. Raises BadData for a file that cannot be
    read, is no regular file or has no column left or right.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        header = next(self._lines(), "")
        try:
            columns = _cells(header)
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

    def sha256(self) -> str:
        """Give the SHA-256 (hex) of the file's bytes."""
        try:
            with open(self.path, "rb") as handle:
                return hashlib.file_digest(handle, "sha256").hexdigest()
        except OSError as error:
            raise BadData(f"{self.path}: {error.strerror}; make it readable") from None

    def rows(self) -> Iterator[Row]:
        """Yield the pairs in order, malformed lines included; empty lines are passed over."""
        lines = self._lines()
        next(lines, None)
        for number, line in enumerate(lines, 2):
            if line.strip():
                yield self._row(number, line)

    def _row(self, number: int, line: str) -> Row:
        try:
            cells = _cells(line)
        except csv.Error as error:
            return self._malformed(number, [line.strip()], str(error))
        if len(cells) != self._columns:
            return self._malformed(
                number, cells, f"{len(cells)} cells, where the header has {self._columns}"
            )
        left, right = (cells[at] for at in self._sides)
        kept = tuple([cells[at] for at in self._kept])
        wrong = _what_is_wrong(left, right, dict(zip(self.kept, kept, strict=True)))
        told = f"line {number}: {wrong}" if wrong else ""
        return Row(left[:MAX_NAME], right[:MAX_NAME], kept, told)

    def _malformed(self, number: int, cells: list[str], what: str) -> Row:
        left, right = [cell[:MAX_NAME] for cell in (*cells, "", "")[:2]]
        return Row(left, right, ("",) * len(self.kept), f"line {number}: {what}")


def _cells(line: str) -> list[str]:
    text = line.rstrip("\r\n")
    return next(csv.reader([text], strict=True)) if '"' in text else text.split(",")


def _what_is_wrong(left: str, right: str, kept: dict[str, str]) -> str:
    for side, name in zip(SIDES, (left, right), strict=True):
        if not name.strip():
            return f"{side} is empty"
        if len(name) > MAX_NAME:
            return f"{side} is longer than {MAX_NAME:,} characters"
    try:
        if "genuine" in kept:
            genuine_word(kept["genuine"])
        fold_number(kept.get("fold", ""))
    except ValueError as error:
        return str(error)
    return ""


def printable(text: str) -> str:
    """Write bytes that are no UTF-8 as backslash escapes, so that an output is UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
