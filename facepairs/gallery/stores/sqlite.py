"""A gallery in one file, an SQLite database.

A committed transaction survives a kill. With SQLite's rollback journal, instead of its write-ahead
log, all data is in the one file: it can be read from a read-only place, and a restored copy is
noticed. Only its owner may read the file. Deleted rows are overwritten.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from facepairs.errors import BadData, BadGallery
from facepairs.gallery.encryption import Passphrase
from facepairs.gallery.stores.base import SqlStore
from facepairs.support.words import command_line

TIMEOUT_S = 30.0  # for another process that writes


class SqliteStore(SqlStore):
    """A gallery's file.

    Args:
        path: The file.
        write: Open it for changes; expired photos are removed.
        passphrase: Of an encrypted gallery; a new one is encrypted if this is a text.
        create: With `write`, create it if it is missing.

    Raises:
        BadData: The file is missing or damaged, is not a gallery, has another passphrase, or cannot
            be opened.
        BadConfig: The passphrase of a new gallery is empty.
    """

    BEGIN_READING, BEGIN_WRITING = "BEGIN", "BEGIN IMMEDIATE"
    NOW = "CAST(strftime('%s', 'now') AS INTEGER)"
    ERASE = "VACUUM"

    def __init__(
        self,
        path: Path,
        write: bool = False,
        passphrase: Passphrase = None,
        create: bool = True,
    ) -> None:
        super().__init__(str(path), write, passphrase)
        self.path = path
        if not (write and create) and not path.is_file():
            raise BadData(
                f"{path}: no such gallery; create one: "
                + command_line("gallery", "add", path, "photos/")
            )
        with self._errors_named():
            if write:
                with contextlib.suppress(FileExistsError):
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
            self._database = sqlite3.connect(
                # Readers, too, undo what a killed writer left, where they may.
                f"{path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._opened = path.stat()
                if write:
                    for pragma in ("secure_delete = ON", "synchronous = FULL"):
                        self._run(f"PRAGMA {pragma}").fetchall()
                self._prepare(passphrase, create)
            except BaseException:
                self._database.close()
                raise

    def _exists(self) -> bool:  # of any kind: another program's file is not ours to change
        return bool(self._run("SELECT count(*) FROM sqlite_master").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._is_closed = True
            self._database.close()

    def version(self) -> int:
        """Return a number that changes when another connection changes the file."""
        with self._errors_named():
            version: int = self._run("PRAGMA data_version").fetchone()[0]
            return version

    def _check_open(self) -> None:
        super()._check_open()
        with contextlib.suppress(OSError):
            if os.path.samestat(self.path.stat(), self._opened):
                return
        raise BadGallery(f"{self.path}: was removed or replaced while it was open; open it again")

    def _run(self, query: str, *values: object) -> Any:
        self._check_open()
        return self._database.execute(query, values)

    def problems(self) -> list[str]:
        """Return the problems of the file: damage, or that others may read it."""
        with self._errors_named():
            found = [str(row[0]) for row in self._run("PRAGMA integrity_check")]
        found = [] if found == ["ok"] else found
        if os.name == "posix" and self.path.stat().st_mode & 0o077:
            found.append(f"others may read it; run: chmod 600 {self.path}")
        return found

    @contextlib.contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Turn errors of SQLite and of the system into BadGallery, with the file's name."""
        try:
            with self._lock:
                yield
        except OSError as error:
            raise BadGallery(
                f"cannot write {self.path}: {error.strerror}; choose another place"
            ) from None
        except sqlite3.OperationalError as error:  # busy, full, read-only, …
            raise BadGallery(
                f"{self.path}: {error}; try again, or give a file that can be written"
            ) from None
        except sqlite3.Error as error:
            raise self._damaged(error) from None
        except (ValueError, TypeError) as error:  # what was read has another form or length
            raise self._damaged(error) from None
