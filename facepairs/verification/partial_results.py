"""What long work has found so far, kept in a folder beside its output until that is whole.

    OUT.partial/
      state.json    what the work is: a fingerprint of its inputs, the number and width of rows
      lock          the process that works on it
      values.f32    float32[rows, width]
      done.u8       one byte a row: 1 where its values are there

Values reach the disk before the marks that vouch for them, so a kill at any moment loses the rows
since the last `save` and nothing else.
"""

import contextlib
import json
import mmap
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadRun
from facepairs.support.atomic import atomic_file
from facepairs.support.lock import held

Floats = npt.NDArray[np.float32]


class Partial:
    """Rows of floats beside `out`; use as a context manager, which holds the lock.

    Left by an exception, the folder stays if any row is done; left in peace, it goes. Raises
    BadRun for a folder that is in use, that is there without `resume`, or with it of other inputs.
    """

    def __init__(self, out: Path, fingerprint: str, rows: int, resume: bool) -> None:
        self.folder = out.with_name(f"{out.name}.partial")
        self._state = {"fingerprint": fingerprint, "rows": rows}
        self._resume = resume
        self._held = contextlib.ExitStack()
        self._values: mmap.mmap | None = None
        self._width = 0
        self.done = np.zeros(rows, np.bool_)
        self._saved = 0

    def __enter__(self) -> "Partial":
        found = (self.folder / "state.json").is_file()
        if found and not self._resume:
            raise BadRun(
                f"{self.folder} holds what an interrupted run has found; go on with --resume or "
                "remove it"
            )
        with contextlib.ExitStack() as unless_read:
            unless_read.enter_context(held(self.folder / "lock", self.folder))
            try:
                if found:
                    self._read()
            except OSError as error:
                raise BadRun(
                    f"cannot read {self.folder}: {error.strerror}; remove it and start anew"
                ) from None
            self._held = unless_read.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._values is not None:
            self.save()
        if self._values is not None:
            with contextlib.suppress(BufferError):  # a traceback's frames may hold a view
                self._values.close()
        self._held.close()
        if kind is None or not self.done.any():
            shutil.rmtree(self.folder, ignore_errors=True)

    def _read(self) -> None:
        try:
            state: dict[str, Any] = json.loads((self.folder / "state.json").read_text())
            width = int(state.pop("width"))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise BadRun(f"{self.folder}/state.json is damaged; remove {self.folder}") from None
        if state != self._state:
            raise BadRun(
                f"{self.folder} is of other pairs, another model or other options; remove it, or "
                "give those it was begun with"
            )
        marks = np.fromfile(self.folder / "done.u8", np.uint8)
        size = (self.folder / "values.f32").stat().st_size
        if len(marks) != len(self.done) or size != 4 * width * len(self.done):
            raise BadRun(f"{self.folder} is damaged (sizes do not fit); remove it")
        self.done = marks == 1
        self._saved = int(self.done.sum())
        self._open(width)

    def _open(self, width: int) -> None:
        self._width = width
        with open(self.folder / "values.f32", "r+b") as handle:
            self._values = mmap.mmap(handle.fileno(), 0)

    def _create(self, width: int) -> None:
        """Make the files once the width of a row is known."""
        try:
            with open(self.folder / "values.f32", "wb") as handle:
                size = 4 * width * len(self.done)
                handle.truncate(size)
                if hasattr(os, "posix_fallocate"):  # a full disk must not show as a SIGBUS later
                    os.posix_fallocate(handle.fileno(), 0, size)
            (self.folder / "done.u8").write_bytes(bytes(len(self.done)))
            with atomic_file(self.folder / "state.json") as state:
                json.dump(self._state | {"width": width}, state)
            self._open(width)
        except OSError as error:
            raise BadRun(
                f"cannot write {self.folder}: {error.strerror}; choose another --out"
            ) from None

    def _rows(self) -> Floats:
        assert self._values is not None
        rows: Floats = np.frombuffer(self._values, np.float32)
        return rows.reshape(len(self.done), self._width)

    def put(self, at: npt.NDArray[np.integer[Any]], values: Floats) -> None:
        """Keep values, float32[n, width], of the rows `at`."""
        if not len(at):
            return
        if self._values is None:
            self._create(values.shape[1])
        self._rows()[at] = values
        self.done[at] = True

    def get(self, at: npt.NDArray[np.integer[Any]]) -> Floats:
        """Give the values of some rows, all of them done: float32[n, width]."""
        found: Floats = self._rows()[at]
        self._forget()
        return found

    def save(self) -> None:
        """Bring all to disk that was put since the last time."""
        if self._values is None or int(self.done.sum()) == self._saved:
            return
        self._values.flush()
        with open(self.folder / "done.u8", "r+b") as handle:
            handle.write(self.done.view(np.uint8).data)
            handle.flush()
            os.fsync(handle.fileno())
        self._saved = int(self.done.sum())
        self._forget()

    def _forget(self) -> None:
        """Let go of pages in memory; the system has them on disk or in its own cache."""
        if self._values is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._values.madvise(mmap.MADV_DONTNEED)
