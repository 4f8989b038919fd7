"""Download published files: a broken-off download goes on, and a checksum decides."""

import contextlib
import errno
import hashlib
import http.client
import shutil
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import urlsplit

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
FULL = (errno.ENOSPC, errno.EDQUOT)
AGAIN = "run the command again: it goes on where it stopped"
CHANGED = "try again; if the error persists, the file has changed or is tampered with on the way"


@contextlib.contextmanager
def downloaded(
    url: str,
    target: Path,
    sha256s: Collection[str] = (),
    size: int | None = None,
    unpacked_bytes: int = 0,
) -> Iterator[Path]:
    """Yield a downloaded file; it is gone after the block, unless the block renamed it.

    What a broken-off download of the same address and checksums has left beside the target, as
    `.NAME.DIGEST.part`, is not asked for again. Proxies are those of the environment, as
    `urllib.request` knows them.

    Args:
        url: An http or https address.
        target: What the block makes of it; its folder is made.
        sha256s: The file has one of these checksums, in hexadecimal digits; () for any.
        size: The file's size in bytes; None if it is not known, and at most `MAX_BYTES`.
        unpacked_bytes: Space that the block needs beside the file.

    Raises:
        BadConfig: `url` is not an http or https address.
        BadTransfer: The server refuses, the connection broke, or the file has another size or
            checksum.
        BadData: The folder cannot be written or has too little space, or another process is
            downloading the same.
    """
    if not url.lower().startswith(("https://", "http://")):
        raise BadConfig(f"{url}: not an http or https address", "url")
    source = hashlib.sha256(" ".join([url, *sorted(sha256s)]).encode("utf-8", "surrogateescape"))
    part = hidden_beside(target, f"{source.hexdigest()[:8]}.part")
    with held(lock_beside(target), target, BadData):
        _download(url, part, size, unpacked_bytes)
        try:
            if sha256s:
                check_sha256(part, sha256s, url)
            yield part
        except BadTransfer:
            part.unlink(missing_ok=True)  # the next download begins anew
            raise
        part.unlink(missing_ok=True)


def check_sha256(
    path: Path, sha256s: Collection[str], source: object, advice: str = CHANGED
) -> None:
    """Raise BadTransfer unless a file has one of some checksums.

    Args:
        path: The file.
        sha256s: SHA-256 in hexadecimal digits.
        source: Where it comes from, for the message.
        advice: What to do, for the message.
    """
    found = file_sha256(path)
    if found not in sha256s:
        raise wrong_content(f"{source}: {path.stat().st_size:,} bytes", found, sha256s, advice)


def wrong_content(
    source: str, found: str, sha256s: Collection[str], advice: str = CHANGED
) -> BadTransfer:
    """Return the error for a file, or a folder, with another checksum than was published."""
    return BadTransfer(f"{source}: its SHA-256 is {found}, not {' or '.join(sha256s)}; {advice}")


def _download(url: str, part: Path, size: int | None, unpacked_bytes: int) -> None:
    """Download a file, or the rest of it."""
    done, source = part.stat().st_size if part.exists() else 0, url
    headers = {"User-Agent": "facepairs"} | ({"Range": f"bytes={done}-"} if done else {})
    try:
        source += _through(url)
        request = urllib.request.Request(url, headers=headers)  # noqa: S310  see `downloaded`
        with urllib.request.build_opener().open(request, timeout=TIMEOUT_S) as response:
            done, total = _receive(response, source, part, done, size, unpacked_bytes)
    except urllib.error.HTTPError as error:
        if error.code == PAST_THE_END and done:
            if error.headers["Content-Range"] != f"bytes */{done}":
                part.unlink()  # it was the beginning of another file
                _download(url, part, size, unpacked_bytes)
            return  # it was complete
        said = str(error.reason).partition("\n")[0]
        advice = "check the address" if error.code < SERVER_ERROR else "try again later"
        raise BadTransfer(f"{source}: the server answers {error.code} {said}; {advice}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)  # of the network's errors
        reason = getattr(reason, "strerror", None) or reason
        done = part.stat().st_size if part.exists() else 0
        again = AGAIN if done else "run the command again"
        if isinstance(error, OSError) and (error.errno in FULL or error.filename):
            advice = f"free space or choose another folder, then {again}"
            raise BadData(f"{part.parent}: {reason}; {advice}") from None
        after = f" after {done:,} bytes" if done else ""
        advice = f"check the network{' and the proxy' if source != url else ''}, then {again}"
        if isinstance(error, WRONG_ADDRESS) and not isinstance(error, OSError):
            reason, after, advice = "cannot be an address", "", "correct it"
        raise BadTransfer(f"{source}: {reason}{after}; {advice}") from None
    if done < total:
        raise BadTransfer(f"{source}: broke off after {done:,} of {total:,} bytes; {AGAIN}")
    try:
        _check_size(source, done, size)
    except BadTransfer:
        part.unlink()
        raise


def _through(url: str) -> str:
    """Tell the proxy of an address, without its password; raise ValueError for no address."""
    address = urlsplit(url)
    if not address.hostname or address.port == 0:  # `port` raises for what is none
        raise ValueError
    proxy = urllib.request.getproxies().get(address.scheme, "").rpartition("@")[2]
    is_used = proxy and not urllib.request.proxy_bypass(address.netloc)
    return f" through the proxy {proxy}" if is_used else ""


def _check_size(source: str, found: int, size: int | None) -> None:
    """Raise BadTransfer for a file of another size, or one far too large."""
    if found > MAX_BYTES:
        raise BadTransfer(f"{source}: larger than {MAX_BYTES:,} bytes; use another address")
    if size is not None and found != size:
        raise BadTransfer(f"{source}: {found:,} bytes, not {size:,}; {CHANGED}")


def _receive(
    response: http.client.HTTPResponse,
    source: str,
    part: Path,
    done: int,
    size: int | None,
    unpacked_bytes: int,
) -> tuple[int, int]:
    """Write an answer to the part; return its size, and that of the file, 0 if not known."""
    if response.status != PARTIAL:
        done = 0  # this server always sends the whole file
    length = response.length or 0
    total, free = done + length if length else 0, shutil.disk_usage(part.parent).free
    if total:
        _check_size(source, total, size)
    needed = length + unpacked_bytes
    if free < needed:
        sizes = f"{needed / 1e6:,.1f} MB are needed and {free / 1e6:,.1f} MB free"
        raise OSError(errno.ENOSPC, sizes)
    progress, most = console.progress("downloading, MB"), size or MAX_BYTES
    with open(part, "ab" if done else "wb") as out:
        while done <= most and (chunk := response.read1(CHUNK_BYTES)):
            done += len(chunk)
            out.write(chunk)
            progress(done // 2**20, max(done, total) // 2**20)
    return done, total
