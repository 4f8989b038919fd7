"""The gallery's file: names, embeddings, hashes of photos and dates in one SQLite database.

SQLite's write-ahead log lets other processes read while one writes, and a transaction that was
committed survives a kill. Only its owner may read the file. What is deleted is overwritten. With a
passphrase, names, embeddings and hashes are encrypted; dates, the model and how many people there
are can be read.
"""

import contextlib
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from facepairs.errors import BadData
from facepairs.gallery.encryption import (
    Passphrase,
    PlainValues,
    check_new_passphrase,
    new_encryption,
    open_encryption,
)
from facepairs.gallery.identity import ModelIdentity
from facepairs.gallery.vectors import STORED, Vectors
from facepairs.verification.scorer import ScoreArray

APPLICATION_ID, VERSION = 0x66616365, 2  # of SCHEMA; the former spells "face"
TIMEOUT_S = 30.0  # for another process that writes
ROWS_PER_READ = 4096
DAY_S = 86_400
NAME, PHOTO = b"name", b"photo"  # contexts of encrypted values
SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE model (sha256 TEXT NOT NULL, name TEXT NOT NULL, alignment TEXT NOT NULL,
    width INTEGER NOT NULL);
CREATE TABLE encryption (salt BLOB NOT NULL, probe BLOB NOT NULL);
CREATE TABLE people (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);
CREATE TABLE photos (id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES people,
    sha256 BLOB NOT NULL UNIQUE, vector BLOB NOT NULL, checksum INTEGER NOT NULL,
    added INTEGER NOT NULL, expires INTEGER);
CREATE INDEX photos_of_person ON photos (person);
CREATE VIEW live AS SELECT photos.*, name FROM photos JOIN people ON people.id = person
    WHERE expires IS NULL OR expires > CAST(strftime('%s', 'now') AS INTEGER);
