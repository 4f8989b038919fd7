"""A file's SHA-256 in a file beside it, NAME.sha256, as `sha256sum --check` reads it.

For text that other programs read and write too, and that so has no place for a checksum of its own.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from facepairs.errors import BadData
from facepairs.support.atomic import atomic_file


def checksum_of(path: Path) -> Path:
    """Give the place of a file's checksum."""
    return path.with_name(f"{path.name}.sha256")


@contextmanager
def summed_file(target: Path) -> Iterator[IO[Any]]:
    """Open a UTF-8 text to write as `atomic_file` does; its checksum follows once it is whole.

    The old checksum goes first: a kill in between leaves a file without one, never with another's.
    """
    beside = checksum_of(target)
    with atomic_file(target) as handle:
        yield handle
        handle.flush()
        try:
            beside.unlink(missing_ok=True)
        except OSError as error:
            raise BadData(f"cannot replace {beside}: {error.strerror}; remove it") from None
    with atomic_file(beside) as handle:
        handle.write(f"{_sha256(target)}  {target.name}\n")


def check_sum(path: Path) -> None:
    """Compare a file with the checksum beside it; where there is none, there is nothing to say.

    Raises BadData where they differ, or where the checksum cannot be read.
    """
    beside = checksum_of(path)
    try:
        told = beside.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadData(f"{beside}: {error.strerror}; remove it to go on unchecked") from None
    if not re.fullmatch(r"[0-9a-f]{64}  [^\n]*\n", told):
        raise BadData(f"{beside}: is no SHA-256 checksum; remove it to go on unchecked")
    if told[:64] != _sha256(path):
        raise BadData(
            f"{path}: is not as it was written (its SHA-256 is not that of {beside.name}); make it "
            f"anew, or remove {beside.name} if the change was meant"
        )


def _sha256(path: Path) -> str:
    try:
        with open(path, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}; give a file that can be read") from None
