"""Keep what was found in photos, by their content, so that no photo is searched or embedded twice.

One SQLite file serves all folders, processes and threads of a user, and only the user may read it:
embeddings are biometric data. It holds nothing that cannot be found again: a damaged file is
recreated, and if a file cannot be used, this process keeps what it finds in memory. A pickled copy
opens the file again.
"""

import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.choices import NO_PHOTO_CACHE, PHOTO_CACHE
from facepairs.errors import BadData
from facepairs.photos.photo_record import PhotoRecord, record_kind

T = TypeVar("T")
Embedding = npt.NDArray[np.float32]

TIMEOUT_S = 30.0  # for other processes that write
MARK = 0x46506361  # SQLite's application id: a file without it is not ours
MAGIC, MARK_AT = b"SQLite format 3\0", slice(68, 72)  # in the header of a SQLite file
TABLES = (
    f"PRAGMA application_id = {MARK}",
    """CREATE TABLE IF NOT EXISTS photos (
        kind TEXT, digest BLOB, record BLOB NOT NULL, PRIMARY KEY (kind, digest)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS embeddings (
        network BLOB, digest BLOB, face INTEGER, embedding BLOB NOT NULL,
        PRIMARY KEY (network, digest, face)
    ) WITHOUT ROWID""",
)
STORED = np.dtype("<f4")
MOST_PX = 1e6  # a landmark may lie outside of its photo, but near it

_log = logging.getLogger(__name__)


class PhotoCache:
    """Records and embeddings of photos by the SHA-256 of their files; for any number of threads.

    Args:
        path: The SQLite file, created when it is first needed; None keeps everything in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._in_memory = path is None
        self._renewed = False

    def __reduce__(self) -> tuple[type["PhotoCache"], tuple[Path | None]]:
        return PhotoCache, (self.path,)

    def __del__(self) -> None:
        self._close()  # Python 3.13 warns of a database that was not closed

    def record(self, digest: bytes, aligned: bool) -> PhotoRecord | None:
        """Return the record of a photo, None if there is none or it makes no sense.

        Args:
            digest: The SHA-256 of its file.
            aligned: Whether faces were looked for.
        """
        query = "SELECT record FROM photos WHERE kind = ? AND digest = ?"
        data = self._value(query, record_kind(aligned), digest)
        try:
            return None if data is None else _DECODER.decode(data)
        except (msgspec.MsgspecError, TypeError, ValueError):
            return None

    def embedding(self, network: bytes, digest: bytes, face: int = 1) -> Embedding | None:
        """Return a face's embedding, float32[D]; None if there is none or it makes no sense.

        Args:
            network: What `put` was given.
            digest: The SHA-256 of the photo's file.
            face: Which of the faces that are large enough, from 1 for the most prominent.
        """
        query = "SELECT embedding FROM embeddings WHERE network = ? AND digest = ? AND face = ?"
        data = self._value(query, network, digest, face)
        if not isinstance(data, bytes) or len(data) % STORED.itemsize:
            return None
        values: Embedding = np.frombuffer(data, STORED).astype(np.float32)
        return values if np.isfinite(values).all() else None

    def put(
        self,
        records: Iterable[PhotoRecord],
        network: bytes = b"",
        embeddings: Mapping[tuple[bytes, int], Embedding] | None = None,
    ) -> None:
        """Store what was found in some photos, in one transaction.

        Args:
            records: Of photos that were read.
            network: Names the network and everything else that decides an embedding.
            embeddings: float32[D] by the SHA-256 of the photo's file and the number of the face.
        """
        rows = [
            (record_kind(record.faces is not None), record.digest, _ENCODER.encode(record))
            for record in records
        ]
        vectors = [
            (network, *face, values.astype(STORED).tobytes())
            for face, values in (embeddings or {}).items()
        ]

        def insert(database: sqlite3.Connection) -> None:
            with database:
                database.executemany("INSERT OR REPLACE INTO photos VALUES (?, ?, ?)", rows)
                database.executemany(
                    "INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?, ?)", vectors
                )

        if rows or vectors:
            self._do(insert)

    def forget(self) -> bool:
        """Delete everything that was kept; return whether there was a file.

        Raises:
            BadData: The file cannot be deleted, or is something else.
        """
        with self._lock:
            self._close()
            if self.path is None:
                return False
            try:
                self.path.stat()
                if not is_own(self.path):
                    raise BadData(f"{self.path}: not deleted: not a photo cache, or unreadable")
                _delete(self.path)
            except FileNotFoundError:
                return False
            except OSError as error:
                raise BadData(f"{self.path}: not deleted: {error.strerror}") from None
            return True

    def _value(self, query: str, *keys: object) -> bytes | None:
        row = self._do(lambda database: database.execute(query, keys).fetchone())
        return row[0] if row else None

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = None

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the database, or on one in memory if that fails; return its result."""
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
            _prepare(self.path)
        place = ":memory:" if self._in_memory else str(self.path)
        self._database = sqlite3.connect(place, timeout=TIMEOUT_S, check_same_thread=False)
        # A crash of the system, not of a process, may damage the file.
        self._database.execute("PRAGMA synchronous = OFF")
        (mark,) = self._database.execute("PRAGMA application_id").fetchone()
        if mark != MARK:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                for statement in TABLES:
                    self._database.execute(statement)

    def _give_up(self, error: Exception) -> None:
        """Delete a damaged file, once; turn to memory where it is busy or cannot be written."""
        self._close()
        assert self.path is not None
        if self._renewed or isinstance(error, sqlite3.OperationalError | OSError):
            self._in_memory = True
            reason = getattr(error, "strerror", None) or error
            _log.warning("%s: %s; photos are not remembered", self.path, reason)
            return
        self._renewed = True
        _log.warning("%s: damaged (%s); recreated", self.path, error)
        with contextlib.suppress(OSError):
            _delete(self.path)


