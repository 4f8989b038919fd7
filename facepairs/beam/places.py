"""Where passes over many images read and write: local paths, or any `scheme://…` that Apache Beam's
file systems know (`gs://`, `s3://`, `hdfs://`, …).

A `Uri` answers to what passes ask of a path. A file is written under a temporary name and renamed;
no folder is ever renamed, as in an object store that is no single step.
"""

import errno
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from facepairs.errors import BadConfig
from facepairs.support.parallel import in_order

INSTALL = "pip install 'facepairs[beam]'"
LISTERS = 16  # folders listed at a time, where a file system lists one folder a call
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class Entry(NamedTuple):
    """A file below a folder: its path from there, with `/`, and its size in bytes."""

    name: str
    size: int


@dataclass(frozen=True)
class Uri:
    """A file or folder named `scheme://…`; methods raise OSError as those of a Path do."""

    text: str

    def __str__(self) -> str:
        return self.text

    def __truediv__(self, name: str) -> "Uri":
        return Uri(f"{self.text.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """The last part."""
        return self.text.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> "Uri":
        """What it lies in."""
        return Uri(self.text.rstrip("/").rpartition("/")[0])

    def read_bytes(self) -> bytes:
        """Read the whole file."""
        with reading(self) as handle, _as_os_error(self):
            return bytes(handle.read())


Place = Path | Uri


def place(text: str) -> Place:
    """Read what a user typed; raises BadConfig where Beam or its part for a scheme is missing."""
    found = _SCHEME.match(text)
    if not found:
        return Path(text)
    uri = Uri(text.rstrip("/"))
    try:
        _systems(uri).get_filesystem(uri.text)
    except ValueError:
        raise BadConfig(
            f"{text}: no file system of Apache Beam's knows {found[1]}://; its own extras bring "
            "them: apache-beam[gcp] gs://, apache-beam[aws] s3://, apache-beam[hadoop] hdfs://"
        ) from None
    except OSError as error:
        raise BadConfig(f"{text}: {error}; see its options, and give them with --runner") from None
    return uri


def beam_module(name: str, why: str) -> Any:
    """Import a part of Apache Beam; raises BadConfig, which begins with `why`, where it is not."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # of parts for clouds that are not installed
    try:
        return import_module(f"apache_beam{name}")
    except ImportError:
        raise BadConfig(f"{why} needs Apache Beam: {INSTALL}") from None
    finally:
        logging.disable(before)


def _systems(uri: Uri) -> Any:
    return beam_module(".io.filesystems", str(uri)).FileSystems


@contextmanager
def _as_os_error(uri: Uri) -> Iterator[None]:
    """Give what a file system raises, whatever it is, the form that errors of files have."""
    try:
        yield
    except BadConfig:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise
        if "not found" in str(error).lower():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), uri.text) from error
        text = " ".join(str(error).split()) or type(error).__name__
        raise OSError(errno.EIO, text, uri.text) from error


@contextmanager
def reading(where: Place) -> Iterator[IO[bytes]]:
    """Open a file's bytes; the handle can seek. Raises OSError."""
    if isinstance(where, Path):
        with open(where, "rb") as handle:
            yield handle
        return
    with _as_os_error(where):
        # Beam would unpack a file whose name ends as compressed files' do.
        handle = _systems(where).open(where.text, compression_type="uncompressed")
    with handle:
        yield handle


@contextmanager
def writing(where: Place) -> Iterator[IO[bytes]]:
    """Write a file that gets its name once all is written. Raises OSError."""
    part = where.parent / f".{where.name}.tmp-{os.getpid()}-{os.urandom(4).hex()}"
    if isinstance(where, Path):
        assert isinstance(part, Path)
        try:
            with open(part, "wb") as handle:
                yield handle
            part.replace(where)
        finally:
            part.unlink(missing_ok=True)
        return
    with _as_os_error(where):
        _make_folder(where.parent)
        handle = _systems(where).create(str(part), compression_type="uncompressed")
    try:
        yield handle
    except BaseException:
        with suppress(Exception):
            handle.close()
            _systems(where).delete([str(part)])
        raise
    with _as_os_error(where):
        handle.close()
        if _systems(where).exists(where.text):  # not every file system renames over a file
            _systems(where).delete([where.text])
        _systems(where).rename([str(part)], [where.text])


def copy_from(where: Place, local: Path) -> None:
    """Copy a file to a local one. Raises OSError."""
    with reading(where) as source, open(local, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def copy_to(local: Path, where: Place) -> None:
    """Copy a local file to a place, under its name once it is there whole. Raises OSError."""
    with open(local, "rb") as source, writing(where) as target:
        shutil.copyfileobj(source, target, 1 << 20)


def remove(where: Place) -> None:
    """Remove a file or a folder with all that is in it; nothing there is no error."""
    if isinstance(where, Path):
        if where.is_dir():
            shutil.rmtree(where, ignore_errors=True)
        else:
            where.unlink(missing_ok=True)
        return
    with _as_os_error(where):
        systems = _systems(where)
        if systems.exists(where.text):
            systems.delete([where.text])
        else:  # an object store has no folders, only names that begin alike
            systems.delete([f"{where.text}/{entry.name}" for entry in files_below(where)])


def files_below(folder: Uri) -> list[Entry]:
    """List all files down to two folders below this one, sorted by name. Raises OSError."""
    with _as_os_error(folder):
        every = _listed(folder, "**")
        deep = [entry for entry in every if "/" in entry.name]
        if not deep:  # HDFS lists one folder a call: files and folders alike
            inner = in_order(lambda one: _inside(folder, one), every, LISTERS)
            every = list(chain.from_iterable(inner))
    return sorted(every)


def _inside(folder: Uri, entry: Entry) -> list[Entry]:
    """Give what a folder holds by its names from `folder`, or a file itself."""
    found = _listed(folder / entry.name, "*")
    return [Entry(f"{entry.name}/{name}", size) for name, size in found] or [entry]


def _listed(folder: Uri, pattern: str) -> list[Entry]:
    (match,) = _systems(folder).match([f"{folder.text}/{pattern}"])
    at = len(folder.text) + 1
    found = [Entry(file.path[at:], file.size_in_bytes) for file in match.metadata_list]
    return [entry for entry in found if entry.name.strip("/")]


def _make_folder(folder: Uri) -> None:
    """Make a folder where the file system has such a thing."""
    system = _systems(folder).get_filesystem(folder.text)
    if system.has_dirs() and not system.exists(folder.text):
        try:
            system.mkdirs(folder.text)
        except OSError:
            if not system.exists(folder.text):  # else another worker has just made it
                raise
