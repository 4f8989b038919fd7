"""Files on storage that only Apache Beam's file systems reach: `gs://`, `s3://`, `hdfs://`, ….

A `BeamPath` offers the few operations that a pass over images needs. A file is written under a
temporary name and then renamed, so that a reader never sees half of it. A folder is never renamed:
in an object store that is not one step.
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
from facepairs.support.parallel import thread_map
from facepairs.support.places import STDOUT, refuse_url

INSTALL = "pip install 'facepairs[beam]'"
LISTING_THREADS = 16  # for file systems that list one folder per call
WEB = ("http", "https", "ftp", "file")  # Beam reads some, but cannot list a folder there
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class Entry(NamedTuple):
    """A file below a folder: its path relative to the folder, with `/`, and its size in bytes."""

    name: str
    size: int


@dataclass(frozen=True)
class BeamPath:
    """A file or folder of one of Beam's file systems: `scheme://…`, or a local path.

    It can be pickled. Methods raise OSError as those of `pathlib.Path` do.
    """

    text: str

    def __str__(self) -> str:
        return self.text

    def __truediv__(self, name: str) -> "BeamPath":
        return BeamPath(f"{self.text.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.text.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> "BeamPath":
        """The folder that contains this path."""
        return BeamPath(self.text.rstrip("/").rpartition("/")[0])

    def read_bytes(self) -> bytes:
        """Read the whole file."""
        with reading(self) as handle, _as_os_error(self):
            return bytes(handle.read())

    def read_file(self, name: str) -> bytes:
        """Read a file below this folder; as a bound method it can be pickled."""
        return (self / name).read_bytes()


Place = Path | BeamPath


def parse_place(text: str) -> Place:
    """Return a local path as a `pathlib.Path` and `scheme://…` as a `BeamPath`.

    Raises:
        BadConfig: Apache Beam, or its extra for this scheme, is not installed.
        BadData: It is a web address.
    """
    scheme = _SCHEME.match(text)
    if not scheme or scheme[1].lower() in WEB:
        if text != STDOUT:
            refuse_url(text)
        return Path(text)
    path = BeamPath(text.rstrip("/"))
    try:
        _file_systems(path).get_filesystem(path.text)
    except ValueError:
        raise BadConfig(
            f"{text}: no file system of Apache Beam knows {scheme[1]}://; install its extra: "
            "apache-beam[gcp] for gs://, apache-beam[aws] for s3://, apache-beam[hadoop] for "
            "hdfs://"
        ) from None
    except OSError as error:
        raise BadConfig(f"{text}: {error}; set its Beam options, together with --runner") from None
    return path


def beam_module(name: str, needed_for: str) -> Any:
    """Import a module of Apache Beam by its name below `apache_beam`.

    Raises:
        BadConfig: It is not installed; the message begins with `needed_for`.
    """
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # Beam warns about clients of clouds that are not installed
    try:
        return import_module(f"apache_beam{name}")
    except ImportError:
        raise BadConfig(f"{needed_for} needs Apache Beam: {INSTALL}") from None
    finally:
        logging.disable(before)


def _file_systems(path: BeamPath) -> Any:
    return beam_module(".io.filesystems", str(path)).FileSystems


@contextmanager
def _as_os_error(path: BeamPath) -> Iterator[None]:
    """Convert whatever a file system raises to an OSError with a message and the path."""
    try:
        yield
    except BadConfig:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            error.filename = error.filename or path.text
            raise
        if "not found" in str(error).lower():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path.text) from error
        text = " ".join(str(error).split()) or type(error).__name__
        raise OSError(errno.EIO, text, path.text) from error


@contextmanager
def reading(path: BeamPath) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes; the handle is seekable. Raises OSError."""
    with _as_os_error(path):
        # By default Beam decompresses a file whose suffix looks like that of a compressed one.
        handle = _file_systems(path).open(path.text, compression_type="uncompressed")
    with handle:
        yield handle


@contextmanager
def writing(path: BeamPath) -> Iterator[IO[bytes]]:
    """Open a file for writing; it gets its name once it is complete. Raises OSError."""
    systems = _file_systems(path)
    temporary = str(path.parent / f".{path.name}.tmp-{os.getpid()}-{os.urandom(4).hex()}")
    with _as_os_error(path):
        _make_folder(path.parent)
        handle = systems.create(temporary, compression_type="uncompressed")
    try:
        yield handle
    except BaseException:
        with suppress(Exception):
            handle.close()
            systems.delete([temporary])
        raise
    with _as_os_error(path):
        handle.close()
        _rename(systems, temporary, path.text)


def _rename(systems: Any, source: str, target: str) -> None:
    try:
        systems.rename([source], [target])
    except Exception:
        if not systems.exists(target):
            raise
        systems.delete([target])  # HDFS does not rename over a file
        systems.rename([source], [target])


def copy_from(source: BeamPath, target: Path) -> None:
    """Copy a file to a local one. Raises OSError."""
    with reading(source) as reader, open(target, "wb") as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)


def copy_to(source: Path, target: BeamPath) -> None:
    """Copy a local file; the copy gets its name once it is complete. Raises OSError."""
    with open(source, "rb") as reader, writing(target) as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)


def remove(path: BeamPath) -> None:
    """Remove a file, or a folder with all its files, if it exists. Raises OSError."""
    systems = _file_systems(path)
    with _as_os_error(path):
        if systems.exists(path.text):
            systems.delete([path.text])
        else:  # an object store has no folders, only names that share a prefix
            systems.delete([f"{path.text}/{entry.name}" for entry in files_below(path)])


def files_below(folder: BeamPath) -> list[Entry]:
    """List all files down to two folders below this one, sorted by name. Raises OSError."""
    with _as_os_error(folder):
        entries = _list(folder, "**")
        if not any("/" in entry.name for entry in entries):
            # HDFS lists one folder per call, and does not tell files from folders.
            inner = thread_map(lambda entry: _inside(folder, entry), entries, LISTING_THREADS)
            entries = list(chain.from_iterable(inner))
    return sorted(entries)


def _inside(folder: BeamPath, entry: Entry) -> list[Entry]:
    """List what is inside an entry of `folder`; return the entry itself if it is a file."""
    inner = _list(folder / entry.name, "*")
    return [Entry(f"{entry.name}/{name}", size) for name, size in inner] or [entry]


def _list(folder: BeamPath, pattern: str) -> list[Entry]:
    (match,) = _file_systems(folder).match([f"{folder.text}/{pattern}"])
    start = len(folder.text) + 1
    entries = [Entry(file.path[start:], file.size_in_bytes) for file in match.metadata_list]
    return [entry for entry in entries if entry.name.strip("/")]


def _make_folder(folder: BeamPath) -> None:
    """Make a folder, if the file system has folders."""
    system = _file_systems(folder).get_filesystem(folder.text)
    if system.has_dirs() and not system.exists(folder.text):
        try:
            system.mkdirs(folder.text)
        except OSError:
            if not system.exists(folder.text):  # otherwise another worker has just made it
                raise
