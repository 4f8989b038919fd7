"""Fetch Labeled Faces in the Wild: images and official lists, checked before they are used.

References:
    Huang, Ramesh, Berg, Learned-Miller, "Labeled Faces in the Wild", UMass Amherst TR 07-49, 2007.
    Huang, Mattar, Lee, Learned-Miller, "Learning to Align from Scratch", NIPS 2012.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from facepairs.data.download import downloaded, wrong_content
from facepairs.data.importing import find_people
from facepairs.data.index import FaceIndex
from facepairs.data.unpack import unpack
from facepairs.errors import BadData, BadTransfer
from facepairs.support.atomic import atomic_folder
from facepairs.support.places import file_sha256


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
        own = contextlib.nullcontext(archive)  # which the user has put there, and keeps
        with (
            own if archive.is_file() else downloaded(images.url, archive) as found,
            atomic_folder(folder) as temporary,
        ):
            _unpack_images(found, images, temporary)
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
    with downloaded(remote.url, target, [remote.sha256]) as part:
        part.replace(target)


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
    """Unpack an archive of images, and check its content."""
    content = folder / ".archive"
    content.mkdir()
    unpack(archive, content)
    people = find_people(content)
    if people is None:
        raise BadTransfer(f"{images.file}: holds no Person_Name/photo.jpg; try again")
    for entry in list(people.iterdir()):
        entry.rename(folder / entry.name)
    shutil.rmtree(content)
    sha256 = content_sha256(folder)
    if sha256 != images.sha256:
        raise wrong_content(images.url, sha256, [images.sha256])
