"""The distinct images of a list of pairs, numbered as they come, and what is wrong with them.

They lie in a temporary SQLite database, of which memory holds some megabytes, so that neither many
images nor many errors take more. SQLite puts it into $SQLITE_TMPDIR or else where the system keeps
temporary files; it has no name there and goes with the process, however that ends.
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
    """Names by number from 0, in the order in which they were added, and errors by number.

    Any thread may ask. Raises BadData where there is no room for them.
    """

    def __init__(self) -> None:
        import sqlite3  # only lists of pairs need it

        self._full = sqlite3.OperationalError
        self._lock = threading.Lock()
        # Nobody else sees it and nothing outlives us: no journal, one transaction without end.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        settings = ("journal_mode = OFF", "synchronous = OFF", f"cache_size = {-1024 * CACHE_MB}")
        for line in (*(f"PRAGMA {setting}" for setting in settings), *TABLES, "BEGIN"):
            self._database.execute(line)

    def __len__(self) -> int:
        return self._one("SELECT max(number) FROM names") or 0

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        name = self._one("SELECT name FROM names WHERE number = ?", at + 1)
        if name is None:
            raise IndexError(at)
        return os.fsdecode(name)

    def add(self, names: Iterable[str]) -> None:
        """Number those of some names that are new."""
        rows = [(os.fsencode(name),) for name in names]
        self._write("INSERT OR IGNORE INTO names (name) VALUES (?)", rows)

    def number(self, name: str) -> int:
        """Give the number of a name; raises KeyError where it was never added."""
        found = self._one("SELECT number FROM names WHERE name = ?", os.fsencode(name))
        if found is None:
            raise KeyError(name)
        return int(found) - 1

    def fail(self, errors: Mapping[int, str]) -> None:
        """Keep what is wrong with some images, by number."""
        rows = [(number, os.fsencode(error)) for number, error in errors.items()]
        self._write("INSERT OR REPLACE INTO errors VALUES (?, ?)", rows)

    def error(self, number: int) -> str:
        """Give what is wrong with an image, "" where nothing is."""
        return os.fsdecode(self._one("SELECT error FROM errors WHERE number = ?", number) or b"")

    @property
    def failed(self) -> int:
        """How many images something is wrong with."""
        return int(self._one("SELECT count(*) FROM errors"))

    def _one(self, question: str, *given: object) -> Any:
        with self._lock:
            row = self._database.execute(question, given).fetchone()
        return row[0] if row else None

    def _write(self, line: str, rows: list[tuple[Any, ...]]) -> None:
        try:
            with self._lock:
                self._database.executemany(line, rows)
        except self._full as error:
            raise BadData(
                f"no room for the names of the images ({error}); free space where the system "
                "keeps temporary files, or let SQLITE_TMPDIR name another folder"
            ) from None
