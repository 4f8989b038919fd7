"""Outputs that are whole or absent: a temporary name beside the target, fsync, rename.

A temporary name is `.NAME.tmp-PID-…`; those of processes that are gone are swept away by the next
writer of the same target, so that kills leave no litter behind.
"""

import atexit
import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from facepairs.errors import NO_PLACE, BadConfig, BadData
from facepairs.support.platform import process_is_gone, sync_file, sync_folder


def is_temporary(name: str) -> bool:
    """Tell whether a file name is one that is given here until the file is whole."""
    return re.fullmatch(r"\..+\.(tmp|old)-\d+-[0-9a-f]{8}", name) is not None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sweep(target: Path) -> None:
    """Remove what killed processes left beside `target`."""
    pattern = re.compile(re.escape(f".{target.name}.") + r"(tmp|old)-(\d+)-")
    with contextlib.suppress(OSError):
        for entry in list(target.parent.iterdir()):
            found = pattern.match(entry.name)
            if not found or not process_is_gone(int(found.group(2))):
                continue
            if found.group(1) == "old" and not target.exists():
                entry.rename(target)  # killed between the two renames of `atomic_folder`
            else:
                _remove(entry)


def _temporary(target: Path, word: str = "tmp") -> Path:
    return target.with_name(f".{target.name}.{word}-{os.getpid()}-{os.urandom(4).hex()}")


def _prepare(target: Path) -> Path:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadData(
            f"cannot create {target.parent}: {error.strerror}; choose another place"
        ) from None
    sweep(target)
    return _temporary(target)


@contextlib.contextmanager
def temporary_beside(target: Path) -> Iterator[Path]:
    """Yield the name of a file to write, which is fsynced and becomes `target` when all went well.

    Raises BadData when the place cannot be written; the old file then stands untouched.
    """
    temporary = _prepare(target)
    try:
        yield temporary
        sync_file(temporary)
        temporary.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise BadData(
            f"cannot write {target}: {error.strerror or error}; choose another place or free space"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_file(target: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file to write (`w` for UTF-8 text, `wb` for bytes) that appears whole or not at all.

    Raises BadData when the place cannot be written; the old file then stands untouched.
    """
    encoding = None if "b" in mode else "utf-8"
    newline = None if "b" in mode else ""
    with (
        temporary_beside(target) as temporary,
        open(temporary, mode, encoding=encoding, newline=newline) as handle,
    ):
        yield handle


@contextlib.contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yield an empty temporary folder that takes the place of `target` when the block ends well.

    A folder that stood there is replaced only then, and put back when the swap fails.
    Raises BadData when the place cannot be written.
    """
    temporary = _prepare(target)
    old = _temporary(target, "old")
    try:
        temporary.mkdir()
        yield temporary
        for path in sorted(temporary.rglob("*")):
            if path.is_file():
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
    except OSError as error:
        raise BadData(
            f"cannot write {target}: {error.strerror or error}; choose another place or free space"
        ) from None
    finally:
        _remove(temporary)
        if target.exists():
            _remove(old)


@contextlib.contextmanager
def scratch_folder(name: str) -> Iterator[Path]:
    """Yield an empty folder where the system keeps temporary files, gone when the block ends.

    What a killed process left there under this name is swept away.
    """
    folder = _prepare(Path(tempfile.gettempdir()) / name)
    folder.mkdir(0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def own_temporaries() -> None:
    """Let all in this process that asks `tempfile` for a place have a folder that goes with it.

    TensorFlow leaves files there when it is killed; they lie in that folder, which the next
    process to come here sweeps away. Where none can be made, all stays as it is. Raises BadConfig
    where no place for temporary files can be written: work would end there, perhaps after hours.
    """
    try:
        place = Path(tempfile.gettempdir())
    except FileNotFoundError:
        raise BadConfig(NO_PLACE) from None
    with contextlib.suppress(OSError, BadData):
        if place.name.startswith(f".facepairs.tmp-{os.getpid()}-"):
            return
        folder = _prepare(place / "facepairs")
        folder.mkdir(0o700)
        tempfile.tempdir = str(folder)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
