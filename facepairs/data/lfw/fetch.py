"""Fetch Labeled Faces in the Wild: images and official lists, checked before they are used.

An interrupted transfer resumes where it stopped (RFC 9110, section 14).

References:
    Huang, Ramesh, Berg, Learned-Miller, "Labeled Faces in the Wild", UMass Amherst TR 07-49, 2007.
    Huang, Mattar, Lee, Learned-Miller, "Learning to Align from Scratch", NIPS 2012.
"""

import contextlib
import hashlib
import http.client
import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from facepairs.data.importing import find_people
from facepairs.data.index import FaceIndex
from facepairs.data.unpack import unpack
from facepairs.errors import BadData, BadTransfer
from facepairs.support import console
from facepairs.support.atomic import atomic_folder, sweep
from facepairs.support.checksum import file_sha256
from facepairs.support.lock import held

LOCK = ".fetch.lock"
TIMEOUT_S = 30.0
MAX_BYTES = 2 * 2**30
CHUNK_BYTES = 2**18


class RemoteFile(NamedTuple):
    """A file to download.

    Attributes:
        file: Its name in the output folder.
        url: Its address.
        sha256: Its checksum in hexadecimal digits; of an archive of images, `content_sha256` of
            what it unpacks to.
    """

    file: str
    url: str
    sha256: str


_published = json.loads(Path(__file__).with_name("files.json").read_bytes())
LISTS = tuple(RemoteFile(**one) for one in _published["lists"])
IMAGES = RemoteFile(**_published["images"])


def fetch_lfw(
    out: Path,
    *,
    lists: Sequence[RemoteFile] = LISTS,
    images: RemoteFile = IMAGES,
) -> Path:
    """Download the official lists and the deep-funneled images.

    Files that are there and complete are not downloaded again, and an interrupted transfer resumes.
    An archive that the user has put into `out` is used and stays, right or wrong; a downloaded one
    is removed.

    Args:
        out: The output folder. It gets `pairs.txt`, the five other lists, and
            `lfw-deepfunneled/Name/Name_0001.jpg`.
        lists: Where to download the lists, if from a mirror.
        images: Where to download the images, if from a mirror.

    Returns:
        The folder of the images.

    Raises:
        BadTransfer: A transfer failed, a checksum differs, `out` cannot be written, the folder of
            the images holds something else, or another process downloads into `out`.
    """
    archive = out / images.file
    folder, part = archive.with_suffix(""), archive.with_name(f"{archive.name}.part")
    with _writing(out):
        for remote in lists:
            _fetch_list(remote, out / remote.file)
        if not _is_complete(folder, images.sha256):
            if archive.is_file():
                _unpack(archive, folder, images)
            else:
                download(images.url, part)
                try:
                    _unpack(part, folder, images)
                except BadTransfer:
                    part.unlink()
                    raise
        part.unlink(missing_ok=True)
        sweep(folder)  # what a killed process has unpacked in part
    return folder


def fetch_lists(out: Path, lists: Sequence[RemoteFile] = LISTS) -> None:
    """Download the official lists alone, as `fetch_lfw` does."""
    with _writing(out):
        for remote in lists:
            _fetch_list(remote, out / remote.file)


@contextlib.contextmanager
def _writing(out: Path) -> Iterator[None]:
    """Hold the lock of an output folder; turn an OSError into BadTransfer."""
    try:
        with held(out / LOCK, out, BadTransfer):
            yield
    except OSError as error:
        place = error.filename or out
        raise BadTransfer(
            f"cannot write {place}: {error.strerror}; free space or choose another folder"
        ) from None


def content_sha256(folder: Path) -> str:
    """Return the checksum of a folder of faces.

    Args:
        folder: A folder `Name/file.jpg`.

    Returns:
        SHA-256 in hexadecimal digits over `Name/file.jpg`, NUL and the file's SHA-256 digest, for
        every image in sorted order.

    Raises:
        BadData: The folder has no images.
        OSError: A file cannot be read.
    """
    digest = hashlib.sha256()
    for name in FaceIndex.scan(folder).names():
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()


def _fetch_list(remote: RemoteFile, target: Path) -> None:
    """Download a list unless it is there, and check it."""
    if target.exists():
        if file_sha256(target) != remote.sha256:
            raise BadTransfer(f"{target}: exists and is not the published file; move it away")
        return
    part = download(remote.url, target.with_name(f"{target.name}.part"))
    sha256 = file_sha256(part)
    if sha256 != remote.sha256:
        part.unlink()
        raise _wrong_content(remote, sha256)
    part.replace(target)


def _wrong_content(remote: RemoteFile, sha256: str) -> BadTransfer:
    return BadTransfer(
        f"{remote.url}: its SHA-256 is {sha256}, not {remote.sha256}; try again; "
        f"if the error persists, the file has changed or somebody tampers with it on the way"
    )


def _is_complete(folder: Path, sha256: str) -> bool:
    """Return whether the folder exists; raise BadTransfer unless it has this content."""
    if not folder.exists() and not folder.is_symlink():
        return False
    with contextlib.suppress(OSError, BadData):
        if content_sha256(folder) == sha256:
            return True
    raise BadTransfer(
        f"{folder} exists, but is not the complete set of images as published; "
        f"move it away or choose another folder"
    )


def _unpack(path: Path, folder: Path, images: RemoteFile) -> None:
    """Unpack an archive and check its content; `folder` appears whole or not at all."""
    try:
        with atomic_folder(folder) as temporary:
            content = temporary / ".archive"
            content.mkdir()
            unpack(path, content)
            people = find_people(content)
            if people is None:
                raise BadTransfer(f"{path.name}: holds no Person_Name/photo.jpg; try again")
            for entry in list(people.iterdir()):
                entry.rename(temporary / entry.name)
            shutil.rmtree(content)
            sha256 = content_sha256(temporary)
            if sha256 != images.sha256:
                raise _wrong_content(images, sha256)
    except BadData as error:  # the folder cannot be written
        raise BadTransfer(str(error)) from None


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
