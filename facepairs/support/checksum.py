"""Recognise a file's content by its SHA-256."""

import hashlib
from pathlib import Path


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal digits; raise OSError if it cannot be read."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
