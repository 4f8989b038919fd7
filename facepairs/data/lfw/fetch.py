"""Fetch Labeled Faces in the Wild: images and official lists, checked before they are used.

Source: Huang, Ramesh, Berg, Learned-Miller, *Labeled Faces in the Wild*, UMass Amherst TR 07-49,
2007; deep funneling: Huang, Mattar, Lee, Learned-Miller, NIPS 2012.
"""

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from facepairs.data.index import FaceIndex
from facepairs.data.lfw.download import download, file_sha256
from facepairs.data.lfw.unpack import NoRoom, unpack
from facepairs.errors import BadData, BadTransfer
from facepairs.support.atomic import atomic_folder, sweep
from facepairs.support.lock import held

FIGSHARE = "https://ndownloader.figshare.com/files"
UMASS = "https://umass-vis-lfw.github.io"
STAMP = ".facepairs-content"  # in an unpacked folder: the sum of what was unpacked there
FETCHED = ".fetched"  # behind the name of an archive that came from here and goes once unpacked
LOCK = ".fetch.lock"

Images = Literal["deepfunneled", "funneled", "original"]


@dataclass(frozen=True)
class Source:
    """A file to fetch: its name below the output folder, its address, its SHA-256 (hex or "")."""

    file: str
    url: str
    sha256: str


@dataclass(frozen=True)
class Archive(Source):
    """An archive of images, to become `folder`; where `sha256` is "", `content_sha256` is not."""

    folder: str
    content_sha256: str = ""


LISTS = (
    Source(
        "pairs.txt",
        f"{FIGSHARE}/5976006",
        "ea42330c62c92989f9d7c03237ed5d591365e89b3e649747777b70e692dc1592",
    ),
    Source(
        "pairsDevTest.txt",
        f"{FIGSHARE}/5976009",
        "7cb06600ea8b2814ac26e946201cdb304296262aad67d046a16a7ec85d0ff87c",
    ),
    Source(
        "pairsDevTrain.txt",
        f"{FIGSHARE}/5976012",
        "1d454dada7dfeca0e7eab6f65dc4e97a6312d44cf142207be28d688be92aabfa",
    ),
    Source(
        "people.txt",
        f"{UMASS}/people.txt",
        "bc8fa2b7f25c895cf7efb6de4f4fc27ca8b8d1cfa63350ad8b96eae2b198d365",
    ),
    Source(
        "peopleDevTest.txt",
        f"{UMASS}/peopleDevTest.txt",
        "c3ed1f90499473401542101a56c14c1d82396bb8218c67a356d7460601047555",
    ),
    Source(
        "peopleDevTrain.txt",
        f"{UMASS}/peopleDevTrain.txt",
        "2e58df13ba4cc143189336e001cc2c195f1dfa5b29a6475c02857be353c2a2fa",
    ),
)
ARCHIVES: Mapping[str, Archive] = {
    "deepfunneled": Archive(
        "lfw-deepfunneled.zip",
        f"{UMASS}/lfw-deepfunneled.zip",
        "",  # never published
        "lfw-deepfunneled",
        content_sha256="d0fb2c9fb1d774d176241df61637fa8f879c9f2a76dcdc02b8aa2d4e9fb318b7",
    ),
    "funneled": Archive(
        "lfw-funneled.tgz",
        f"{FIGSHARE}/5976015",
        "b47c8422c8cded889dc5a13418c4bc2abbda121092b3533a83306f90d900100a",
        "lfw_funneled",
    ),
    "original": Archive(
        "lfw.tgz",
        f"{FIGSHARE}/5976018",
        "055f7d9c632d7370e6fb4afc7468d40f970c34a80d4c6f50ffec63f5a8d536c0",
        "lfw",
    ),
}


