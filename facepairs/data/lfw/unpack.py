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
DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
UNSAFE_CHARACTERS = '\\:*?"<>|'  # with a special meaning on some platform
PLAIN_ZIP = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class DiskFull(BadTransfer):
    """The disk has too little free space; the bytes received so far are kept."""

    def __init__(self, folder: Path, needed_bytes: int = 0) -> None:
        needed = f": {needed_bytes / 1e6:,.1f} MB needed" if needed_bytes else ""
        super().__init__(f"no room in {folder}{needed}; free space or choose another folder")


class _Member(NamedTuple):
    name: str
    size: int
    open: Callable[[], IO[bytes] | None] | None  # None for a folder


def unpack(archive: Path, into: Path) -> None:
    """Unpack the regular files and folders of a tgz or zip; hidden ones and `__MACOSX` are skipped.

    Args:
        archive: The archive.
        into: An existing, empty folder. After an error it may hold some of the files.

    Raises:
        BadTransfer: The archive is damaged; a member is a link, a device, encrypted or would land
            outside `into`; there are more than MAX_MEMBERS members, MAX_FILE_BYTES in a file or
            MAX_TOTAL_BYTES together.
        DiskFull: The disk has less free space than the content takes.
    """
    free_bytes = shutil.disk_usage(into).free
    total = 0
    try:
        for count, member in enumerate(_members(archive), 1):
            parts = _safe_parts(archive, member.name)
            total += member.size
            _check_limits(archive, member, count, total)
            if total > free_bytes:
                raise DiskFull(into, total)
            if not any(part.startswith(".") or part == "__MACOSX" for part in parts):
                _write(archive, member, into.joinpath(*parts))
    except FileExistsError as error:
        raise _unsafe(archive, Path(str(error.filename)).name, "occurs twice") from None
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
        raise BadTransfer(
            f"{archive.name}: the archive is damaged ({error}); remove it and download it again"
        ) from None
    except OSError as error:
        if error.errno in DISK_FULL_ERRORS:
            raise DiskFull(into, total) from None
        raise BadTransfer(f"cannot unpack {archive.name} into {into}: {error}") from None


def _write(archive: Path, member: _Member, target: Path) -> None:
    """Create a member's folder or file."""
    source = member.open() if member.open else None
    if source is None:
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, open(target, "xb") as out:  # "x": no member overwrites another
        shutil.copyfileobj(source, out, COPY_BYTES)
    if target.stat().st_size != member.size:
        raise _unsafe(archive, member.name, "does not have the size that the archive states")


def _unsafe(archive: Path, name: str, problem: str) -> BadTransfer:
    return BadTransfer(
        f"{archive.name}: {name!r} {problem}; do not use it, get the archive from its publisher"
    )


def _safe_parts(archive: Path, name: str) -> tuple[str, ...]:
    """Split a member's name; refuse one that could lead outside the folder on any platform."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts:
        raise _unsafe(archive, name, "would land outside the folder")
    if any(letter in UNSAFE_CHARACTERS or letter < " " for letter in name):
        raise _unsafe(archive, name, "has a character in its name that is not safe everywhere")
    return parts


def _check_limits(archive: Path, member: _Member, count: int, total: int) -> None:
    """Refuse an archive that is far larger than any set of photos of faces."""
    for value, limit, unit in (
        (count, MAX_MEMBERS, "files and folders"),
        (member.size, MAX_FILE_BYTES, "bytes in one file"),
        (total, MAX_TOTAL_BYTES, "bytes in all"),
    ):
        if value > limit:
            raise _unsafe(archive, member.name, f"makes {value:,} {unit}, above {limit:,}")


def _members(archive: Path) -> Iterator[_Member]:
    with open(archive, "rb") as handle:
        gzipped = handle.read(2) == b"\x1f\x8b"
    return _tar_members(archive) if gzipped else _zip_members(archive)


def _tar_members(archive: Path) -> Iterator[_Member]:
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            if not (member.isreg() or member.isdir()):
                raise _unsafe(archive, member.name, "is a link, a device or a pipe")
            opener = partial(tar.extractfile, member) if member.isreg() else None
            yield _Member(member.name, member.size, opener)


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as bundle:
        for info in bundle.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _unsafe(archive, info.filename, "is a link, a device or a pipe")
            if info.flag_bits & 1 or info.compress_type not in PLAIN_ZIP:
                raise _unsafe(archive, info.filename, "is encrypted or compressed unusually")
            opener = None if info.is_dir() else partial(bundle.open, info)
            yield _Member(info.filename, info.file_size, opener)
