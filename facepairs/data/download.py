"""Download published files: a broken-off download goes on, and a checksum decides."""

import contextlib
import http.client
import shutil
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator
from pathlib import Path

from facepairs.errors import BadConfig, BadData, BadTransfer
from facepairs.support import console
from facepairs.support.lock import held, lock_beside
from facepairs.support.places import file_sha256, hidden_beside

TIMEOUT_S = 30.0
MAX_BYTES = 2 * 2**30
CHUNK_BYTES = 2**18
PARTIAL, PAST_THE_END = 206, 416  # HTTP: the rest of the file follows; nothing is left of it
SERVER_ERROR = 500
WRONG_ADDRESS = (ValueError, http.client.InvalidURL)
AGAIN = "run the command again: it goes on where it stopped"


@contextlib.contextmanager
def downloaded(
    url: str, target: Path, sha256s: Collection[str] = (), most_bytes: int = MAX_BYTES
) -> Iterator[Path]:
    """Yield a downloaded file; it is gone after the block, unless the block renamed it.

    What a broken-off download has left beside the target is not asked for again. Proxies are those
    of the environment, as `urllib.request` knows them.

    Args:
        url: An http or https address.
        target: What the block makes of it; its folder is made.
        sha256s: The file has one of these checksums, in hexadecimal digits; () for any.
        most_bytes: A larger file is refused.

    Raises:
        BadConfig: `url` not an http or https address.
        BadTransfer: The server refuses, the connection broke, there is too little space, or the
            file is too large or has another checksum.
        BadData: The folder cannot be written, or another process is downloading the same.
    """
    if not url.lower().startswith(("https://", "http://")):
        raise BadConfig(f"{url}: not an http or https address", "url")
    part = hidden_beside(target, "part")
    with held(lock_beside(target), target, BadData):
        _download(url, part, most_bytes)
        try:
            if sha256s:
                check_sha256(part, sha256s, url)
            yield part
        except BadTransfer:
            part.unlink(missing_ok=True)  # the next download begins anew
            raise
        part.unlink(missing_ok=True)


def check_sha256(path: Path, sha256s: Collection[str], source: object) -> None:
    """Raise BadTransfer unless a file has one of some checksums.

    Args:
        path: The file.
        sha256s: SHA-256 in hexadecimal digits.
        source: Where it comes from, for the message.
    """
    found = file_sha256(path)
    if found not in sha256s:
        raise wrong_content(f"{source}: {path.stat().st_size:,} bytes", found, sha256s)


def wrong_content(source: str, found: str, sha256s: Collection[str]) -> BadTransfer:
    """Return the error for a file, or a folder, with another checksum than was published."""
    return BadTransfer(
        f"{source}: its SHA-256 is {found}, not {' or '.join(sha256s)}; try again; if the error "
        "persists, the file has changed or is tampered with on the way"
    )


def _download(url: str, part: Path, most_bytes: int) -> None:
    """Download a file, or the rest of it."""
    done = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "facepairs"} | ({"Range": f"bytes={done}-"} if done else {})
    try:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310  see `downloaded`
        with urllib.request.build_opener().open(request, timeout=TIMEOUT_S) as response:
            done, total = _receive(response, part, done, most_bytes)
    except urllib.error.HTTPError as error:
        if error.code == PAST_THE_END and done:
            if error.headers["Content-Range"] != f"bytes */{done}":
                part.unlink()  # it was the beginning of another file
                _download(url, part, most_bytes)
            return  # it was complete
        said = str(error.reason).partition("\n")[0]
        advice = "check the address" if error.code < SERVER_ERROR else "try again later"
        raise BadTransfer(f"{url}: the server answers {error.code} {said}; {advice}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)  # of the network's errors
        reason = getattr(reason, "strerror", None) or reason
        advice = f"check network, proxy and free space, then {AGAIN}"
        if isinstance(error, WRONG_ADDRESS) and not isinstance(error, OSError):
            reason, advice = "cannot be an address", "correct it"
        raise BadTransfer(f"{url}: {reason}; {advice}") from None
    if max(done, total) > most_bytes:
        part.unlink()
        raise BadTransfer(f"{url}: larger than {most_bytes:,} bytes; use another address")
    if done < total:
        raise BadTransfer(f"{url}: broke off after {done:,} of {total:,} bytes; {AGAIN}")


def _receive(
    response: http.client.HTTPResponse, part: Path, done: int, most_bytes: int
) -> tuple[int, int]:
    """Write an answer to the part; return its size, and that of the file, 0 if not known."""
    if response.status != PARTIAL:
        done = 0  # this server always sends the whole file
    length = response.length or 0
    total, free = done + length if length else 0, shutil.disk_usage(part.parent).free
    if free < length:
        raise OSError(f"{length // 2**20:,} MB are needed and {free // 2**20:,} MB free")
    progress = console.progress("downloading, MB")
    with open(part, "ab" if done else "wb") as out:
        while max(done, total) <= most_bytes and (chunk := response.read1(CHUNK_BYTES)):
            done += len(chunk)
            out.write(chunk)
            progress(done // 2**20, max(done, total) // 2**20)
    return done, total
