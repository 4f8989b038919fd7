"""The distinct images of a list of pairs, numbered in the order in which they are added.

Names and errors lie in a temporary SQLite database of which some megabytes are in memory, so that
neither many images nor many errors take more. SQLite creates it in $SQLITE_TMPDIR or else in the
system's folder for temporary files; it has no name there and goes with the process.
"""

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from facepairs.errors import BadData

CACHE_MB = 32
TABLES = (
    "CREATE TABLE names (number INTEGER PRIMARY KEY, name BLOB UNIQUE)",
    "CREATE TABLE errors (number INTEGER PRIMARY KEY, error BLOB)",
)


class ImageTable(Sequence[str]):
    """Names by number from 0, and errors by number; thread-safe.

    Raises:
        BadData: There is no room for the database.
    """

    def __init__(self) -> None:
        import sqlite3  # only lists of pairs need it

        self._disk_full_error = sqlite3.OperationalError
        self._lock = threading.Lock()
        # Nobody else reads it and it ends with this process: no journal, one open transaction.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        settings = ("journal_mode = OFF", "synchronous = OFF", f"cache_size = {-1024 * CACHE_MB}")
        for line in (*(f"PRAGMA {setting}" for setting in settings), *TABLES, "BEGIN"):
            self._database.execute(line)

    def __len__(self) -> int:
        return self._query("SELECT max(number) FROM names") or 0

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        name = self._query("SELECT name FROM names WHERE number = ?", at + 1)
        if name is None:
            raise IndexError(at)
        return os.fsdecode(name)

    def add(self, names: Iterable[str]) -> None:
        """Number those names that are new."""
        rows = [(os.fsencode(name),) for name in names]
        self._write("INSERT OR IGNORE INTO names (name) VALUES (?)", rows)

    def number(self, name: str) -> int:
        """Return the number of a name; raise KeyError when it was never added."""
        number = self._query("SELECT number FROM names WHERE name = ?", os.fsencode(name))
        if number is None:
            raise KeyError(name)
        return int(number) - 1

    def add_errors(self, errors: Mapping[int, str]) -> None:
        """Store what is wrong with some images, by number."""
        rows = [(number, os.fsencode(error)) for number, error in errors.items()]
        self._write("INSERT OR REPLACE INTO errors VALUES (?, ?)", rows)

    def error(self, number: int) -> str:
        """Return what is wrong with an image, "" when nothing is."""
        return os.fsdecode(self._query("SELECT error FROM errors WHERE number = ?", number) or b"")

    @property
    def failed(self) -> int:
        """The number of images that have an error."""
        return int(self._query("SELECT count(*) FROM errors"))

    def _query(self, query: str, *values: object) -> Any:
        """Return the first value of the first row, or None."""
        with self._lock:
            row = self._database.execute(query, values).fetchone()
        return row[0] if row else None

    def _write(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        try:
            with self._lock:
                self._database.executemany(statement, rows)
        except self._disk_full_error as error:
            raise BadData(
                f"no room for the names of the images ({error}); free space in the folder for "
                "temporary files, or set SQLITE_TMPDIR to another folder"
            ) from None
