"""The images of a list of pairs and what was computed so far, in a folder beside the output.

    OUT.partial/
      lock          held by the process that works on it
      work.sqlite   the images' names, faces and errors, and the values of the rows that are done

SQLite commits whole transactions: a kill at any moment loses the rows since the last `save`.
Memory holds some megabytes of it, so that neither many images nor many errors take more.
"""

import contextlib
import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadRun
from facepairs.faces.align import FaceCells
from facepairs.support.lock import held
from facepairs.support.places import check_output_folder

CACHE_MB = 32
FILES = ("lock", "work.sqlite", "work.sqlite-journal")
ADD = """
INSERT INTO images (name, stamp) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET stamp = excluded.stamp
"""
TABLES = """
CREATE TABLE IF NOT EXISTS work (fingerprint TEXT);
CREATE TABLE IF NOT EXISTS images (number INTEGER PRIMARY KEY, name BLOB UNIQUE, stamp TEXT);
CREATE TABLE IF NOT EXISTS errors (number INTEGER PRIMARY KEY, error BLOB);
CREATE TABLE IF NOT EXISTS faces (number INTEGER PRIMARY KEY, box TEXT, faces TEXT, hints TEXT);
CREATE TABLE IF NOT EXISTS results (row INTEGER PRIMARY KEY, vector BLOB);
"""

Floats = npt.NDArray[np.float32]
RowNumbers = npt.NDArray[np.integer[Any]]


class RowResults:
    """Rows of floats in memory, computed in any order.

    Attributes:
        done: bool[rows], True where the values of a row are there.
    """

    def __init__(self, rows: int) -> None:
        self.done = np.zeros(rows, np.bool_)
        self._values: Floats | None = None

    def put(self, rows: list[int], values: Floats) -> None:
        """Store the values, float32[n, width], of n rows."""
        if not rows:
            return
        if self._values is None:
            self._values = np.zeros((len(self.done), values.shape[1]), np.float32)
        self._values[rows] = values
        self.done[rows] = True

    def get(self, rows: RowNumbers) -> Floats:
        """Return the values of rows that are done: float32[n, width]."""
        assert self._values is not None
        values: Floats = self._values[rows]
        return values

    def save(self) -> None:
        """Make what was put so far survive a kill, where it is on disk."""


