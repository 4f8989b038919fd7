"""The SQL tables of a gallery: names, embeddings, hashes of photos and dates.

With a passphrase, names, embeddings and hashes are encrypted; dates, the model and the number of
people are not.
"""

import abc
import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.scorer import ScoreArray
from facepairs.errors import BadData, BadGallery
from facepairs.gallery.encryption import (
    Passphrase,
    PlainValues,
    check_new_passphrase,
    new_encryption,
    open_encryption,
)
from facepairs.gallery.identity import ModelIdentity
from facepairs.gallery.vectors import STORED, Vectors

VERSION = 5  # of the tables
ROWS_PER_READ = 4096
DAY_S = 86_400
NAME, PHOTO = b"name", b"photo"  # contexts of encrypted values
# In both kinds of SQL; times are whole seconds since 1970.
TABLES = """
CREATE TABLE state (version INTEGER NOT NULL);
CREATE TABLE model (sha256 TEXT NOT NULL, name TEXT NOT NULL, alignment TEXT NOT NULL,
    width INTEGER NOT NULL);
CREATE TABLE encryption (salt BYTEA NOT NULL, probe BYTEA NOT NULL);
CREATE TABLE photos (sha256 BYTEA PRIMARY KEY, name BYTEA NOT NULL, vector BYTEA NOT NULL,
    added BIGINT NOT NULL, expires BIGINT);
CREATE INDEX photos_of_person ON photos (name);
CREATE VIEW live AS SELECT * FROM photos WHERE expires IS NULL OR expires > {now}"""
PEOPLE = "SELECT name, count(*), min(added), max(expires), count(expires) FROM live GROUP BY name"


class NewFace(NamedTuple):
    """A face to enrol: the person, the SHA-256 of the photo, and the embedding, float32[D]."""

    person: str
    digest: bytes
    vector: ScoreArray


class StoredFace(NamedTuple):
    """An enrolled face; `expires` is in seconds since 1970, None for never."""

    person: str
    digest: bytes
    vector: npt.NDArray[Any]
    expires: int | None


class Person(msgspec.Struct, frozen=True, order=True):
    """An enrolled person, with the dates of enrolment and expiry in UTC; None for no expiry."""

    name: str
    photos: int
    added: datetime
    expires: datetime | None


