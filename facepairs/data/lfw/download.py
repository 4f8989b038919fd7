"""Download one file over HTTP; an interrupted transfer resumes where it stopped.

Whether the bytes received are those of the remote file is for the caller to check: by the checksum,
once the file is complete.

References:
    RFC 9110, section 14 (Range).
"""

import http.client
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import IO

from facepairs.errors import BadTransfer
from facepairs.support import console

TIMEOUT_S = 30.0
MAX_ATTEMPTS = 5  # in a row that bring no further byte
FIRST_WAIT_S = 1.0  # before the second attempt; doubled each time
MAX_BYTES = 2 * 2**30
CHUNK_BYTES = 2**18
TEMPORARY_STATUSES = (408, 425, 429, 500, 502, 503, 504)


class _TryAgain(Exception):
    """A failure that may not occur again."""


def download(url: str, part: Path) -> Path:
    """Download a file, resuming an earlier transfer; its content is not checked.

    Args:
        url: An http or https address.
        part: Where it is written; what an earlier transfer has left there is continued.

    Returns:
        The path of the complete file, `part`.

    Raises:
        BadTransfer: The server refuses or offers more than MAX_BYTES, or MAX_ATTEMPTS attempts
            brought no further byte. What was received is kept.
        OSError: The file cannot be written.
    """
    largest, failures = -1, 0
    while True:
        try:
            _transfer(url, part)
            return part
        except _TryAgain as error:
            size = _size(part)
            failures = 1 if size > largest else failures + 1
            largest = max(largest, size)
            if failures >= MAX_ATTEMPTS:
                raise BadTransfer(
                    f"{url}: {error}; check the connection and try again, "
                    f"the bytes received so far ({size:,} bytes) are kept"
                ) from None
            time.sleep(FIRST_WAIT_S * 2 ** (failures - 1))


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _transfer(url: str, part: Path) -> None:
    """Request the missing bytes and append them to the file."""
    size = _size(part)
    response = _open(url, part, size)
    if response is None:
        return
    with response:
        if response.status != HTTPStatus.PARTIAL_CONTENT:
            size = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {size}-"):
            raise BadTransfer(f"{url}: the server sends another part than asked for; try later")
        total = size + int(response.headers.get("Content-Length") or 0)
        if total > MAX_BYTES:
            raise BadTransfer(f"{url}: {total:,} bytes are offered; use another address")
        with open(part, "ab" if size else "wb") as out:
            size = _copy_body(response, out, size, total)
    if size < total:
        raise _TryAgain(f"the connection ended after {size:,} of {total:,} bytes")


def _open(url: str, part: Path, size: int) -> http.client.HTTPResponse | None:
    """Ask for what follows the first `size` bytes; None if the server says that nothing does."""
    headers = {"User-Agent": "facepairs", **({"Range": f"bytes={size}-"} if size else {})}
    try:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310  a published address
        response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310
        return response
    except urllib.error.HTTPError as error:
        with error:
            if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                if error.headers.get("Content-Range") == f"bytes */{size}":
                    return None
                part.unlink()
                raise _TryAgain("the file on the server has changed") from None
            answer = f"the server answered {error.code} {error.reason}"
            if error.code in TEMPORARY_STATUSES:
                raise _TryAgain(answer) from None
            raise BadTransfer(f"{url}: {answer}; check whether the address has moved") from None
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise _TryAgain(f"no connection ({str(reason) or type(reason).__name__})") from None


def _copy_body(response: http.client.HTTPResponse, out: IO[bytes], size: int, total: int) -> int:
    """Append the response's body; return the size reached."""
    progress = console.progress("downloading")
    while True:
        progress(size, max(size, total))
        try:
            chunk = response.read1(CHUNK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise _TryAgain(f"the connection broke after {size:,} bytes ({reason})") from None
        if not chunk:
            return size
        size += len(chunk)
        if size > MAX_BYTES:
            raise BadTransfer(f"{out.name}: stopped after {MAX_BYTES:,} bytes; use another address")
        out.write(chunk)
