"""Unpack a zip or tar archive without trusting it."""

import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from facepairs.errors import BadTransfer
from facepairs.support import console
from facepairs.support.places import is_leftover

MAX_MEMBERS = 100_000
MAX_FILE_BYTES = 64 * 2**20
MAX_TOTAL_BYTES = 4 * 2**30
UNSAFE_CHARACTERS = '\\:*?"<>|'  # with a special meaning on some platform
ZIP = b"PK"  # the first bytes
DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError)
UTF8_FLAG = 0x800
PLAIN_ZIP = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


Member = tuple[str, int, tarfile.TarInfo | zipfile.ZipInfo]  # with its name and size in bytes


def unpack(archive: Path, into: Path) -> None:
    """Unpack the regular files and folders of a zip, or of a tar, compressed or not.

    Hidden files and leftovers of operating systems (`places.LEFTOVERS`) are skipped.

    Args:
        archive: The archive.
        into: An existing, empty folder. After an error it may hold some of the files.

    Raises:
        BadTransfer: The archive is damaged; a member is a link, a device, encrypted or would land
            outside `into`; there are more than MAX_MEMBERS members, MAX_FILE_BYTES in a file or
            MAX_TOTAL_BYTES together.
        OSError: `into` cannot be written.
    """
    total = done = 0
    progress = console.progress("unpacking")
    try:
        archive_bytes = archive.stat().st_size
        with open(archive, "rb") as handle, _open(handle) as opened:
            for count, (name, size, member) in enumerate(_members(archive, opened), 1):
                total += size
                parts = _check_name(archive, name)
                _check_limits(archive, name, count, size, total)
                if any(map(is_leftover, parts)):
                    continue
                if into.joinpath(*parts).is_file():
                    raise _unsafe(archive, name, "occurs twice")
                opened.extract(member, into)  # type: ignore[arg-type]
                done = max(done, handle.tell())
                progress(done, archive_bytes)
            progress(archive_bytes, archive_bytes)
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk; those of decompressors have no number
        raise BadTransfer(
            f"{archive.name}: damaged, or not a zip or tar archive ({error}); download it again"
        ) from None


def _open(handle: IO[bytes]) -> tarfile.TarFile | zipfile.ZipFile:
    is_zip = handle.read(2) == ZIP
    handle.seek(0)
    if is_zip:
        return zipfile.ZipFile(handle)
    try:
        tar = tarfile.open(fileobj=handle, mode="r:*")  # noqa: SIM115  closed by the caller
    except tarfile.ReadError:  # whose message has a line for each way of compression
        raise tarfile.ReadError("it does not begin like one") from None
    # Python 3.11.0 to 3.11.3 lack the filter; the checks here refuse all that it refuses.
    tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
    return tar


def _members(archive: Path, opened: tarfile.TarFile | zipfile.ZipFile) -> Iterator[Member]:
    """Yield the members; refuse everything but regular files and folders."""
    if isinstance(opened, tarfile.TarFile):
        for member in opened:
            if not (member.isreg() or member.isdir()):
                raise _unsafe(archive, member.name, "is a link, a device or a pipe")
            yield member.name, member.size, member
        return
    for info in opened.infolist():
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _unsafe(archive, info.filename, "is a link, a device or a pipe")
        if info.flag_bits & 1 or info.compress_type not in PLAIN_ZIP:
            raise _unsafe(archive, info.filename, "is encrypted or compressed unusually")
        info.filename = _decode_name(info).replace("\\", "/")  # as some programs write on Windows
        yield info.filename, info.file_size, info


def _decode_name(info: zipfile.ZipInfo) -> str:
    """Decode a name as UTF-8 if its bytes are valid: not all programs set the flag for it.

    References:
        PKWARE: APPNOTE.TXT - .ZIP File Format Specification, 4.4.4, bit 11, and appendix D.
    """
    if info.flag_bits & UTF8_FLAG:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


def _unsafe(archive: Path, name: str, problem: str) -> BadTransfer:
    return BadTransfer(
        f"{archive.name}: {name!r} {problem}; do not use it, get the archive from its publisher"
    )


def _check_name(archive: Path, name: str) -> tuple[str, ...]:
    """Return a member's folders and name; refuse those unsafe on any platform."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts:
        raise _unsafe(archive, name, "would land outside the folder")
    if any(letter in UNSAFE_CHARACTERS or letter < " " for letter in name):
        raise _unsafe(archive, name, "has a character in its name that is not safe everywhere")
    return parts


def _check_limits(archive: Path, name: str, count: int, size: int, total: int) -> None:
    """Refuse an archive that is far larger than any set of photos of faces."""
    for value, limit, unit in (
        (count, MAX_MEMBERS, "files and folders"),
        (size, MAX_FILE_BYTES, "bytes in one file"),
        (total, MAX_TOTAL_BYTES, "bytes in all"),
    ):
        if value > limit:
            raise BadTransfer(
                f"{archive.name}: {value:,} {unit} with {name!r}, more than {limit:,}; if you "
                "trust the archive, unpack it with another program and use the folder"
            )
