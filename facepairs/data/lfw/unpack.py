"""Unpack a downloaded tgz or zip archive without trusting it."""

import errno
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from facepairs.errors import BadTransfer

MAX_MEMBERS = 100_000
MAX_FILE_BYTES = 64 * 2**20
MAX_TOTAL_BYTES = 4 * 2**30
COPY_BYTES = 2**20
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
UNSAFE = '\\:*?"<>|'  # letters that some platform reads as more than a letter
PLAIN_ZIP = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class NoRoom(BadTransfer):
    """A disk that is too full; what was fetched stays, for another try."""

    def __init__(self, place: Path, needed_bytes: int = 0) -> None:
        needed = f": {needed_bytes / 1e6:,.1f} MB needed" if needed_bytes else ""
        super().__init__(f"no room in {place}{needed}; free space or choose another place")


class _Member(NamedTuple):
    name: str
    size: int
    open: Callable[[], IO[bytes] | None] | None  # None: a folder


def unpack(archive: Path, into: Path, free_bytes: int | None = None) -> None:
    """Unpack regular files and folders of a tgz or zip into an existing empty folder.

    Hidden files and `__MACOSX` are passed over. Raises BadTransfer for a damaged archive, for a
    member that is a link, a device, encrypted, or would land outside `into`, for more than
    MAX_MEMBERS members, MAX_FILE_BYTES a file or MAX_TOTAL_BYTES together, and when the disk
    (`free_bytes`, default: what is free) has no room; `into` then holds a part.
    """
    room = shutil.disk_usage(into).free if free_bytes is None else free_bytes
    total = 0
    try:
        for count, member in enumerate(_members(archive), 1):
            parts = _safe_parts(archive, member.name)
            total += member.size
            _check_limits(archive, member, count, total)
            if total > room:
                raise NoRoom(into, total)
            if not any(part.startswith(".") or part == "__MACOSX" for part in parts):
                _write(archive, member, into.joinpath(*parts))
    except FileExistsError as error:
        raise _bad(archive, Path(str(error.filename)).name, "comes twice") from None
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
        raise BadTransfer(
            f"{archive.name}: a damaged archive ({error}); remove it and fetch it anew"
        ) from None
    except OSError as error:
        if error.errno in NO_ROOM:
            raise NoRoom(into, total) from None
        raise BadTransfer(f"cannot unpack {archive.name} into {into}: {error}") from None


def _write(archive: Path, member: _Member, target: Path) -> None:
    source = member.open() if member.open else None
    if source is None:
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, open(target, "xb") as out:  # "x": no member overwrites another
        shutil.copyfileobj(source, out, COPY_BYTES)
    if target.stat().st_size != member.size:
        raise _bad(archive, member.name, "is not of the size that the archive says")


def _bad(archive: Path, name: str, why: str) -> BadTransfer:
    return BadTransfer(
        f"{archive.name}: {name!r} {why}; do not use it, get the archive from its publisher"
    )


def _safe_parts(archive: Path, name: str) -> tuple[str, ...]:
    """Split a member's name; refuse one that could lead outside, on any platform."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts:
        raise _bad(archive, name, "would land outside the folder")
    if any(letter in UNSAFE or letter < " " for letter in name):
        raise _bad(archive, name, "has a character in its name that is not safe everywhere")
    return parts


def _check_limits(archive: Path, member: _Member, count: int, total: int) -> None:
    if count > MAX_MEMBERS:
        raise _bad(archive, member.name, f"is one of more than {MAX_MEMBERS:,} files and folders")
    if member.size > MAX_FILE_BYTES:
        raise _bad(archive, member.name, f"would take {member.size:,} bytes, too many for a photo")
    if total > MAX_TOTAL_BYTES:
        raise _bad(archive, member.name, f"would make more than {MAX_TOTAL_BYTES:,} bytes in all")


def _members(archive: Path) -> Iterator[_Member]:
    with open(archive, "rb") as handle:
        gzipped = handle.read(2) == b"\x1f\x8b"
    return _tar_members(archive) if gzipped else _zip_members(archive)


def _tar_members(archive: Path) -> Iterator[_Member]:
    # Python 3.11.0 to 3.11.3 lack the filter; the checks here refuse all that it refuses.
    data_filter = getattr(tarfile, "data_filter", None)
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            if not (member.isreg() or member.isdir()):
                raise _bad(archive, member.name, "is a link, a device or a pipe")
            _safe_parts(archive, member.name)
            if data_filter:
                data_filter(member, str(archive.parent))
            opener = partial(tar.extractfile, member) if member.isreg() else None
            yield _Member(member.name, member.size, opener)


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as bundle:
        for info in bundle.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _bad(archive, info.filename, "is a link, a device or a pipe")
            if info.flag_bits & 1 or info.compress_type not in PLAIN_ZIP:
                raise _bad(archive, info.filename, "is encrypted or compressed in an unusual way")
            opener = None if info.is_dir() else partial(bundle.open, info)
            yield _Member(info.filename, info.file_size, opener)
