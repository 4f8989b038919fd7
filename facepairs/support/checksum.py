"""A file's SHA-256 in a file beside it, NAME.sha256, in the format of `sha256sum --check`.

For text that other programs read and write too, and that has no place for a checksum of its own.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from facepairs.errors import BadData
from facepairs.support.atomic import atomic_file


def checksum_path(path: Path) -> Path:
    """Return the path of a file's checksum."""
    return path.with_name(f"{path.name}.sha256")


@contextmanager
def checksummed_file(target: Path) -> Iterator[IO[Any]]:
    """Open a UTF-8 text to write as `atomic_file` does, and write its checksum afterwards.

    The old checksum is removed first: a kill in between leaves a file without a checksum, never
    with a wrong one.

    Raises:
        BadData: The old checksum cannot be removed, or as `atomic_file` does.
    """
    beside = checksum_path(target)
    with atomic_file(target) as handle:
        yield handle
        handle.flush()
        try:
            beside.unlink(missing_ok=True)
        except OSError as error:
            raise BadData(f"cannot replace {beside}: {error.strerror}; remove it") from None
    with atomic_file(beside) as handle:
        handle.write(f"{_sha256(target)}  {target.name}\n")


def verify_checksum(path: Path) -> None:
    """Compare a file with the checksum beside it; do nothing when there is none.

    Raises:
        BadData: They differ, or the checksum cannot be read.
    """
    beside = checksum_path(path)
    try:
        line = beside.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadData(f"{beside}: {error.strerror}; remove it to skip this check") from None
    if not re.fullmatch(r"[0-9a-f]{64}  [^\n]*\n", line):
        raise BadData(f"{beside}: is not a SHA-256 checksum; remove it to skip this check")
    if line[:64] != _sha256(path):
        raise BadData(
            f"{path}: has changed since it was written (its SHA-256 differs from {beside.name}); "
            f"write it again, or remove {beside.name} if the change was intended"
        )


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal digits; raise OSError if it cannot be read."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _sha256(path: Path) -> str:
    try:
        return file_sha256(path)
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}; choose a file that can be read") from None
