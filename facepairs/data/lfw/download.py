"""Download one file over HTTP so that an interrupted transfer goes on where it stopped.

What has come stands in `NAME.part`, and beside it, in `NAME.part.json`, of which remote file that
is a part. Source: RFC 9110, 13.1.5 (If-Range) and 14 (Range).
"""

import contextlib
import hashlib
import http.client
import json
import re
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import urlsplit

from facepairs.data.lfw.unpack import NO_ROOM, NoRoom
from facepairs.errors import BadTransfer

TIMEOUT_S = 30.0
TRIES = 5  # without a byte of progress
MAX_BYTES = 2 * 2**30
CHUNK_BYTES = 2**18
PASSING = (408, 425, 429, 500, 502, 503, 504)

Progress = Callable[[int, int], None]


class _Retry(Exception):
    """What may pass when tried again."""


class _Remote(NamedTuple):
    """Which remote file a `.part` belongs to; `total` is 0 where the server does not tell."""

    url: str
    validator: str
    total: int


def download(
    url: str,
    target: Path,
    progress: Progress | None = None,
    *,
    copies: int = 1,
    free_bytes: int | None = None,
    retry_s: float = 1.0,
) -> Path:
    """Download `url` whole into `target` + `.part`, and give that path; its content is unchecked.

    `progress(done, total)` counts bytes; `copies` is how many times the file's size must be free on
    the disk (`free_bytes`, default: what is free); `retry_s` is the wait before the second try,
    doubled each time. Raises BadTransfer for an address that is not http or https, a refusal by the
    server, a full disk, and when TRIES tries brought no byte more; the `.part` is kept for later.
    """
    part = target.with_name(target.name + ".part")
    best, fruitless = -1, 0
    while True:
        try:
            _transfer(_checked(url), part, progress, copies, free_bytes)
        except _Retry as error:
            reached = _size(part)
            fruitless = 1 if reached > best else fruitless + 1
            best = max(best, reached)
            if fruitless >= TRIES:
                raise BadTransfer(
                    f"{url}: {error}; check the connection and try again, "
                    f"what has come so far ({reached:,} bytes) is kept"
                ) from None
            time.sleep(retry_s * 2 ** (fruitless - 1))
        except OSError as error:
            if error.errno in NO_ROOM:
                raise NoRoom(part.parent) from None
            raise BadTransfer(
                f"cannot write {part}: {error.strerror or error}; choose another place"
            ) from None
        else:
            _state(part).unlink(missing_ok=True)
            return part


def file_sha256(path: Path) -> str:
    """SHA-256 (hex) of a file; raises OSError."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadTransfer(f"{url!r} is no http or https address; give one that is")
    return url


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _state(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _state(part).unlink(missing_ok=True)


def _remembered(part: Path, url: str) -> _Remote | None:
    """Say what the `.part` is a part of; None where that is not known, or is another file."""
    try:
        cells = json.loads(_state(part).read_text(encoding="utf-8"))
        remote = _Remote(str(cells["url"]), str(cells["validator"]), int(cells["total"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return remote if remote.url == url else None


def _transfer(
    url: str, part: Path, progress: Progress | None, copies: int, free_bytes: int | None
) -> None:
    """Ask for what is missing, and append it."""
    remote = _remembered(part, url)
    have = _size(part) if remote else 0
    if remote and have and have == remote.total:
        return
    headers = {"User-Agent": "facepairs", "Accept-Encoding": "identity"}
    if remote and have:
        headers["Range"] = f"bytes={have}-"
        if remote.validator:
            headers["If-Range"] = remote.validator
    response = _open(urllib.request.Request(url, headers=headers), part)  # noqa: S310  checked above
    if response is None:
        return
    with contextlib.closing(response):
        if response.status == HTTPStatus.PARTIAL_CONTENT and remote and have:
            total = _range_total(response, part, have, remote)
        else:
            have, total = 0, int(response.headers.get("Content-Length") or 0)
            remote = _Remote(url, _validator(response), total)
        _check_room(part, have, total, copies, free_bytes)
        with open(part, "ab" if have else "wb") as out:
            _state(part).write_text(json.dumps(remote._asdict()), encoding="utf-8")
            have = _copy(response, out, have, total, progress)
    if total and have != total:
        raise _Retry(f"the connection ended after {have:,} of {total:,} bytes")


def _open(request: urllib.request.Request, part: Path) -> http.client.HTTPResponse | None:
    """Open the connection; None when the server says that the `.part` is the whole file."""
    # The default opener would follow a redirection to ftp:, too.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    url = request.full_url
    try:
        response: http.client.HTTPResponse = opener.open(request, timeout=TIMEOUT_S)
        return response
    except urllib.error.HTTPError as error:
        with error:
            if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                told = re.fullmatch(r"bytes \*/(\d+)", error.headers.get("Content-Range") or "")
                if told and int(told.group(1)) == _size(part):
                    return None
                _discard(part)
                raise _Retry("the file on the server has changed") from None
            if error.code in PASSING:
                raise _Retry(f"the server answered {error.code} {error.reason}") from None
            raise BadTransfer(
                f"{url}: the server answered {error.code} {error.reason}; "
                f"look whether the address has moved"
            ) from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, str | ssl.SSLCertVerificationError):
            raise BadTransfer(f"{url}: {error.reason}; give another address") from None
        raise _Retry(f"no connection ({error.reason})") from None
    except (OSError, http.client.HTTPException) as error:
        raise _Retry(f"no connection ({str(error) or type(error).__name__})") from None


def _validator(response: http.client.HTTPResponse) -> str:
    """Give what identifies this version of the remote file; a weak ETag does not do so."""
    etag = response.headers.get("ETag") or ""
    return etag if etag.startswith('"') else response.headers.get("Last-Modified") or ""


def _range_total(response: http.client.HTTPResponse, part: Path, have: int, remote: _Remote) -> int:
    """Check that a 206 continues the `.part`; give the whole file's size (0: not told)."""
    told = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range") or "")
    total = int(told.group(2)) if told and told.group(2) != "*" else 0
    same_version = not remote.validator or _validator(response) in ("", remote.validator)
    same_size = not remote.total or total in (0, remote.total)
    if not told or int(told.group(1)) != have or not same_version or not same_size:
        _discard(part)
        raise _Retry("the server continued another file than the one that was begun")
    return total or remote.total


def _check_room(part: Path, have: int, total: int, copies: int, free_bytes: int | None) -> None:
    if total > MAX_BYTES:
        raise BadTransfer(f"{part.stem}: {total:,} bytes are offered, far more than it should have")
    free = shutil.disk_usage(part.parent).free if free_bytes is None else free_bytes
    needed = copies * total - have
    if needed > free:
        raise NoRoom(part.parent, needed)


def _copy(
    response: http.client.HTTPResponse,
    out: IO[bytes],
    have: int,
    total: int,
    progress: Progress | None,
) -> int:
    """Append the response's body; give the size reached."""
    while True:
        if progress:
            progress(have, max(have, total))
        try:
            chunk = response.read1(CHUNK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise _Retry(
                f"the connection broke after {have:,} bytes ({str(error) or type(error).__name__})"
            ) from None
        if not chunk:
            return have
        have += len(chunk)
        if have > MAX_BYTES:
            raise BadTransfer(f"{out.name}: more than {MAX_BYTES:,} bytes came; it was stopped")
        out.write(chunk)