PRAGMA application_id = 0x66616365;
PRAGMA user_version = 2;
"""  # times are whole seconds since 1970
OWNER = "SELECT name FROM photos JOIN people ON people.id = person WHERE sha256 = ?"


class NewPhoto(NamedTuple):
    """A photo to enrol: whose it is, the SHA-256 of its file, and float32[D]."""

    person: str
    digest: bytes
    vector: ScoreArray


class Person(msgspec.Struct, frozen=True, order=True):
    """Somebody who is enrolled: since when and until when, in UTC; without an end, for ever."""

    name: str
    photos: int
    added: datetime
    expires: datetime | None


class GalleryStore:
    """An open gallery file; thread-safe.

    Args:
        path: The file.
        write: Open it to be changed: it is made if it is missing, and expired photos are removed.
        passphrase: Of an encrypted gallery; a new one is encrypted if this is a text.

    Raises:
        BadData: The file is missing, damaged, no gallery, encrypted otherwise, or cannot be opened.
        BadConfig: The passphrase of a new gallery is empty.
    """

    def __init__(self, path: Path, write: bool = False, passphrase: Passphrase = None) -> None:
        self.path = path
        self._values = PlainValues()
        self._lock = threading.RLock()
        if not write and not path.is_file():
            raise BadData(
                f"{path}: no such gallery; make one: facepairs gallery add {path} NAME PHOTO"
            )
        if write and isinstance(passphrase, str):
            check_new_passphrase(passphrase)  # before there is a file
        with self._errors_named():
            if write:
                path.parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
            self._database = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={'rw' if write else 'ro'}",
                uri=True,
                timeout=TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._prepare(write, passphrase)
            except BaseException:
                self._database.close()
                raise

    def _prepare(self, write: bool, passphrase: Passphrase) -> None:
        if write and not self._value("SELECT count(*) FROM sqlite_master"):
            new = new_encryption(passphrase) if isinstance(passphrase, str) else None
            self._value("PRAGMA journal_mode = WAL")
            try:
                self._database.executescript(SCHEMA)
                if new:
                    self._database.execute("INSERT INTO encryption VALUES (?, ?)", new[1:])
                self._database.execute("COMMIT")
            except sqlite3.OperationalError:  # another process made it at the same time
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
        if self._value("PRAGMA application_id") != APPLICATION_ID:
            raise BadData(f"{self.path}: not a gallery of facepairs; give another file")
        if self._value("PRAGMA user_version") != VERSION:
            raise BadData(f"{self.path}: of another version of facepairs; enrol the photos again")
        encryption = self._database.execute("SELECT * FROM encryption").fetchone()
        if encryption:
            self._values = open_encryption(self.path, passphrase, *encryption)
        elif isinstance(passphrase, str):
            raise BadData(f"{self.path}: not encrypted; give no passphrase, or make a new gallery")
        if write:
            for pragma in ("secure_delete = ON", "synchronous = FULL", "foreign_keys = ON"):
                self._value(f"PRAGMA {pragma}")
            self._forget_expired()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def model(self) -> ModelIdentity | None:
        """Return the model that made the embeddings; None before the first."""
        with self._errors_named():
            row = self._database.execute("SELECT * FROM model").fetchone()
        return ModelIdentity(*row) if row else None

    def set_model(self, model: ModelIdentity) -> None:
        """Record the model, unless there is one already."""
        with self._transaction() as database:
            if not self._value("SELECT count(*) FROM model"):
                row = (model.sha256, model.name, model.alignment, model.width)
                database.execute("INSERT INTO model VALUES (?, ?, ?, ?)", row)

    def version(self) -> int:
        """Return a number that changes when another connection changes the file."""
        with self._errors_named():
            return int(self._value("PRAGMA data_version"))

    def owner(self, digest: bytes) -> str | None:
        """Return who is enrolled with the photo of a SHA-256."""
        with self._errors_named():
            row = self._database.execute(OWNER, (self._values.seal(digest, PHOTO),)).fetchone()
            return self._name(row[0]) if row else None

    def put(self, photos: Iterable[NewPhoto], forget_after: float | None) -> list[str | None]:
        """Add photos in one transaction, which is on disk when this returns.

        Args:
            photos: The photos.
            forget_after: Days until they expire; None for never.

        Returns:
            For each photo None, or who is enrolled with it already: then it was not added.
        """
        now = now_s()
        expires = None if forget_after is None else now + round(forget_after * DAY_S)
        owners: list[str | None] = []
        with self._transaction() as database:
            for name, digest, vector in photos:
                owners.append(self.owner(digest))
                if owners[-1] is not None:
                    continue
                whose = self._values.seal(name.encode(), NAME)
                key = self._values.seal(digest, PHOTO)
                blob = self._values.seal(vector.astype(STORED).tobytes(), whose, key)
                database.execute("INSERT OR IGNORE INTO people (name) VALUES (?)", (whose,))
                database.execute(
                    "INSERT INTO photos (person, sha256, vector, checksum, added, expires) "
                    "SELECT id, ?, ?, ?, ?, ? FROM people WHERE name = ?",
                    (key, blob, _checksum(whose, key, blob), now, expires, whose),
                )
        return owners

    def remove(self, name: str) -> int:
        """Remove a person; return the number of photos removed, 0 for somebody unknown."""
        query = "DELETE FROM photos WHERE person = (SELECT id FROM people WHERE name = ?)"
        whose = self._values.seal(name.encode(), NAME)
        with self._transaction() as database:
            removed = database.execute(query, (whose,)).rowcount
            database.execute("DELETE FROM people WHERE name = ?", (whose,))
        if removed:
            self._erase()
        return removed

    def _forget_expired(self) -> None:
        with self._transaction() as database:
            expired = "DELETE FROM photos WHERE id NOT IN (SELECT id FROM live)"
            removed = database.execute(expired).rowcount
            if removed:
                empty = "DELETE FROM people WHERE id NOT IN (SELECT person FROM photos)"
                database.execute(empty)
        if removed:
            self._erase()

    def _erase(self) -> None:
        """Leave no trace of deleted rows, neither in the file nor in its log."""
        with self._errors_named():
            self._database.execute("VACUUM")
            busy = self._value("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:
            raise BadData(
                f"{self.path}: removed, but another process keeps reading the file; its log has "
                "the old bytes until the gallery is changed again"
            )

    def people(self) -> list[Person]:
        """Return everybody who is enrolled and not expired, by name."""
        query = (
            "SELECT name, count(*), min(added), max(expires), count(expires) FROM live "
            "GROUP BY person"
        )
        with self._errors_named():
            rows = self._database.execute(query).fetchall()
            people = [
                Person(
                    self._name(name),
                    photos,
                    _date(added),
                    _date(expires) if dated == photos else None,
                )
                for name, photos, added, expires, dated in rows
            ]
        return sorted(people)

    def load(self) -> Vectors:
        """Return the embeddings of everybody who is enrolled and not expired."""
        with self._errors_named():
            self._database.execute("BEGIN")  # one state of the file for all queries
            try:
                model = self.model()
                count, until = self._database.execute(
                    "SELECT count(*), min(expires) FROM live"
                ).fetchone()
                vectors = Vectors(model.width if model else 0, count, until)
                rows = self._database.execute("SELECT name, sha256, vector FROM live")
                while part := rows.fetchmany(ROWS_PER_READ):
                    blobs = [self._values.open(vector, *context) for *context, vector in part]
                    values = np.frombuffer(b"".join(blobs), STORED).reshape(len(part), -1)
                    vectors.append([self._name(row[0]) for row in part], values)
            finally:
                self._database.execute("COMMIT")
        return vectors

    def rows(self) -> Iterator[tuple[str, bytes, bytes, int]]:
        """Yield person, SHA-256, vector and date of enrolment of each live photo."""
        query = "SELECT name, sha256, vector, added FROM live"
        with self._errors_named():
            for name, key, vector, added in self._database.execute(query):
                digest = self._values.open(key, PHOTO)
                yield self._name(name), digest, self._values.open(vector, name, key), added

    def problems(self) -> list[str]:
        """Return what is damaged: nothing for a file as it was written."""
        with self._errors_named():
            found = [str(row[0]) for row in self._database.execute("PRAGMA integrity_check")]
            if found != ["ok"]:
                return found
            orphans = len(self._database.execute("PRAGMA foreign_key_check").fetchall())
        found = [f"{orphans} photos of nobody"] if orphans else []
        model = self.model()
        size = np.dtype(STORED).itemsize * (model.width if model else 0)
        query = "SELECT name, sha256, vector, checksum FROM live"
        with self._errors_named():
            for name, key, sealed, checksum in self._database.execute(query):
                is_sound = _checksum(name, key, sealed) == checksum
                if not is_sound or len(self._values.open(sealed, name, key)) != size:
                    found.append(f"a photo of {self._name(name)} is not what was written")
        return found

    def _name(self, sealed: bytes) -> str:
        return self._values.open(sealed, NAME).decode()

    def _value(self, query: str) -> int:
        row = self._database.execute(query).fetchone()
        return row[0] if row else 0

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._errors_named():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def _damaged(self, why: object) -> BadData:
        return BadData(
            f"{self.path}: damaged, or not a gallery ({why}); restore a copy, or enrol the photos "
            "again"
        )

    @contextlib.contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Turn errors of SQLite and of the system into BadData that names the file."""
        try:
            with self._lock:
                yield
        except OSError as error:
            raise BadData(f"cannot write {self.path}: {error.strerror}; choose another") from None
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise BadData(f"{self.path}: in use by another process; try again") from None
            if code == sqlite3.SQLITE_FULL:
                raise BadData(f"{self.path}: no space left; free some and try again") from None
            if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
                raise BadData(f"{self.path}: {error}; give a file that can be written") from None
            raise self._damaged(error) from None
        except (ValueError, TypeError) as error:  # what was read has another form or length
            raise self._damaged(error) from None


def _checksum(name: bytes, digest: bytes, vector: bytes) -> int:
    return zlib.crc32(name + digest + vector)


def now_s() -> int:
    """Return the time in whole seconds since 1970."""
    return int(datetime.now(UTC).timestamp())


def _date(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
