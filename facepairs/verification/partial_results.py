"""The rows that long work has computed: in memory, or in a folder from which it can be resumed.

    OUT.partial/
      state.json    what the work is: a fingerprint of its inputs, the number and width of rows
      lock          held by the process that works on it
      values.f32    float32[rows, width]
      done.u8       one byte per row: 1 where its values are there

Values reach the disk before the marks that refer to them, so that a kill at any moment loses the
rows computed since the last `save` and nothing else.
"""

import contextlib
import json
import mmap
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.errors import BadRun
from facepairs.support.atomic import atomic_file
from facepairs.support.lock import held
from facepairs.support.platform import reserve_space

Floats = npt.NDArray[np.float32]
RowNumbers = npt.NDArray[np.integer[Any]]


class Results:
    """Rows of floats in memory, computed in any order.

    Attributes:
        done: bool[rows], True where the values of a row are there.
    """

    def __init__(self, rows: int) -> None:
        self.done = np.zeros(rows, np.bool_)
        self._values: Floats | None = None

    def put(self, rows: RowNumbers, values: Floats) -> None:
        """Store the values, float32[n, width], of n rows."""
        if not len(rows):
            return
        if self._values is None:
            self._values = self._allocate(values.shape[1])
        self._values[rows] = values
        self.done[rows] = True

    def get(self, rows: RowNumbers) -> Floats:
        """Return the values of rows that are done: float32[n, width]."""
        assert self._values is not None
        values: Floats = self._values[rows]
        return values

    def save(self) -> None:
        """Make what was put so far survive a kill, where there is a disk to keep it."""

    def _allocate(self, width: int) -> Floats:
        return np.zeros((len(self.done), width), np.float32)


class _State(msgspec.Struct):
    """The content of `state.json`."""

    fingerprint: str
    rows: int
    width: int


class PartialResults(Results):
    """Rows of floats in the folder `OUT.partial`; a context manager that holds the lock.

    When the block ends with an exception, the folder stays if any row is done; otherwise it is
    removed.

    Args:
        out: The output beside which the folder lies.
        fingerprint: Identifies the inputs of the work.
        rows: The number of rows.
        resume: Continue with the rows that an interrupted run left.

    Raises:
        BadRun: The folder is in use, exists although `resume` is False, or belongs to other inputs.
    """

    def __init__(self, out: Path, fingerprint: str, rows: int, resume: bool) -> None:
        super().__init__(rows)
        self.folder = out.with_name(f"{out.name}.partial")
        self._fingerprint = fingerprint
        self._resume = resume
        self._lock = contextlib.ExitStack()
        self._map: mmap.mmap | None = None
        self._saved_rows = 0

    def __enter__(self) -> "PartialResults":
        exists = (self.folder / "state.json").is_file()
        if exists and not self._resume:
            raise BadRun(
                f"{self.folder} holds the results of an interrupted run; continue with --resume or "
                "remove it"
            )
        with contextlib.ExitStack() as stack:
            stack.enter_context(held(self.folder / "lock", self.folder))
            try:
                if exists:
                    self._read()
            except OSError as error:
                raise BadRun(
                    f"cannot read {self.folder}: {error.strerror}; remove it and start again"
                ) from None
            self._lock = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.save()
        self._values = None
        if self._map is not None:
            with contextlib.suppress(BufferError):  # a traceback's frames may hold a view
                self._map.close()
        self._lock.close()
        if kind is None or not self.done.any():
            shutil.rmtree(self.folder, ignore_errors=True)

    def get(self, rows: RowNumbers) -> Floats:
        values = super().get(rows)
        self._release_pages()
        return values

    def save(self) -> None:
        """Write all rows that were put since the last call to disk."""
        done_rows = int(self.done.sum())
        if self._map is None or done_rows == self._saved_rows:
            return
        self._map.flush()
        with open(self.folder / "done.u8", "r+b") as handle:
            handle.write(self.done.view(np.uint8).data)
            handle.flush()
            os.fsync(handle.fileno())
        self._saved_rows = done_rows
        self._release_pages()

    def _read(self) -> None:
        """Read what an interrupted run left."""
        try:
            state = msgspec.json.decode((self.folder / "state.json").read_bytes(), type=_State)
        except msgspec.DecodeError:
            raise BadRun(f"{self.folder}/state.json is damaged; remove {self.folder}") from None
        if (state.fingerprint, state.rows) != (self._fingerprint, len(self.done)):
            raise BadRun(
                f"{self.folder} belongs to other pairs, another model or other options; remove it, "
                "or give the ones it was started with"
            )
        marks = np.fromfile(self.folder / "done.u8", np.uint8)
        size = (self.folder / "values.f32").stat().st_size
        if len(marks) != state.rows or size != 4 * state.width * state.rows:
            raise BadRun(f"{self.folder} is damaged (wrong file sizes); remove it")
        self.done = marks == 1
        self._saved_rows = int(self.done.sum())
        self._values = self._open(state.width)

    def _allocate(self, width: int) -> Floats:
        """Create the files once the width of a row is known."""
        rows = len(self.done)
        try:
            with open(self.folder / "values.f32", "wb") as handle:
                handle.truncate(4 * width * rows)
                reserve_space(handle.fileno(), 4 * width * rows)  # a full disk is SIGBUS later
            (self.folder / "done.u8").write_bytes(bytes(rows))
            with atomic_file(self.folder / "state.json") as state:
                json.dump({"fingerprint": self._fingerprint, "rows": rows, "width": width}, state)
            return self._open(width)
        except OSError as error:
            raise BadRun(
                f"cannot write {self.folder}: {error.strerror}; choose another --out"
            ) from None

    def _open(self, width: int) -> Floats:
        with open(self.folder / "values.f32", "r+b") as handle:
            self._map = mmap.mmap(handle.fileno(), 0)
        values: Floats = np.frombuffer(self._map, np.float32)
        return values.reshape(len(self.done), width)

    def _release_pages(self) -> None:
        """Free mapped pages in memory; the system has them on disk or in its own cache."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