def fetch_lfw(
    out: Path,
    images: Images = "deepfunneled",
    progress: Callable[[int, int], None] | None = None,
    *,
    lists: Sequence[Source] = LISTS,
    archives: Mapping[str, Archive] = ARCHIVES,
    free_bytes: int | None = None,
    retry_s: float = 1.0,
) -> Path:
    """Fetch the official lists and one set of images into `out`; give the images' folder.

    Makes `out/pairs.txt`, the five other lists, and `out/lfw-deepfunneled/Name/Name_0001.jpg` (or
    `lfw_funneled`, `lfw`). What is there already, and whole, is not fetched again; an interrupted
    transfer goes on from its `.part` file. `progress(done, total)` counts bytes of the image
    archive. `lists` and `archives` name mirrors; `free_bytes` stands for what is free on the disk;
    `retry_s` is the wait before the first of a few retries, doubled each time. An archive that the
    user had put there is used and stays; one that was fetched goes, after a kill with the next run.
    Raises BadTransfer when a transfer fails for good, when content is not what was promised, when
    the disk is too small, when a folder of that name holds something else, or when another process
    fetches into `out`.
    """
    if images not in archives:
        raise BadTransfer(f"images is {images!r}, not one of {', '.join(archives)}")
    wanted = archives[images]
    folder, given = out / wanted.folder, out / wanted.file
    fetched = given.with_name(given.name + FETCHED)
    try:
        with held(out / LOCK, out, BadTransfer, "choose another place"):
            for source in lists:
                target = out / source.file
                _fetch(source, target, None, copies=1, free_bytes=free_bytes, retry_s=retry_s)
            if not _is_complete(folder, wanted):
                archive = given if _is_there(given, wanted) else fetched
                # Both stand side by side for a while, and JPEGs hardly compress: twice.
                _fetch(wanted, archive, progress, copies=2, free_bytes=free_bytes, retry_s=retry_s)
                _unpack_whole(archive, folder, wanted, free_bytes)
            fetched.unlink(missing_ok=True)
            sweep(folder)  # what a killed run had half unpacked
    except OSError as error:
        place = error.filename or out
        raise BadTransfer(f"cannot write {place}: {error.strerror}; choose another place") from None
    return folder


def content_sha256(folder: Path) -> str:
    """SHA-256 (hex) over `Name/file.jpg`, NUL and the file's SHA-256 digest, in sorted order.

    Raises BadData for a folder without images, OSError for a file that cannot be read.
    """
    digest = hashlib.sha256()
    for name in FaceIndex.scan(folder).names():
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()


def _is_there(target: Path, source: Source) -> bool:
    return target.is_file() and source.sha256 in ("", file_sha256(target))


def _fetch(
    source: Source,
    target: Path,
    progress: Callable[[int, int], None] | None,
    *,
    copies: int,
    free_bytes: int | None,
    retry_s: float,
) -> None:
    """Make the file be there, with its sum."""
    if _is_there(target, source):
        return
    part = download(
        source.url, target, progress, copies=copies, free_bytes=free_bytes, retry_s=retry_s
    )
    found = file_sha256(part)
    if source.sha256 not in ("", found):
        part.unlink()
        raise _other_content(source.url, "file", found, source.sha256)
    part.replace(target)


def _other_content(url: str, what: str, found: str, expected: str) -> BadTransfer:
    return BadTransfer(
        f"{url}: the {what}'s SHA-256 is {found}, not {expected}; it was removed: try again, "
        f"and if that does not help it has changed or is tampered with on the way"
    )


def _is_complete(folder: Path, wanted: Archive) -> bool:
    """Tell whether the folder holds just what the archive does; refuse one that holds other."""
    if not folder.exists() and not folder.is_symlink():
        return False
    with contextlib.suppress(OSError, UnicodeDecodeError, BadData):
        stamp = folder / STAMP
        if content_sha256(folder) == (wanted.content_sha256 or stamp.read_text("utf-8").strip()):
            return True
    raise BadTransfer(
        f"{folder} exists, and is not the whole set of images as published; "
        f"move it away or choose another place"
    )


def _unpack_whole(archive: Path, folder: Path, wanted: Archive, free_bytes: int | None) -> None:
    """Unpack beside `folder`, check the content, and only then give it that name."""
    try:
        with atomic_folder(folder) as temporary:
            unpack(archive, temporary, free_bytes)
            found = _unpacked_sha256(archive, temporary)
            if wanted.content_sha256 not in ("", found):
                raise _other_content(wanted.url, "content", found, wanted.content_sha256)
            (temporary / STAMP).write_text(found + "\n", encoding="utf-8")
    except NoRoom:
        raise
    except BadTransfer:
        archive.unlink()
        raise
    except BadData as error:  # the folder cannot be written
        raise BadTransfer(str(error)) from None


def _unpacked_sha256(archive: Path, folder: Path) -> str:
    """Move the people up out of the archive's own top folder, and give the content's sum."""
    top = _people_folder(folder)
    if top != folder:
        aside = folder / ".people"
        top.rename(aside)
        for rest in [entry for entry in folder.iterdir() if entry != aside]:
            shutil.rmtree(rest) if rest.is_dir() else rest.unlink()
        for entry in list(aside.iterdir()):
            entry.rename(folder / entry.name)
        aside.rmdir()
    try:
        return content_sha256(folder)
    except BadData:
        raise BadTransfer(f"{archive.name}: holds no Name/photo.jpg; it was removed") from None


def _people_folder(folder: Path) -> Path:
    folders = [entry for entry in folder.iterdir() if entry.is_dir()]
    if len(folders) == 1 and any(entry.is_dir() for entry in folders[0].iterdir()):
        return _people_folder(folders[0])
    return folder
