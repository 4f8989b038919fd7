"""Keep what was found in photos, by their content, so that no photo is searched twice.

One SQLite file serves all folders, processes and threads of a user. It holds nothing that cannot be
found again: what is damaged or not ours is replaced, and where nothing can be written, records are
kept in memory. A copy in another process (pickled or forked) opens the file anew.
"""

import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from facepairs.errors import BadData
from facepairs.faces.detector import DETECTOR
from facepairs.faces.photo_record import PhotoRecord, decode_record, encode_record

T = TypeVar("T")

FOLDER_VARIABLE = "FACEPAIRS_CACHE"
TIMEOUT_S = 30.0  # for another process that writes
TABLE = "CREATE TABLE photos (digest BLOB PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID"

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
        self._process = 0

    def __reduce__(self) -> tuple[type["FaceCache"], tuple[Path | None]]:
        return FaceCache, (self.path,)

    def get(self, digest: bytes) -> PhotoRecord | None:
        """Return the record of a photo, None if there is none or it is damaged."""
        query = "SELECT record FROM photos WHERE digest = ?"
        rows = self._try(lambda database: database.execute(query, (digest,)).fetchall())
        try:
            record = decode_record(bytes(rows[0][0])) if rows else None
        except (BadData, TypeError):
            return None
        return record if record and record.digest == digest else None

    def put(self, records: Iterable[PhotoRecord]) -> None:
        """Store records in one transaction; they survive a kill."""
        rows = [(record.digest, encode_record(record)) for record in records]
        if rows:
            self._try(lambda database: _insert(database, rows))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._database is not None and self._process == os.getpid():
                self._database.close()
            self._database = None

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return what `work` does with the database, None where that fails."""
        with self._lock:
            try:
                return work(self._opened())
            except sqlite3.OperationalError as error:  # busy, read-only or a full disk
                _log.warning("%s: %s; photos are searched again next time", self.path, error)
            except sqlite3.DatabaseError as error:
                _log.warning("%s: damaged (%s); rebuilding it", self.path, error)
                self._database = _rebuild(self.path)
            return None

    def _opened(self) -> sqlite3.Connection:
        """Return this process's connection; one that was inherited by a fork is left alone."""
        if self._database is None or self._process != os.getpid():
            self._database, self._process = _open(self.path), os.getpid()
        return self._database


def face_cache() -> FaceCache:
    """Return the user's cache: in the folder $FACEPAIRS_CACHE, or the system's place for caches."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        import platformdirs  # not needed by every command

        folder = platformdirs.user_cache_dir("facepairs", appauthor=False)
    return _cache_at(Path(folder) / f"faces-{DETECTOR}.sqlite")


@lru_cache
def _cache_at(path: Path) -> FaceCache:
    return FaceCache(path)


def _open(path: Path | None) -> sqlite3.Connection:
    """Open the file; rebuild a damaged or foreign one, and use memory where it cannot be opened."""
    if path is None:
        return _connect(":memory:")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _connect(path)
    except (sqlite3.OperationalError, OSError) as error:
        return _in_memory(path, error)
    except sqlite3.DatabaseError as error:
        _log.warning("%s: not a cache of photos (%s); rebuilding it", path, error)
        return _rebuild(path)


def _in_memory(path: Path | None, error: Exception) -> sqlite3.Connection:
    _log.warning("%s: %s; what is found in photos is not kept", path, error)
    return _connect(":memory:")


def _connect(path: Path | str) -> sqlite3.Connection:
    """Open a database and create its table; raise sqlite3.DatabaseError if it is not ours."""
    database = sqlite3.connect(
        path, timeout=TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    with contextlib.ExitStack() as stack:
        stack.callback(database.close)
        if not _tables(database):
            database.execute("PRAGMA synchronous = OFF")  # a crash of the system may lose the file
            with _transaction(database):
                if not _tables(database):  # no other process came first
                    database.execute(TABLE)
        if _tables(database) != [TABLE]:
            raise sqlite3.DatabaseError("it has other tables")
        database.execute("PRAGMA synchronous = OFF")
        stack.pop_all()
    return database


def _tables(database: sqlite3.Connection) -> list[str]:
    return [sql for (sql,) in database.execute("SELECT sql FROM sqlite_master")]


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _insert(database: sqlite3.Connection, rows: list[tuple[bytes, bytes]]) -> None:
    with _transaction(database):
        database.executemany("INSERT OR REPLACE INTO photos VALUES (?, ?)", rows)


def _rebuild(path: Path | None) -> sqlite3.Connection:
    """Replace a damaged file, unless another process has done so already."""
    from filelock import FileLock

    if path is None:
        return _connect(":memory:")
    try:
        with FileLock(path.with_name(f"{path.name}.lock"), timeout=TIMEOUT_S):
            with contextlib.suppress(sqlite3.DatabaseError):
                database = _connect(path)
                if database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]:
                    return database
                database.close()
            path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
            path.unlink()
            return _connect(path)
    except (sqlite3.Error, OSError, NotImplementedError) as error:
        return _in_memory(path, error)
