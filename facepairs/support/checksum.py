"""SHA-256 of files, also in a file beside them, NAME.sha256, as older versions wrote for scores.

The format is that of `sha256sum --check`.
"""

import hashlib
import re
from pathlib import Path

from facepairs.errors import BadData


def checksum_path(path: Path) -> Path:
    """Return the path of a file's checksum."""
    return path.with_name(f"{path.name}.sha256")


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
