"""Fetch Labeled Faces in the Wild: images and official lists, checked before they are used.

References:
    Huang, Ramesh, Berg, Learned-Miller, "Labeled Faces in the Wild", UMass Amherst TR 07-49, 2007.
    Huang, Mattar, Lee, Learned-Miller, "Learning to Align from Scratch", NIPS 2012.
"""

import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from facepairs.choices import ImageSet
from facepairs.data.importing.rows import find_people
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.download import download
from facepairs.data.unpack import unpack
from facepairs.errors import BadData, BadTransfer
from facepairs.support.atomic import atomic_folder, sweep
from facepairs.support.checksum import file_sha256
from facepairs.support.lock import held
from facepairs.support.progress import ProgressCallback, ignore_progress

STAMP = ".facepairs-content"  # in an unpacked folder: the checksum of its content
LOCK = ".fetch.lock"


class RemoteFile(msgspec.Struct, frozen=True):
    """A file to download.

    Attributes:
        file: Its name in the output folder.
        url: Its address.
        sha256: Its checksum in hexadecimal digits, or "" if none was published.
    """

    file: str
    url: str
    sha256: str


class Archive(RemoteFile, frozen=True):
    """An archive of images.

    Attributes:
        folder: The folder in the output folder that it is unpacked to.
        content_sha256: `content_sha256` of that folder; required if `sha256` is "".
    """

    folder: str
    content_sha256: str = ""


class _Published(msgspec.Struct, frozen=True):
    lists: tuple[RemoteFile, ...]
    archives: dict[str, Archive]


_published = msgspec.json.decode(
    Path(__file__).with_name("files.json").read_bytes(), type=_Published
)
LISTS, ARCHIVES = _published.lists, _published.archives


def fetch_lfw(
    out: Path,
    images: ImageSet = "deepfunneled",
    progress: ProgressCallback = ignore_progress,
    *,
    lists: Sequence[RemoteFile] = LISTS,
    archives: Mapping[str, Archive] = ARCHIVES,
) -> Path:
    """Download the official lists and one set of images.

    Files that are there and complete are not downloaded again, and an interrupted transfer resumes.
    An archive that the user has put into `out` is used and stays; a downloaded one is removed.

    Args:
        out: The output folder. It gets `pairs.txt`, the five other lists, and
            `lfw-deepfunneled/Name/Name_0001.jpg` (or `lfw_funneled`, `lfw`).
        images: Which set of images.
        progress: Called with the bytes received of the image archive and the bytes in all.
        lists: Where to download the lists, if from a mirror.
        archives: Where to download the images, if from a mirror, by set.

    Returns:
        The folder of the images.

    Raises:
        BadTransfer: A transfer failed, a checksum differs, `out` cannot be written, the folder of
            the images holds something else, or another process downloads into `out`.
    """
    if images not in archives:
        raise BadTransfer(f"images is {images!r}; use one of {', '.join(archives)}")
    archive = archives[images]
    folder = out / archive.folder
    with _writing(out):
        _fetch_lists(lists, out)
        if not _is_complete(folder, archive):
            _unpack(_fetch(archive, out, progress), folder, archive)
        (out / f"{archive.file}.part").unlink(missing_ok=True)
        sweep(folder)  # what a killed process has unpacked in part
    return folder


def fetch_lists(out: Path, lists: Sequence[RemoteFile] = LISTS) -> None:
    """Download the official lists alone, as `fetch_lfw` does."""
    with _writing(out):
        _fetch_lists(lists, out)


def _fetch_lists(lists: Sequence[RemoteFile], out: Path) -> None:
    for remote in lists:
        _fetch(remote, out).replace(out / remote.file)


@contextlib.contextmanager
def _writing(out: Path) -> Iterator[None]:
    """Hold the lock of an output folder; turn an OSError into BadTransfer."""
    try:
        with held(out / LOCK, out, BadTransfer, "choose another folder"):
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


def _fetch(remote: RemoteFile, out: Path, progress: ProgressCallback = ignore_progress) -> Path:
    """Return a checked file: the one in `out`, or a downloaded one, which ends in `.part`."""
    target = out / remote.file
    if target.exists():
        if remote.sha256 in ("", file_sha256(target)):
            return target
        raise BadTransfer(f"{target}: exists and is not the published file; move it away")
    part = download(remote.url, target, progress)
    sha256 = file_sha256(part)
    if remote.sha256 not in ("", sha256):
        part.unlink()
        raise _wrong_content(remote.url, "file", sha256, remote.sha256)
    return part


def _wrong_content(url: str, what: str, sha256: str, expected: str) -> BadTransfer:
    return BadTransfer(
        f"{url}: the SHA-256 of the {what} is {sha256}, not {expected}; it was removed: try again; "
        f"if the error persists, the file has changed or somebody tampers with it on the way"
    )


def _is_complete(folder: Path, archive: Archive) -> bool:
    """Return whether the folder exists; raise BadTransfer unless its content is the archive's."""
    if not folder.exists() and not folder.is_symlink():
        return False
    with contextlib.suppress(OSError, UnicodeDecodeError, BadData):
        expected = archive.content_sha256 or (folder / STAMP).read_text("utf-8").strip()
        if content_sha256(folder) == expected:
            return True
    raise BadTransfer(
        f"{folder} exists, but is not the complete set of images as published; "
        f"move it away or choose another folder"
    )


def _unpack(path: Path, folder: Path, archive: Archive) -> None:
    """Unpack an archive and check its content; `folder` appears whole or not at all."""
    try:
        with atomic_folder(folder) as temporary:
            content = temporary / ".archive"
            content.mkdir()
            unpack(path, content)
            people = find_people(content)
            if people is None:
                raise BadTransfer(
                    f"{path.name}: holds no Person_Name/photo.jpg, and was removed; try again"
                )
            for entry in list(people.iterdir()):
                entry.rename(temporary / entry.name)
            shutil.rmtree(content)
            sha256 = content_sha256(temporary)
            if archive.content_sha256 not in ("", sha256):
                raise _wrong_content(archive.url, "content", sha256, archive.content_sha256)
            (temporary / STAMP).write_text(sha256 + "\n", encoding="utf-8")
    except BadTransfer:
        path.unlink()
        raise
    except BadData as error:  # the folder cannot be written
        raise BadTransfer(str(error)) from None
