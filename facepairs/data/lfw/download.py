"""Download one file over HTTP; the next run resumes an interrupted transfer where it stopped.

Whether the bytes received are those of the remote file is for the caller to check: by the checksum,
once the file is complete.

References:
    RFC 9110, section 14 (Range).
"""

import http.client
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path

from facepairs.errors import BadTransfer
from facepairs.support import console

TIMEOUT_S = 30.0
MAX_BYTES = 2 * 2**30
CHUNK_BYTES = 2**18


def download(url: str, part: Path) -> Path:
    """Download a file, resuming an earlier transfer; its content is not checked.

    Args:
        url: An http or https address.
        part: Where it is written; what an earlier transfer has left there is continued.

    Returns:
        The path of the complete file, `part`.

    Raises:
        BadTransfer: The server refuses or offers more than MAX_BYTES, or the connection broke. What
            was received is kept.
        OSError: The file cannot be written.
    """
    size = part.stat().st_size if part.exists() else 0
    try:
        response = _request(url, size)
    except urllib.error.HTTPError as error:
        with error:
            if not size or error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                answer = f"the server answered {error.code} {error.reason}"
                raise BadTransfer(f"{url}: {answer}; try later, or check the address") from None
            if error.headers.get("Content-Range") == f"bytes */{size}":
                return part  # nothing is missing
        part.unlink()  # the file on the server has changed
        return download(url, part)
    except (OSError, http.client.HTTPException) as error:
        raise _broken(url, error, size) from None
    with response:
        if response.status != HTTPStatus.PARTIAL_CONTENT:
            size = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {size}-"):
            raise BadTransfer(f"{url}: the server sends another part than asked for; try later")
        total = size + int(response.headers.get("Content-Length") or 0)
        if total > MAX_BYTES:
            raise BadTransfer(f"{url}: {total:,} bytes are offered; use another address")
        _receive(url, response, part, size, total)
    return part


def _request(url: str, size: int) -> http.client.HTTPResponse:
    """Ask for what follows the first `size` bytes."""
    headers = {"User-Agent": "facepairs", **({"Range": f"bytes={size}-"} if size else {})}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  a published address
    response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310
    return response


def _receive(
    url: str, response: http.client.HTTPResponse, part: Path, size: int, total: int
) -> None:
    """Append the response's body to the first `size` bytes of the file."""
    progress = console.progress("downloading")
    with open(part, "ab" if size else "wb") as out:
        while True:
            progress(size, max(size, total))
            try:
                chunk = response.read1(CHUNK_BYTES)
            except (OSError, http.client.HTTPException) as error:
                raise _broken(url, error, size) from None
            if not chunk:
                break
            size += len(chunk)
            if size > MAX_BYTES:
                raise BadTransfer(f"{url}: stopped after {MAX_BYTES:,} bytes; use another address")
            out.write(chunk)
    if size < total:
        raise _broken(url, f"ended after {size:,} of {total:,} bytes", size)


def _broken(url: str, reason: object, size: int) -> BadTransfer:
    """Return the error for a connection that was not made, or that has ended early."""
    text = str(getattr(reason, "reason", reason)) or type(reason).__name__
    return BadTransfer(
        f"{url}: no connection ({text}); check the network and try again: "
        f"the {size:,} bytes received so far are kept"
    )