class PartialResults(RowResults):
    """Images by number from 0 and rows of floats, in the folder OUT.partial; for one thread.

    A context manager that holds the folder's lock. When its block ends with an exception, the
    folder stays if it holds the values of any row; otherwise it is removed.

    Args:
        out: The output beside which the folder lies.
        fingerprint: Identifies the inputs of the work.
        resume: Continue with the rows that an interrupted run left.

    Raises:
        BadRun: The folder is in use, cannot be written, belongs to other inputs, or holds results
            although `resume` is False.
    """

    def __init__(self, out: Path, fingerprint: str, resume: bool) -> None:
        super().__init__(0)
        self.folder = out.with_name(f"{out.name}.partial")
        self._fingerprint = fingerprint
        self._resume = resume
        self._exit_stack = contextlib.ExitStack()

    def __enter__(self) -> "PartialResults":
        check_output_folder(self.folder, "interrupted work", lambda _: FILES, error=BadRun)
        with contextlib.ExitStack() as stack:
            stack.enter_context(held(self.folder / "lock", self.folder))
            with self._sqlite_errors_as_bad_run():
                self._database = sqlite3.connect(self.folder / "work.sqlite", isolation_level=None)
                stack.callback(self._database.close)
                self._open()
            self._exit_stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        keep = kind is not None and (self._has_results or self.done.any())
        with self._exit_stack:
            if keep:
                self.save()
        if not keep:
            with contextlib.suppress(OSError):
                for name in FILES:
                    (self.folder / name).unlink(missing_ok=True)
                self.folder.rmdir()

    def _open(self) -> None:
        """Continue with the results in the folder, or begin with none."""
        self._database.execute(f"PRAGMA cache_size = {-1024 * CACHE_MB}")
        self._database.executescript(TABLES)
        self._has_results = bool(self._query("SELECT EXISTS (SELECT * FROM results)"))
        if not self._has_results:
            self._database.executescript("DELETE FROM work; DELETE FROM images; DELETE FROM faces;")
            self._write("INSERT INTO work VALUES (?)", [(self._fingerprint,)])
        elif not self._resume:
            raise BadRun(
                f"{self.folder} holds the results of an interrupted run; go on with it or remove it"
            )
        elif self._query("SELECT fingerprint FROM work") != self._fingerprint:
            raise BadRun(
                f"{self.folder} belongs to other pairs, another model or other options; remove it, "
                "or give the ones it was started with"
            )
        # One transaction after the other: a query of its own would lock the file each time.
        self._database.executescript("DELETE FROM errors; BEGIN;")

    def set_row_count(self, rows: int) -> None:
        """Set the number of rows once it is known, and mark those that are done."""
        self.done = np.zeros(rows, np.bool_)
        with self._sqlite_errors_as_bad_run():
            done = self._database.execute("SELECT row FROM results")
            self.done[np.fromiter((row for (row,) in done), np.int64)] = True

    def put(self, rows: list[int], values: Floats) -> None:
        """Store the values, float32[n, width], of n rows."""
        vectors = (vector.tobytes() for vector in values)
        self._write("INSERT INTO results VALUES (?, ?)", zip(rows, vectors, strict=True))
        self.done[rows] = True

    def get(self, rows: RowNumbers) -> Floats:
        """Return the values of rows that are done: float32[n, width]."""
        distinct, places = np.unique(rows, return_inverse=True)
        query = "SELECT vector FROM results WHERE row = ?"
        vectors = b"".join(self._query(query, row) for row in distinct.tolist())
        values: Floats = np.frombuffer(vectors, np.float32).reshape(len(distinct), -1)[places]
        return values

    def save(self) -> None:
        """Make what was put so far survive a kill."""
        with self._sqlite_errors_as_bad_run():
            self._database.commit()  # does nothing after an interrupt between these two lines
            self._database.execute("BEGIN")

    def add_images(self, stamps: Mapping[str, str], embeds: bool) -> None:
        """Number those names that are new, and forget the values of photos that have changed.

        Args:
            stamps: What changes with the content of each image, by its name.
            embeds: Whether rows are images; of pairs, all rows are forgotten.
        """
        rows = [(os.fsencode(name), stamp) for name, stamp in stamps.items()]
        if self._has_results:
            self._forget(self._changed(rows), embeds)
        self._write(ADD, rows)

    def _changed(self, rows: list[tuple[bytes, str]]) -> list[tuple[int]]:
        """Return the numbers of those images whose stamp is another one than before."""
        query = "SELECT number - 1 FROM images WHERE name = ? AND stamp != ?"
        found = (self._query(query, *row) for row in rows)
        return [(number,) for number in found if number is not None]

    def _forget(self, images: list[tuple[int]], embeds: bool) -> None:
        self._write("DELETE FROM faces WHERE number = ?", images)
        if embeds:
            self._write("DELETE FROM results WHERE row = ?", images)
        elif images:
            self._write("DELETE FROM results", [()])

    @property
    def image_count(self) -> int:
        """The number of distinct images."""
        return self._query("SELECT max(number) FROM images") or 0

    def image_name(self, number: int) -> str:
        """Return the name of an image."""
        return os.fsdecode(self._query("SELECT name FROM images WHERE number = ?", number + 1))

    def image_number(self, name: str) -> int:
        """Return the number of an image; raise KeyError when it was never added."""
        number = self._query("SELECT number FROM images WHERE name = ?", os.fsencode(name))
        if number is None:
            raise KeyError(name)
        return int(number) - 1

    def add_errors(self, errors: Mapping[int, str]) -> None:
        """Store what is wrong with some images, by number."""
        rows = ((number, os.fsencode(error)) for number, error in errors.items())
        self._write("INSERT OR REPLACE INTO errors VALUES (?, ?)", rows)

    def image_error(self, number: int) -> str:
        """Return what is wrong with an image, "" when nothing is."""
        return os.fsdecode(self._query("SELECT error FROM errors WHERE number = ?", number) or b"")

    def add_faces(self, faces: Mapping[int, FaceCells]) -> None:
        """Store what is known of the faces of some images, by number."""
        rows = ((number, *cells) for number, cells in faces.items())
        self._write("INSERT OR REPLACE INTO faces VALUES (?, ?, ?, ?)", rows)

    def image_face(self, number: int) -> FaceCells:
        """Return what is known of an image's face; cells are empty where nothing is."""
        row = self._row("SELECT box, faces, hints FROM faces WHERE number = ?", number)
        return FaceCells(*row or ())

    @property
    def several_faces(self) -> int:
        """The number of images with more than one face."""
        return int(self._query("SELECT count(*) FROM faces WHERE faces NOT IN ('', '1')"))

    def hint_counts(self) -> dict[str, int]:
        """Return the number of images that have each kind of hint."""
        counts: Counter[str] = Counter()
        with self._sqlite_errors_as_bad_run():
            groups = "SELECT hints, count(*) FROM faces GROUP BY hints ORDER BY hints"
            for hints, images in self._database.execute(groups):
                counts.update(dict.fromkeys(hints.split(), images))
        return dict(counts)

    @property
    def failed_images(self) -> int:
        """The number of images that have an error."""
        return int(self._query("SELECT count(*) FROM errors"))

    def _query(self, query: str, *values: object) -> Any:
        """Return the first value of the first row, or None."""
        row = self._row(query, *values)
        return row[0] if row else None

    def _row(self, query: str, *values: object) -> tuple[Any, ...] | None:
        with self._sqlite_errors_as_bad_run():
            row: tuple[Any, ...] | None = self._database.execute(query, values).fetchone()
            return row

    def _write(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._sqlite_errors_as_bad_run():
            self._database.executemany(statement, rows)

    @contextlib.contextmanager
    def _sqlite_errors_as_bad_run(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise BadRun(
                f"cannot write {self.folder}: {error}; free space or choose another place", "out"
            ) from None
        except sqlite3.DatabaseError as error:
            raise BadRun(f"{self.folder} is damaged ({error}); remove it") from None
