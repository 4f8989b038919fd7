"""Recognise a file's content by its SHA-256, or a change of it without reading the file."""

import hashlib
from pathlib import Path


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal digits; raise OSError if it cannot be read."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def file_stamp(path: Path) -> str:
    """Return a stamp that changes whenever the file is written or replaced; "" if it is missing."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return ""
    times = f"{status.st_mtime_ns} {status.st_ctime_ns}"  # the latter is not set by `touch`
    return f"{status.st_size} {times} {status.st_dev} {status.st_ino}"
