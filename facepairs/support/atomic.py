"""Outputs that appear complete or not at all: a temporary name beside the target, fsync, rename.

Links are followed. Anything but a regular file, such as a device, is refused, as it cannot be
replaced.

A temporary name is `.NAME.tmp-PID-…`. The next writer of the same target removes those of processes
that are gone, so killed processes leave nothing behind.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from facepairs.errors import BadData
from facepairs.support.places import ADVICE, hidden_beside
from facepairs.support.platform import sync_file, sync_folder


def is_temporary(name: str) -> bool:
    """Return whether a file name is the temporary name of an incomplete output."""
    return re.fullmatch(r"\..+\.(tmp|old)-\d+-[0-9a-f]{8}", name) is not None


def sweep(target: Path) -> None:
    """Remove the temporary files that killed processes left beside `target`."""
    pattern = re.compile(re.escape(f".{target.name}.") + r"(tmp|old)-(\d+)-")
    with contextlib.suppress(OSError):
        for entry in list(target.parent.iterdir()):
            match = pattern.match(entry.name)
            if not match:
                continue
            import psutil  # costs some ms, and most commands find nothing to remove

            if psutil.pid_exists(int(match.group(2))):
                continue
            if match.group(1) == "old" and not target.exists():
                entry.rename(target)  # killed between the two renames of `atomic_folder`
            else:
                _remove(entry)


@contextlib.contextmanager
def temporary_beside(target: Path) -> Iterator[Path]:
    """Yield a file name to write to; the file becomes `target` when the block ends without error.

    Raises:
        BadData: The place cannot be written. An old file stays as it was.
    """
    target, temporary = _prepare(target, Path.is_file)
    try:
        with _as_bad_data(f"cannot write {target}", "choose another place or free space"):
            yield temporary
            sync_file(temporary)
            temporary.replace(target)
            sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_file(target: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file that appears at `target` when the block ends without error.

    Args:
        target: The file; missing folders are made.
        mode: "w" for UTF-8 text, "wb" for bytes.

    Raises:
        BadData: The place cannot be written. An old file stays as it was.
    """
    encoding, newline = (None, None) if "b" in mode else ("utf-8", "")
    with (
        temporary_beside(target) as temporary,
        open(temporary, mode, encoding=encoding, newline=newline) as handle,
    ):
        _keep_mode(target, temporary)
        yield handle


@contextlib.contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yield an empty temporary folder that replaces `target` when the block ends without error.

    Raises:
        BadData: The place cannot be written. An old folder stays, or is put back.
    """
    target, temporary = _prepare(target, Path.is_dir)
    old = _temporary_name(target, "old")
    try:
        with _as_bad_data(f"cannot write {target}", "choose another place or free space"):
            temporary.mkdir()
            _keep_mode(target, temporary)
            yield temporary
            for path in sorted(temporary.rglob("*")):
                if path.is_file() and path.stat().st_nlink == 1:  # a linked file is on disk already
                    sync_file(path)
            sync_folder(temporary)
            if target.exists():
                target.rename(old)
            try:
                temporary.rename(target)
            except OSError:
                if old.exists():
                    old.rename(target)
                raise
            sync_folder(target.parent)
    finally:
        _remove(temporary)
        if target.exists():
            _remove(old)


def _prepare(target: Path, fits: Callable[[Path], bool]) -> tuple[Path, Path]:
    """Return where an output goes, links followed, and a new temporary name beside it.

    The folder of the output is made, and old temporaries are removed.
    """
    hidden_beside(target, "tmp")  # refuses what has no name
    target = Path(os.path.realpath(target))
    if target.is_symlink() or (target.exists() and not fits(target)):  # a circle of links
        raise BadData(f"cannot write {target}: exists and is of another kind; {ADVICE}")
    if target.is_file() and not os.access(target, os.W_OK):  # its folder might let us replace it
        raise BadData(f"cannot write {target}: no permission; {ADVICE}")
    with _as_bad_data(f"cannot create the folder {target.parent}", "choose another place"):
        target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target)
    return target, _temporary_name(target)


def _keep_mode(target: Path, temporary: Path) -> None:
    """Copy the permissions of the file that is replaced."""
    if target.exists():
        shutil.copymode(target, temporary)


def _temporary_name(target: Path, kind: str = "tmp") -> Path:
    return hidden_beside(target, f"{kind}-{os.getpid()}-{os.urandom(4).hex()}")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _as_bad_data(problem: str, advice: str) -> Iterator[None]:
    """Turn an OSError into BadData."""
    try:
        yield
    except OSError as error:
        raise BadData(f"{problem}: {error.strerror or error}; {advice}") from None
