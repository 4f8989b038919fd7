"""Files on storage that only Apache Beam's file systems reach: `gs://`, `s3://`, `hdfs://`, ….

A `BeamPath` offers the few operations that a pass over images needs. A file is written under a
temporary name and then renamed, so that a reader never sees half of it. A folder is never renamed:
in an object store that is not one step.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import IO, Any

from facepairs.errors import BadConfig, BadData, FacepairsError
from facepairs.support.extras import install_advice
from facepairs.support.parallel import thread_map
from facepairs.support.places import is_remote, refuse_url

EXTRAS = "gs:// needs apache-beam[gcp], s3:// apache-beam[aws], hdfs:// apache-beam[hadoop]"
THREADS = 16  # for file systems that list one folder per call


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

    def read_file(self, name: str) -> bytes:
        """Read a file below this folder; as a bound method it can be pickled."""
        file = self / name
        with reading(file) as handle, _as_os_error(file):
            return bytes(handle.read())


Place = Path | BeamPath


def parse_place(text: str) -> Place:
    """Return a local path as a `pathlib.Path` and `scheme://…` as a `BeamPath`.

    Raises:
        BadConfig: Apache Beam, or its extra for this scheme, is not installed.
        BadData: It is a web address.
    """
    if not is_remote(text):
        refuse_url(text)
        return Path(text)
    path = BeamPath(text.rstrip("/"))
    try:
        _file_systems(path).get_filesystem(path.text)
    except (ValueError, OSError) as error:
        raise BadConfig(f"{text}: {error}; {EXTRAS}") from None
    return path


def beam_module(name: str, needed_for: str) -> Any:
    """Import a module of Apache Beam by its name below `apache_beam`.

    Raises:
        BadConfig: It is not installed; the message begins with `needed_for`.
    """
    try:
        return import_module(f"apache_beam{name}")
    except ImportError:
        raise BadConfig(f"{needed_for} needs Apache Beam; {install_advice('beam')}") from None


def _file_systems(path: BeamPath) -> Any:
    return beam_module(".io.filesystems", str(path)).FileSystems


@contextmanager
def _as_os_error(path: BeamPath) -> Iterator[None]:
    """Convert whatever a file system raises to an OSError with a message and the path."""
    try:
        yield
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
    folder, _, name = path.text.rpartition("/")
    temporary = f"{folder}/.{name}.tmp-{os.getpid()}-{os.urandom(4).hex()}"
    with _as_os_error(path):
        with suppress(Exception):  # it exists, or the storage has no folders
            systems.mkdirs(folder)
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
        if systems.exists(path.text):
            systems.delete([path.text])  # HDFS does not rename over a file
        systems.rename([temporary], [path.text])


def remove(path: BeamPath) -> None:
    """Remove a file, or a folder with all its files, if it exists. Raises OSError."""
    systems = _file_systems(path)
    with _as_os_error(path):
        # An object store has no folders, only names that share a prefix.
        is_one = systems.exists(path.text)
        below = [] if is_one else [f"{path.text}/{name}" for name, _ in files_below(path)]
        systems.delete([path.text] if is_one else below)


def files_below(folder: BeamPath) -> list[tuple[str, int]]:
    """List all files down to two folders below this one: relative path and size in bytes, sorted.

    Raises OSError.
    """
    with _as_os_error(folder):
        files = _list(folder, "**")
        if not any("/" in name for name, _ in files):
            # HDFS lists one folder per call, and does not tell files from folders.
            files = list(chain.from_iterable(thread_map(partial(_inside, folder), files, THREADS)))
    return sorted(files)


def _inside(folder: BeamPath, entry: tuple[str, int]) -> list[tuple[str, int]]:
    """List what is inside an entry of `folder`; return the entry itself if it is a file."""
    inner = _list(folder / entry[0], "*")
    return [(f"{entry[0]}/{name}", size) for name, size in inner] or [entry]


def _list(folder: BeamPath, pattern: str) -> list[tuple[str, int]]:
    (match,) = _file_systems(folder).match([f"{folder.text}/{pattern}"])
    start = len(folder.text) + 1
    files = [(file.path[start:], file.size_in_bytes) for file in match.metadata_list]
    return [file for file in files if file[0].strip("/")]


def stand_in(place: Place) -> Path:
    """Return the local path that stands for a remote one where a `Path` is needed, as in an index.

    It exists nowhere; `remote_errors` puts the real name into error messages.
    """
    return place if isinstance(place, Path) else Path(place.text)


@contextmanager
def remote_errors(*places: Place) -> Iterator[None]:
    """Raise OSError as BadData; name these places, not their stand-ins, in error messages."""
    try:
        yield
    except OSError as error:
        place = error.filename or " or ".join(map(str, places))
        raise BadData(f"{place}: {error.strerror}; check the place and its access") from None
    except FacepairsError as error:
        text = error.message
        for place in places:
            text = text.replace(str(stand_in(place)), str(place))
        named = type(error)(text)
        named.arguments = error.arguments
        raise named from error