class SqlStore(abc.ABC):
    """The tables of an open gallery, in SQL; thread-safe.

    Every method raises BadGallery, with the place, if the gallery cannot be read or written.

    Args:
        place: The gallery, for messages.
        write: Whether it may be changed.
        passphrase: The passphrase of a new gallery, if it is a text.
    """

    BEGIN_READING: str
    BEGIN_WRITING: str
    NOW: str  # the database's clock in seconds since 1970
    ERASE = ""  # overwrites what was deleted
    MORE_TABLES: tuple[str, ...] = ()  # statements of one kind of SQL

    def __init__(self, place: str, write: bool, passphrase: Passphrase) -> None:
        if write and isinstance(passphrase, str):
            check_new_passphrase(passphrase)  # before there are tables
        self.place = place
        self._write, self._is_closed = write, False
        self._process = os.getpid()
        self._values = PlainValues()
        self._encryption: tuple[bytes, bytes] | None = None
        self._lock = threading.RLock()

    @abc.abstractmethod
    def close(self) -> None:
        """Close it."""

    @abc.abstractmethod
    def version(self) -> int:
        """Return a number that changes when another connection changes the tables."""

    @abc.abstractmethod
    def _exists(self) -> bool:
        """Return, in a transaction, whether there are tables already."""

    @abc.abstractmethod
    def _run(self, query: str, *values: object) -> Any:
        """Run a query with a value for each `?`; return a cursor."""

    @abc.abstractmethod
    def _errors_named(self) -> contextlib.AbstractContextManager[None]:
        """Hold the lock, and turn errors of the database into BadGallery."""

    def problems(self) -> list[str]:
        """Return the problems of the gallery: damage, or a file that others may read."""
        return []

    def _prepare(self, passphrase: Passphrase, create: bool) -> None:
        """Check the tables; create them if they are missing and may be created."""
        if self._write and create:
            self._make(passphrase)
        with self._errors_named():
            (version,) = self._run("SELECT version FROM state").fetchone()
            if version != VERSION:
                raise BadData(
                    f"{self.place}: from another version of facepairs; enrol the photos again"
                )
            self._unlock(passphrase)
        if self._write:
            self._forget_expired()

    def _make(self, passphrase: Passphrase) -> None:
        with self._transaction(self.BEGIN_WRITING):
            if self._exists():
                return
            for statement in (*TABLES.format(now=self.NOW).split(";"), *self.MORE_TABLES):
                self._run(statement)
            self._run("INSERT INTO state (version) VALUES (?)", VERSION)
            if isinstance(passphrase, str):
                self._run("INSERT INTO encryption VALUES (?, ?)", *new_encryption(passphrase))

    def _reading(self) -> contextlib.AbstractContextManager[None]:
        """Show all queries of a block the same state."""
        return self._transaction(self.BEGIN_READING)

    def _writing(self) -> contextlib.AbstractContextManager[None]:
        """Commit the changes of a block together, on disk when it ends; other writers wait."""
        if not self._write:
            raise BadGallery(f"{self.place}: was opened for reading; open it with write=True")
        return self._transaction(self.BEGIN_WRITING)

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._errors_named():
            self._run(begin)
            try:
                yield
                self._run("COMMIT")
            except BaseException:
                with contextlib.suppress(Exception):  # the database may have ended it already
                    self._run("ROLLBACK")
                raise

    def model(self) -> ModelIdentity | None:
        """Return the model that made the embeddings; None before the first."""
        with self._errors_named():
            row = self._run("SELECT sha256, name, alignment, width FROM model").fetchone()
        return ModelIdentity(*row) if row else None

    def set_model(self, model: ModelIdentity) -> None:
        """Record the model, unless there is one already."""
        with self._writing():
            if self.model() is None:
                row = (model.sha256, model.name, model.alignment, model.width)
                self._run("INSERT INTO model VALUES (?, ?, ?, ?)", *row)

    def owner(self, digest: bytes) -> str | None:
        """Return the person for whom the photo of a SHA-256 is enrolled."""
        with self._errors_named():
            row = self._run(
                "SELECT name FROM live WHERE sha256 = ?", self._values.seal(digest, PHOTO)
            ).fetchone()
            return self._name(row[0]) if row else None

    def put(self, photos: Iterable[NewFace], forget_after: float | None) -> list[str | None]:
        """Add photos in one transaction, which is on disk when this returns; expired ones go.

        Args:
            photos: The photos.
            forget_after: Days until they expire; None for never.

        Returns:
            For each photo None, or the person for whom it is already enrolled; such a photo is not
            added.
        """
        self._forget_expired()
        now = now_s()
        expires = None if forget_after is None else now + round(forget_after * DAY_S)
        owners: list[str | None] = []
        with self._writing():
            for name, digest, vector in photos:
                owners.append(self.owner(digest))
                if owners[-1] is not None:
                    continue
                whose = self._values.seal(name.encode(), NAME)
                key = self._values.seal(digest, PHOTO)
                self._run("DELETE FROM photos WHERE sha256 = ?", key)  # has just expired
                blob = self._values.seal(vector.astype(STORED).tobytes(), whose, key)
                row = (key, whose, blob, now, expires)
                self._run("INSERT INTO photos VALUES (?, ?, ?, ?, ?)", *row)
        return owners

    def remove(self, name: str) -> int:
        """Remove a person; return the number of photos removed, 0 for an unknown person."""
        self._forget_expired()
        return self._delete(
            "DELETE FROM photos WHERE name = ?", self._values.seal(name.encode(), NAME)
        )

    def rename(self, old: str, new: str) -> int:
        """Give a person another name; return the number of photos, 0 for an unknown person."""
        self._forget_expired()
        before, after = (self._values.seal(name.encode(), NAME) for name in (old, new))
        with self._writing():
            query = "SELECT sha256, vector, added, expires FROM photos WHERE name = ?"
            rows = self._run(query, before).fetchall()
            self._run("DELETE FROM photos WHERE name = ?", before)
            for key, sealed, added, expires in rows:
                vector = self._values.seal(self._values.open(sealed, before, key), after, key)
                row = (key, after, vector, added, expires)
                self._run("INSERT INTO photos VALUES (?, ?, ?, ?, ?)", *row)
        return self._erase(len(rows))

    def _forget_expired(self) -> None:
        self._delete("DELETE FROM photos WHERE expires <= ?", now_s())

    def _delete(self, query: str, value: object) -> int:
        with self._writing():
            removed = int(self._run(query, value).rowcount)
        return self._erase(removed)

    def _erase(self, rows: int) -> int:
        """Overwrite deleted rows, if there are any, and return how many there are."""
        if rows and self.ERASE:
            with self._errors_named():
                self._run(self.ERASE)
        return rows

    def people(self) -> list[Person]:
        """Return all enrolled people whose photos have not expired, by name."""
        with self._errors_named():
            people = [
                Person(
                    self._name(name),
                    photos,
                    _date(added),
                    _date(expires) if dated == photos else None,
                )
                for name, photos, added, expires, dated in self._run(PEOPLE).fetchall()
            ]
        return sorted(people)

    def faces(self) -> list[StoredFace]:
        """Return all faces that have not expired."""
        with self._errors_named():
            rows = self._run("SELECT name, sha256, vector, expires FROM live").fetchall()
            return [
                StoredFace(
                    self._name(name),
                    self._values.open(key, PHOTO),
                    np.frombuffer(self._values.open(vector, name, key), STORED),
                    expires,
                )
                for name, key, vector, expires in rows
            ]

    def load(self) -> Vectors:
        """Return all embeddings that have not expired."""
        with self._reading():
            model = self.model()
            count, until = self._run("SELECT count(*), min(expires) FROM live").fetchone()
            if until is not None:  # by the database's clock, which may be behind this one
                until = max(until, now_s() + 1)
            vectors = Vectors(model.width if model else 0, count, until)
            rows = iter(self._run("SELECT name, sha256, vector FROM live"))
            while part := list(zip(range(ROWS_PER_READ), rows, strict=False)):
                names = [self._name(name) for _, (name, _, _) in part]
                blobs = [self._values.open(vector, name, key) for _, (name, key, vector) in part]
                values = np.frombuffer(b"".join(blobs), STORED).reshape(len(part), -1)
                vectors.append(names, values)
        return vectors

    @property
    def is_encrypted(self) -> bool:
        """Whether names, embeddings and hashes are encrypted."""
        return self._encryption is not None

    def _unlock(self, passphrase: Passphrase) -> None:
        """Set how values are stored; raise BadData if the passphrase is wrong."""
        self._encryption = self._stored_encryption()
        if self._encryption:
            self._values = open_encryption(self.place, passphrase, *self._encryption)
        elif isinstance(passphrase, str):
            raise BadData(f"{self.place}: not encrypted; omit the passphrase, or use a new gallery")

    def _stored_encryption(self) -> tuple[bytes, bytes] | None:
        """Return the salt and the probe; None for a plain gallery."""
        row = self._run("SELECT salt, probe FROM encryption").fetchone()
        return tuple(row) if row else None

    def _name(self, sealed: bytes) -> str:
        return str(self._values.open(sealed, NAME), "utf-8")

    def _check_open(self) -> None:
        if self._is_closed:
            raise BadGallery(f"{self.place}: was closed; open it again")
        if self._process != os.getpid():  # two processes must not share a connection
            raise BadGallery(f"{self.place}: was opened before a fork; open it in each process")

    def _damaged(self, why: object) -> BadGallery:
        return BadGallery(
            f"{self.place}: damaged, or not a gallery ({why}); restore a copy, or enrol the photos "
            "again"
        )


def now_s() -> int:
    """Return the time in whole seconds since 1970."""
    return int(datetime.now(UTC).timestamp())


def _date(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
