"""Keep what was found in photos, by their content, so that no photo is searched twice.

One SQLite file serves all folders, processes and threads of a user. It holds nothing that cannot be
found again: a damaged file is made anew, and where a file cannot be used, records are kept in
memory. A pickled copy opens the file anew.
"""

import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec

from facepairs.faces.detector import DETECTOR
from facepairs.faces.photo_record import FORMAT, PhotoRecord

T = TypeVar("T")

FOLDER_VARIABLE = "FACEPAIRS_CACHE"
TIMEOUT_S = 5.0  # for another process that writes
TABLE = "photos (digest BLOB PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID"
REPLACE = "INSERT OR REPLACE INTO photos VALUES (?, ?)"
ADD = "INSERT OR IGNORE INTO photos VALUES (?, ?)"

_log = logging.getLogger(__name__)


class FaceCache:
    """Records of photos by the SHA-256 of their files.

    Args:
        path: The SQLite file, created when it is first needed; None keeps records in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._in_memory = path is None
        self._renewed = False

    def __reduce__(self) -> tuple[type["FaceCache"], tuple[Path | None]]:
        return FaceCache, (self.path,)

    def get(self, digest: bytes) -> PhotoRecord | None:
        """Return the record of a photo, None if there is none or it makes no sense."""
        query = "SELECT record FROM photos WHERE digest = ?"
        row = self._do(lambda database: database.execute(query, (digest,)).fetchone())
        try:
            return msgspec.msgpack.decode(row[0], type=PhotoRecord) if row else None
        except (msgspec.MsgspecError, TypeError, ValueError):
            return None

    def put(self, records: Iterable[PhotoRecord]) -> None:
        """Store records in one transaction; one without faces never replaces another."""
        records = list(records)

        def insert(database: sqlite3.Connection) -> None:
            with database:
                for record in records:
                    command = ADD if record.faces is None else REPLACE
                    database.execute(command, (record.digest, msgspec.msgpack.encode(record)))

        if records:
            self._do(insert)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = None

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` does with the database, or with another where that one fails."""
        with self._lock:
            while True:
                try:
                    if self._database is None:
                        self._open()
                    assert self._database is not None
                    return work(self._database)
                except (sqlite3.Error, OSError) as error:
                    if self._in_memory:
                        raise
                    self._give_up(error)

    def _open(self) -> None:
        if not self._in_memory:
            assert self.path is not None
            self.path.parent.mkdir(parents=True, exist_ok=True)
        place = ":memory:" if self._in_memory else str(self.path)
        self._database = sqlite3.connect(place, timeout=TIMEOUT_S, check_same_thread=False)
        self._database.execute(
            "PRAGMA synchronous = OFF"
        )  # a crash of the system may lose the file
        self._database.execute(f"CREATE TABLE IF NOT EXISTS {TABLE}")

    def _give_up(self, error: Exception) -> None:
        """Delete a damaged file, once; turn to memory where it is busy or cannot be written."""
        self._close()
        assert self.path is not None
        if self._renewed or isinstance(error, sqlite3.OperationalError | OSError):
            self._in_memory = True
            _log.warning("%s: %s; what is found in photos is not kept", self.path, error)
            return
        self._renewed = True
        _log.warning("%s: damaged (%s); it is made anew", self.path, error)
        for path in (self.path.with_name(f"{self.path.name}-journal"), self.path):
            with contextlib.suppress(OSError):
                path.unlink()


def face_cache() -> FaceCache:
    """Return the user's cache: in the folder $FACEPAIRS_CACHE, or the system's place for caches."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        import platformdirs  # not needed by every command

        folder = platformdirs.user_cache_dir("facepairs", appauthor=False)
    return _cache_at(Path(folder) / f"faces-{DETECTOR}-{FORMAT}.sqlite", os.getpid())


@lru_cache
def _cache_at(path: Path, process: int) -> FaceCache:
    return FaceCache(path)
