"""Fetch Labeled Faces in the Wild: images and official lists, checked before they are used.

References:
    Huang, Ramesh, Berg, Learned-Miller, "Labeled Faces in the Wild", UMass Amherst TR 07-49, 2007.
    Huang, Mattar, Lee, Learned-Miller, "Learning to Align from Scratch", NIPS 2012.
"""

import contextlib
import hashlib
import http.client
import json
import shutil
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from facepairs.data.importing import find_people
from facepairs.data.index import FaceIndex
from facepairs.data.unpack import unpack
from facepairs.errors import BadData, BadTransfer
from facepairs.support import console
from facepairs.support.atomic import atomic_folder, temporary_beside
from facepairs.support.places import file_sha256

TIMEOUT_S = 30.0
MAX_BYTES = 2 * 2**30
CHUNK_BYTES = 2**18


class RemoteFile(NamedTuple):
    """A file to download.

    Attributes:
        file: Its name in the output folder.
        url: Its address.
        sha256: Its checksum in hexadecimal digits; of an archive of images, `content_sha256` of
            the unpacked folder.
    """

    file: str
    url: str
    sha256: str


_published = json.loads(Path(__file__).with_name("files.json").read_bytes())
LISTS = tuple(RemoteFile(**entry) for entry in _published["lists"])
IMAGES = RemoteFile(**_published["images"])


def fetch_lfw(
    out: Path,
    *,
    lists: Sequence[RemoteFile] = LISTS,
    images: RemoteFile = IMAGES,
) -> Path:
    """Download the official lists and the deep-funneled images.

    Complete files are not downloaded again. An archive that the user has put into `out` is used and
    kept.

    Args:
        out: The output folder. It gets `pairs.txt`, the five other lists, and
            `lfw-deepfunneled/Name/Name_0001.jpg`.
        lists: Where to download the lists, if from a mirror.
        images: Where to download the images, if from a mirror.

    Returns:
        The folder of the images.

    Raises:
        BadTransfer: A transfer failed, a checksum differs, or a list or the folder of the images
            holds something else.
        BadData: `out` cannot be written.
    """
    fetch_lists(out, lists)
    archive = out / images.file
    folder = archive.with_suffix("")
    if not _is_complete(folder, images.sha256):
        with atomic_folder(folder) as temporary:
            _unpack_images(archive, images, temporary)
    return folder


def fetch_lists(out: Path, lists: Sequence[RemoteFile] = LISTS) -> None:
    """Download the official lists alone, as `fetch_lfw` does."""
    for remote in lists:
        _fetch_list(remote, out / remote.file)


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
        if not target.is_file() or file_sha256(target) != remote.sha256:
            raise BadTransfer(f"{target}: exists and is not the published file; move it away")
        return
    with temporary_beside(target) as temporary:
        download(remote.url, temporary)
        sha256 = file_sha256(temporary)
        if sha256 != remote.sha256:
            raise _wrong_content(remote, sha256)


def _wrong_content(remote: RemoteFile, sha256: str) -> BadTransfer:
    return BadTransfer(
        f"{remote.url}: its SHA-256 is {sha256}, not {remote.sha256}; try again; "
        f"if the error persists, the file has changed or is tampered with on the way"
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


def _unpack_images(archive: Path, images: RemoteFile, folder: Path) -> None:
    """Unpack the archive in the folder, or a downloaded one, and check its content."""
    content = folder / ".archive"
    content.mkdir()
    if archive.is_file():
        unpack(archive, content)
    else:
        downloaded = folder / archive.name
        download(images.url, downloaded)
        unpack(downloaded, content)
        downloaded.unlink()
    people = find_people(content)
    if people is None:
        raise BadTransfer(f"{archive.name}: holds no Person_Name/photo.jpg; try again")
    for entry in list(people.iterdir()):
        entry.rename(folder / entry.name)
    shutil.rmtree(content)
    sha256 = content_sha256(folder)
    if sha256 != images.sha256:
        raise _wrong_content(images, sha256)


def download(url: str, target: Path) -> None:
    """Download a file; its content is not checked.

    Args:
        url: An http or https address.
        target: Where it is written.

    Raises:
        BadTransfer: The server refuses or offers more than MAX_BYTES, the connection broke, or the
            file cannot be written.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "facepairs"})  # noqa: S310  a published address
    progress = console.progress("downloading")
    done = 0
    try:
        with (
            urllib.request.urlopen(request, timeout=TIMEOUT_S) as response,  # noqa: S310
            open(target, "wb") as out,
        ):
            total = int(response.headers.get("Content-Length") or 0)
            while max(done, total) <= MAX_BYTES and (chunk := response.read1(CHUNK_BYTES)):
                done += len(chunk)
                out.write(chunk)
                progress(done, max(done, total))
    except (OSError, http.client.HTTPException) as error:
        raise BadTransfer(f"{url}: {error}; check network and free space, and try again") from None
    if max(done, total) > MAX_BYTES:
        raise BadTransfer(f"{url}: larger than {MAX_BYTES:,} bytes; use another address")
    if done < total:
        raise BadTransfer(f"{url}: ended after {done:,} of {total:,} bytes; try again")
