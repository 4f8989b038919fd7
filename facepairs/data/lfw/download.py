"""Download one file over HTTP; an interrupted transfer resumes where it stopped.

The bytes received so far are in `NAME.part`, and `NAME.part.json` names the remote file that they
belong to.

References:
    RFC 9110, sections 13.1.5 (If-Range) and 14 (Range).
"""

import contextlib
import http.client
import re
import shutil
import ssl
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import IO, NoReturn
from urllib.parse import urlsplit

import msgspec

from facepairs.data.unpack import DISK_FULL_ERRORS, DiskFull
from facepairs.errors import BadTransfer
from facepairs.support.progress import ProgressCallback, ignore_progress

TIMEOUT_S = 30.0
MAX_ATTEMPTS = 5  # in a row that bring no further byte
FIRST_WAIT_S = 1.0  # before the second attempt; doubled each time
MAX_BYTES = 2 * 2**30
CHUNK_BYTES = 2**18
TEMPORARY_STATUSES = (408, 425, 429, 500, 502, 503, 504)


class _TryAgain(Exception):
    """A failure that may not occur again."""


class _NoFtp(urllib.request.FTPHandler):
    """Refuses redirections to ftp: (urllib itself refuses all others but http and https)."""

    def ftp_open(self, req: urllib.request.Request) -> NoReturn:
        raise BadTransfer(f"{req.full_url}: the server redirects to ftp; use another address")


class _RemoteVersion(msgspec.Struct, frozen=True):
    """The version of a remote file that a `.part` file belongs to; `total` is 0 if unknown."""

    url: str
    validator: str
    total: int


def download(
    url: str,
    target: Path,
    progress: ProgressCallback = ignore_progress,
    copies: int = 1,
) -> Path:
    """Download a file, resuming an earlier transfer; its content is not checked.

    Args:
        url: An http or https address.
        target: Where the file is meant to go; it is not written itself.
        progress: Called with the bytes received and the bytes in all.
        copies: How many times the file's size must be free on the disk.

    Returns:
        The path of the complete file, `target` + `.part`.

    Raises:
        BadTransfer: The address is not http or https, the server refuses or offers more than
            MAX_BYTES, the disk is full, or MAX_ATTEMPTS attempts brought no further byte. The
            `.part` file is kept.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadTransfer(f"{url!r} is not an http or https address; use one that is")
    part = target.with_name(target.name + ".part")
    largest, failures = -1, 0
    while True:
        try:
            _transfer(url, part, progress, copies)
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
        except OSError as error:
            if error.errno in DISK_FULL_ERRORS:
                raise DiskFull(part.parent) from None
            raise BadTransfer(
                f"cannot write {part}: {error.strerror or error}; choose another folder"
            ) from None
        else:
            _state_path(part).unlink(missing_ok=True)
            return part


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _state_path(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _state_path(part).unlink(missing_ok=True)


def _resumable(part: Path, url: str) -> tuple[_RemoteVersion, int]:
    """Return what the `.part` file belongs to and its size, 0 if it cannot be resumed."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        remote = msgspec.json.decode(_state_path(part).read_bytes(), type=_RemoteVersion)
        if remote.url == url:
            return remote, _size(part)
    return _RemoteVersion(url, "", 0), 0


def _transfer(url: str, part: Path, progress: ProgressCallback, copies: int) -> None:
    """Request the missing bytes and append them to the `.part` file."""
    remote, size = _resumable(part, url)
    if size and size == remote.total:
        return
    headers = {"User-Agent": "facepairs", "Accept-Encoding": "identity"}
    if size:
        headers["Range"] = f"bytes={size}-"
        if remote.validator:
            headers["If-Range"] = remote.validator
    response = _open(urllib.request.Request(url, headers=headers), part)  # noqa: S310  checked above
    if response is None:
        return
    with contextlib.closing(response):
        if response.status == HTTPStatus.PARTIAL_CONTENT and size:
            total = _resumed_total(response, part, size, remote)
        else:
            size, total = 0, int(response.headers.get("Content-Length") or 0)
            remote = _RemoteVersion(url, _validator(response), total)
        if total > MAX_BYTES:
            raise BadTransfer(f"{url}: {total:,} bytes are offered; use another address")
        needed = copies * total - size
        if needed > shutil.disk_usage(part.parent).free:
            raise DiskFull(part.parent, needed)
        with open(part, "ab" if size else "wb") as out:
            _state_path(part).write_bytes(msgspec.json.encode(remote))
            size = _copy_body(response, out, size, total, progress)
    if total and size != total:
        raise _TryAgain(f"the connection ended after {size:,} of {total:,} bytes")


def _open(request: urllib.request.Request, part: Path) -> http.client.HTTPResponse | None:
    """Send a request; return None if the server reports that the `.part` file is complete."""
    url = request.full_url
    try:
        opener = urllib.request.build_opener(_NoFtp)
        response: http.client.HTTPResponse = opener.open(request, timeout=TIMEOUT_S)
        return response
    except urllib.error.HTTPError as error:
        with error:
            if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                if error.headers.get("Content-Range") == f"bytes */{_size(part)}":
                    return None
                _discard(part)
                raise _TryAgain("the file on the server has changed") from None
            answer = f"the server answered {error.code} {error.reason}"
            if error.code in TEMPORARY_STATUSES:
                raise _TryAgain(answer) from None
            raise BadTransfer(f"{url}: {answer}; check whether the address has moved") from None
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise BadTransfer(f"{url}: {reason}; use another address") from None
        raise _TryAgain(f"no connection ({str(reason) or type(reason).__name__})") from None


def _validator(response: http.client.HTTPResponse) -> str:
    """Return what identifies this version of the remote file; a weak ETag does not."""
    etag = response.headers.get("ETag") or ""
    return etag if etag.startswith('"') else response.headers.get("Last-Modified") or ""


def _resumed_total(
    response: http.client.HTTPResponse, part: Path, size: int, remote: _RemoteVersion
) -> int:
    """Check that a 206 response continues the `.part` file; return the remote file's size."""
    span = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range") or "")
    total = int(span.group(2)) if span and span.group(2) != "*" else 0
    same_version = not remote.validator or _validator(response) in ("", remote.validator)
    same_size = not remote.total or total in (0, remote.total)
    if not span or int(span.group(1)) != size or not same_version or not same_size:
        _discard(part)
        raise _TryAgain("the server continued another file than the one that was begun")
    return total or remote.total


def _copy_body(
    response: http.client.HTTPResponse,
    out: IO[bytes],
    size: int,
    total: int,
    progress: ProgressCallback,
) -> int:
    """Append the response's body; return the size reached."""
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