def _landmarks(kind: object, values: Any) -> npt.NDArray[np.float64]:
    """Return the landmarks of a face; raise ValueError if they are impossible."""
    points = np.array(values, np.float64).reshape(5, 2)
    if not (np.abs(points) < MOST_PX).all():  # false for NaN, too
        raise ValueError("landmarks are outside of any photo")
    return points


_ENCODER = msgspec.msgpack.Encoder(enc_hook=np.ndarray.tolist)
_DECODER = msgspec.msgpack.Decoder(PhotoRecord, dec_hook=_landmarks)


def _prepare(path: Path) -> None:
    """Create an empty file that only the user may read; raise OSError for another user's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if not is_own(path):
        raise OSError(0, "no photo cache of facepairs")
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def is_own(path: Path) -> bool:
    """Return whether a file may be written or deleted as a cache of photos: it is one, or empty."""
    try:
        if not path.is_file():  # opening a pipe could block
            return False
        with open(path, "rb") as handle:
            head = handle.read(MARK_AT.stop)
    except OSError:
        return False
    return not head or (head.startswith(MAGIC) and head[MARK_AT] == MARK.to_bytes(4))


def _delete(path: Path) -> None:
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
    path.unlink()


def photo_cache() -> PhotoCache:
    """Return this process' cache: $FACEPAIRS_PHOTO_CACHE, or a file in the user's cache folder.

    With $FACEPAIRS_NO_PHOTO_CACHE it is in memory.

    Raises:
        BadData: $FACEPAIRS_PHOTO_CACHE is another file.
    """
    path = None if os.environ.get(NO_PHOTO_CACHE) else cache_file()
    return _cache_at(path, os.getpid())


def cache_file() -> Path:
    """Return the file in which photos are remembered."""
    chosen = os.environ.get(PHOTO_CACHE)
    if chosen:
        file = Path(chosen)
        known = os.path.exists(file)  # noqa: PTH110 - false, not an error, where one may not look
        if known and not is_own(file):
            raise BadData(f"{file}: not a photo cache; give another file, or the name of a new one")
        return file
    import platformdirs  # not needed by every command

    return Path(platformdirs.user_cache_dir("facepairs", appauthor=False), "photos.sqlite")


@lru_cache
def _cache_at(path: Path | None, process: int) -> PhotoCache:
    return PhotoCache(path)
