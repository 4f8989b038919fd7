"""`FaceIndex`: a folder of faces, `root/Person_Name/photo.jpg`, as flat lists and arrays.

People are sorted by name and images by name within a person (by Unicode code point), so the same
folder gives the same index on every machine.

Memory: 80 bytes per image or person, plus its name.
"""

import hashlib
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadData
from facepairs.support.places import is_leftover, refuse_url

READABLE = (  # suffixes of the formats that `photos.formats` knows; those of others are below
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff"),
    *(".pbm", ".pgm", ".pnm", ".ppm", ".avif", ".heic", ".heif"),
)
APART = "_apart"  # the folder in which `group` leaves faces that belong to no person
UNNAMED = re.compile(r"person_(\d{4,})")  # a person whom `group` found, not named yet
RAW_FILES = (  # of cameras
    *(".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".rw2", ".raf", ".pef", ".srw", ".raw"),
)
OTHER_IMAGES = (".jp2", ".j2k", ".jxl", ".psd", ".svg", *RAW_FILES)

SkipReason = Literal[
    "empty_person", "nested_folder", "not_image", "stray_photo", "unreadable", "unsupported"
]


class Skipped(NamedTuple):
    """A file that is not in the index: its path relative to the root, and the reason."""

    path: str
    reason: SkipReason


@dataclass(frozen=True)
class FaceIndex:
    """People and their images.

    Attributes:
        root: The folder.
        people: Names of the people, sorted.
        files: File names of the images, sorted within each person.
        person_of: int32[images], the person of every image.
        first: int64[people + 1], where each person's images begin, and their total number.
        sizes: int64[images], file sizes in bytes, -1 if unknown.
        skipped: Files that are not in the index, except hidden files, APART, and leftovers of NAS,
            Windows and macOS.
        content: int64[images], the first bytes of each file's SHA-256; None before files are read.
        places: The path of each image relative to the root; None where it is that of its name.
    """

    root: Path
    people: list[str]
    files: list[str]
    person_of: npt.NDArray[np.int32]
    first: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    skipped: tuple[Skipped, ...] = ()
    content: npt.NDArray[np.int64] | None = None
    places: list[str] | None = None

    def __len__(self) -> int:
        return len(self.files)

    def images_of(self, person: int) -> range:
        """Return the image numbers of one person."""
        return range(int(self.first[person]), int(self.first[person + 1]))

    @property
    def image_counts(self) -> npt.NDArray[np.int64]:
        """int64[people], the number of images of each person."""
        return np.diff(self.first)

    def name(self, image: int) -> str:
        """Return an image's name, `Person_Name/Person_Name_0001.jpg`."""
        return f"{self.people[int(self.person_of[image])]}/{self.files[image]}"

    def place(self, image: int) -> str:
        """Return an image's path relative to the root."""
        return self.name(image) if self.places is None else self.places[image]

    def path(self, image: int) -> Path:
        """Return an image's path."""
        return self.root / self.place(image)

    @property
    def paths(self) -> list[Path]:
        """The path of every image by number."""
        return [self.root / place for place in self.places or self.names()]

    def names(self) -> Iterator[str]:
        """Yield every image's name, in order."""
        for number, person in enumerate(self.people):
            for image in self.images_of(number):
                yield f"{person}/{self.files[image]}"

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 in hexadecimal digits over every relative path and its content.

        Before the files are read, their sizes stand for the content.
        """
        digest = hashlib.sha256(b"facepairs-index-2\0")
        for name, content in zip(
            self.names(), self.sizes if self.content is None else self.content, strict=True
        ):
            digest.update(os.fsencode(name) + b"\0%d\0" % content)
        return digest.hexdigest()

    def find(self, name: str) -> int | None:
        """Return the number of the image at a path relative to the root, or None."""
        person_name, _, file = name.rpartition("/")
        person = self.find_person(person_name)
        if person is None:
            return None
        images = self.images_of(person)
        return _find(self.files, file, images.start, images.stop)

    def find_person(self, name: str) -> int | None:
        """Return the number of the person with a name, or None."""
        return _find(self.people, name, 0, len(self.people))

    def without(self, images: Iterable[int]) -> "FaceIndex":
        """Return the index without some images, and without people who then have none."""
        dropped = set(images)
        sized = enumerate(zip(self.names(), self.sizes.tolist(), strict=True))
        kept = (file for image, file in sized if image not in dropped)
        index = FaceIndex.from_files(kept, self.root, self.skipped)
        content = None if self.content is None else np.delete(self.content, list(dropped))
        return replace(index, content=content)

    @classmethod
    def from_listing(cls, names: Iterable[str], root: Path = Path()) -> "FaceIndex":
        """Index relative paths `Person/file.jpg` in any order, without reading any file."""
        return cls.from_files(((name, -1) for name in names), root)

    @classmethod
    def from_places(cls, places: Mapping[str, str], root: Path) -> "FaceIndex":
        """Index files that lie anywhere below a folder.

        Args:
            places: `Person/file.jpg`, the name of an image → its path relative to the root.
            root: The folder.
        """
        index = cls.from_listing(places, root)
        return replace(index, places=[places[name] for name in index.names()])

    @classmethod
    def from_files(
        cls, files: Iterable[tuple[str, int]], root: Path, skipped: Iterable[Skipped] = ()
    ) -> "FaceIndex":
        """Index a listing of files.

        Args:
            files: Relative path and size in bytes of each file, in any order.
            root: The folder.
            skipped: Files that are not in the index; read after `files`.
        """
        parts = ((name.rpartition("/"), size) for name, size in files)
        rows = sorted((person, file, size) for (person, _, file), size in parts)
        return _build(root, rows, skipped)

    @classmethod
    def scan(cls, root: Path | str) -> "FaceIndex":
        """Index a folder; hidden files are ignored, all others without a place are in `skipped`.

        Raises:
            BadData: The folder is missing, not readable, or has no image in a person's folder.
        """
        refuse_url(root)
        root = Path(root)
        skipped: list[Skipped] = []
        index = _build(root, _walk(root, skipped), skipped)
        if not len(index):
            raise no_images(str(root), skipped)
        return index


def _find(names: list[str], name: str, start: int, stop: int) -> int | None:
    """Return the position of a name, in any Unicode form, in a sorted part of a list."""
    for text in spellings(name):
        at = bisect_left(names, text, start, stop)
        if at < stop and names[at] == text:
            return at
    return None


def spellings(name: str) -> list[str]:
    """Return a name unchanged, composed and decomposed; macOS and Windows differ in this."""
    return [name, normalize("NFC", name), normalize("NFD", name)]


def find_file(root: Path | str, name: str | os.PathLike[str]) -> Path:
    """Return the file of a name from a list, which may be written as on another system.

    If no file has exactly this name, `\\` is tried as `/`, and each part in any Unicode
    form, without blanks around the name.
    """
    path = Path(root, name)
    if os.path.lexists(path):
        return path
    found = Path()
    for part in Path(root, os.fspath(name).strip().replace("\\", "/")).parts:
        ways = (found / spelling for spelling in spellings(part))
        found = next(filter(os.path.lexists, ways), found / part)
    return found if os.path.lexists(found) else path


def walk(
    root: Path, on_error: Callable[[OSError], None] | None = None
) -> Iterator[tuple[Path, list[str]]]:
    """Yield every folder below a root and its files, without leftovers.

    Links to folders are followed; each folder is visited once.
    """
    visited = {os.path.realpath(root)}
    for place, folders, files in os.walk(root, onerror=on_error, followlinks=True):
        for name in list(folders):
            real = os.path.realpath(Path(place, name))
            if real in visited or is_leftover(name):
                folders.remove(name)
            visited.add(real)
        yield Path(place), [name for name in files if not is_leftover(name)]


def files_by_suffix(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the path below a folder, with slashes, of each file in it, and its suffix.

    Raises:
        BadData: The folder cannot be read.
    """
    refuse_url(folder)

    def refuse(error: OSError) -> None:
        if error.filename == os.fspath(folder):
            raise BadData(f"{folder}: {error.strerror}; give a folder of photos") from None

    for place, files in walk(folder, refuse):
        for name in files:
            path = (place / name).relative_to(folder)
            yield path.as_posix(), path.suffix.lower()


def photos_below(folder: Path) -> Iterator[str]:
    """Yield the path of each file with an image's suffix, as `files_by_suffix`."""
    return (name for name, suffix in files_by_suffix(folder) if suffix in READABLE)


def _build(
    root: Path, rows: Iterable[tuple[str, str, int]], skipped: Iterable[Skipped]
) -> FaceIndex:
    """Return the index of sorted rows (person, file, size); `skipped` is read after them."""
    people: list[str] = []
    files: list[str] = []
    person_of: list[int] = []
    sizes: list[int] = []
    for person, file, size in rows:
        if people[-1:] != [person]:
            people.append(person)
        files.append(file)
        person_of.append(len(people) - 1)
        sizes.append(size)
    return FaceIndex(
        root=root,
        people=people,
        files=files,
        person_of=np.array(person_of, np.int32),
        first=np.searchsorted(person_of, np.arange(len(people) + 1)),
        sizes=np.array(sizes, np.int64),
        skipped=tuple(skipped),
    )


def _walk(root: Path, skipped: list[Skipped]) -> Iterator[tuple[str, str, int]]:
    """Yield sorted rows (person, file, size) of a folder, and append what is left out."""
    try:
        with os.scandir(root) as entries:  # keeps only the names of the entries
            names = [entry.name for entry in entries if not is_leftover(entry.name)]
    except OSError as error:
        raise BadData(
            f"{root}: {error.strerror}; give a folder of Person_Name folders with photos"
        ) from None
    for person in sorted(set(names) - {APART}):
        if (root / person).is_file():
            skipped.append(Skipped(person, stray_problem(person)))
            continue
        try:
            with os.scandir(root / person) as entries:
                files = sorted(entries, key=lambda entry: entry.name)
        except OSError:  # a broken link, a device, or no permission
            skipped.append(Skipped(person, "unreadable"))
            continue
        is_empty = True
        for file in files:
            if is_leftover(file.name):
                continue
            problem = _file_problem(file)
            if problem:
                skipped.append(Skipped(f"{person}/{file.name}", problem))
                continue
            is_empty = False
            yield person, file.name, file.stat().st_size
        if is_empty:
            skipped.append(Skipped(person, "empty_person"))


def _file_problem(entry: os.DirEntry[str]) -> SkipReason | None:
    """Return why something in a person's folder is not a photo."""
    try:
        entry.stat()  # of what a link leads to
    except OSError:  # a broken or circular link, or no permission
        return "unreadable"
    if entry.is_dir():
        return "nested_folder"
    return name_problem(entry.name) if entry.is_file() else "unreadable"


def no_images(root: str, skipped: Iterable[Skipped]) -> BadData:
    """Return the error for a folder without an image in a person's folder.

    Args:
        root: The folder, for the message.
        skipped: The files in it.
    """
    reasons = {reason: path for path, reason in skipped}
    if "nested_folder" in reasons:
        place = Path(root, reasons["nested_folder"]).parent
        advice = f"give the folder that holds the folders of the people, {place} or one in it"
    elif "stray_photo" in reasons:
        advice = "give the folder that holds a folder for each person"
    else:
        advice = f"use one of the formats {', '.join(READABLE)}"
    return BadData(f"{root}: no images; expected {root}/Person_Name/photo.jpg; {advice}")


def stray_problem(name: str) -> SkipReason:
    """Return why a file outside any person's folder is not used."""
    return "not_image" if name_problem(name) == "not_image" else "stray_photo"


def name_problem(name: str) -> SkipReason | None:
    """Return why a file cannot be a photo, from its name alone; None if it can."""
    suffix = Path(name).suffix.lower()
    if suffix in OTHER_IMAGES:
        return "unsupported"
    return None if suffix in READABLE else "not_image"
