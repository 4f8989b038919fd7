"""`FaceIndex`: a folder of faces, `root/Person_Name/photo.jpg`, as flat arrays.

People are sorted by name and images by name within a person (by Unicode code point), so the same
folder gives the same index on every machine. A million files take a few tens of megabytes.
"""

import hashlib
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadData

READABLE = (".jpg", ".jpeg", ".png", ".bmp")  # what Pillow and TensorFlow both read
OTHER_IMAGES = (".webp", ".gif", ".tif", ".tiff", ".heic", ".heif", ".avif", ".jp2", ".ppm")


class StringTable(Sequence[str]):
    """An immutable list of strings in one block of bytes (UTF-8, undecodable bytes kept)."""

    def __init__(self, strings: Iterable[str]) -> None:
        blob, ends = bytearray(), array("q")  # no list of a million objects in between
        for string in strings:
            blob += os.fsencode(string)
            ends.append(len(blob))
        self._blob = bytes(blob)
        self._ends = np.array(ends, np.int64)

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        start = int(self._ends[at - 1]) if at else 0
        return os.fsdecode(self._blob[start : int(self._ends[at])])

    def __iter__(self) -> Iterator[str]:
        start = 0
        for end in self._ends:
            yield os.fsdecode(self._blob[start:end])
            start = int(end)


class Skipped(NamedTuple):
    """Something in the folder that is no part of the index: its path below the root, and why."""

    path: str
    reason: str  # "stray_file" | "unsupported" | "not_image" | "symlink_loop" | "no_permission"
    # | "nested_folder" | "empty_person" | "special_file"


@dataclass(frozen=True)
class FaceIndex:
    """People and their images; image `i` belongs to person `person_of[i]`.

    `images_of(p)` are the consecutive image numbers of person `p`. `sizes` are file sizes in bytes
    (-1 where the index was made from a listing).
    """

    root: Path
    people: StringTable
    files: StringTable
    person_of: npt.NDArray[np.int32]
    first: npt.NDArray[np.int64]  # [people + 1]: where each person's images begin
    sizes: npt.NDArray[np.int64]
    skipped: tuple[Skipped, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.files)

    def images_of(self, person: int) -> range:
        """Give the image numbers of one person."""
        return range(int(self.first[person]), int(self.first[person + 1]))

    @property
    def image_counts(self) -> npt.NDArray[np.int64]:
        """int64[people]: how many images each person has."""
        return np.diff(self.first)

    def name(self, image: int) -> str:
        """Give an image's path below the root, with `/`: `Person_Name/Person_Name_0001.jpg`."""
        return f"{self.people[int(self.person_of[image])]}/{self.files[image]}"

    def path(self, image: int) -> Path:
        """Give an image's whole path."""
        return self.root / self.name(image)

    def names(self) -> Iterator[str]:
        """Yield every image's path below the root, in order."""
        for person, who in enumerate(self.people):
            for image in self.images_of(person):
                yield f"{who}/{self.files[image]}"

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over every relative path and file size.

        A photo exchanged for another of the very same size goes unseen; `data check` reads content.
        """
        digest = hashlib.sha256(b"facepairs-index-1\0")
        for name, size in zip(self.names(), self.sizes, strict=True):
            digest.update(os.fsencode(name) + b"\0%d\0" % size)
        return digest.hexdigest()

    @cached_property
    def _number_of(self) -> dict[str, int]:
        return {name: image for image, name in enumerate(self.names())}

    def find(self, name: str) -> int | None:
        """Give the number of the image at a path below the root, or None."""
        return self._number_of.get(name)

    @cached_property
    def _person_number(self) -> dict[str, int]:
        return {who: person for person, who in enumerate(self.people)}

    def find_person(self, name: str) -> int | None:
        """Give the number of the person of that name, or None."""
        return self._person_number.get(name)

    def without(self, images: Iterable[int]) -> "FaceIndex":
        """Give the index less some images; people left with none go too."""
        drop = set(images)
        kept = (
            (self.people[int(self.person_of[i])], self.files[i], int(self.sizes[i]))
            for i in range(len(self))
            if i not in drop
        )
        return _build(self.root, kept, self.skipped)

    @classmethod
    def from_listing(cls, names: Iterable[str], root: Path = Path()) -> "FaceIndex":
        """Index relative paths `Person/file.jpg` without looking at any file."""
        # NUL sorts before all that a name may hold: by person, then by file, without key objects.
        rows = ["\0".join(name.rsplit("/", 1)) for name in names]
        rows.sort()
        split = (row.split("\0") for row in rows)
        return _build(root, ((who, file, -1) for who, file in split), ())

    @classmethod
    def scan(cls, root: Path | str) -> "FaceIndex":
        """Index a folder; hidden entries are passed over, whatever else is left out is `skipped`.

        Raises BadData when the folder is missing, not readable, or holds no image in a person's
        folder.
        """
        root = Path(root)
        skipped: list[Skipped] = []
        index = _build(root, _walk(root, skipped), ())
        if not len(index):
            raise BadData(
                f"{root}: no images; expected {root}/Person_Name/photo.jpg ({', '.join(READABLE)})"
            )
        return cls(**{**vars(index), "skipped": tuple(skipped)})


def _build(
    root: Path, rows: Iterable[tuple[str, str, int]], skipped: tuple[Skipped, ...]
) -> FaceIndex:
    """Make the arrays from (person, file, size) rows that come sorted."""
    people: list[str] = []
    counts = array("q")
    sizes = array("q")

    def files() -> Iterator[str]:
        for who, file, size in rows:
            if not people or people[-1] != who:
                people.append(who)
                counts.append(0)
            counts[-1] += 1
            sizes.append(size)
            yield file

    table = StringTable(files())
    per_person = np.array(counts, np.int64)
    first = np.concatenate([[0], np.cumsum(per_person)]).astype(np.int64)
    person_of = np.repeat(np.arange(len(people), dtype=np.int32), per_person)
    return FaceIndex(
        root, StringTable(people), table, person_of, first, np.array(sizes, np.int64), skipped
    )


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as listing:
        return sorted((e for e in listing if not e.name.startswith(".")), key=lambda e: e.name)


def _walk(root: Path, skipped: list[Skipped]) -> Iterator[tuple[str, str, int]]:
    try:
        people = _entries(root)
    except OSError as error:
        raise BadData(
            f"{root}: {error.strerror}; give a folder of Person_Name folders with photos"
        ) from None
    above = {os.path.realpath(root)} | {str(p) for p in Path(os.path.realpath(root)).parents}
    for entry in people:
        reason = _why_not_a_person(entry, above)
        if reason:
            skipped.append(Skipped(entry.name, reason))
            continue
        try:
            files = _entries(Path(entry.path))
        except OSError:
            skipped.append(Skipped(entry.name, "no_permission"))
            continue
        found = 0
        for file in files:
            reason, size = _why_not_a_photo(file)
            if reason:
                skipped.append(Skipped(f"{entry.name}/{file.name}", reason))
                continue
            found += 1
            yield entry.name, file.name, size
        if not found:
            skipped.append(Skipped(entry.name, "empty_person"))


def _why_not_a_person(entry: os.DirEntry[str], above: set[str]) -> str:
    try:
        entry.stat()
        is_folder = entry.is_dir()
    except OSError:
        return "symlink_loop" if entry.is_symlink() else "no_permission"
    if not is_folder:
        return "stray_file"
    if entry.is_symlink() and os.path.realpath(entry.path) in above:
        return "symlink_loop"
    return ""


def _why_not_a_photo(entry: os.DirEntry[str]) -> tuple[str, int]:
    try:
        status = entry.stat()
    except OSError:
        return ("symlink_loop" if entry.is_symlink() else "no_permission"), 0
    if entry.is_dir():
        return ("symlink_loop" if entry.is_symlink() else "nested_folder"), 0
    if not entry.is_file():
        return "special_file", 0
    suffix = Path(entry.name).suffix.lower()
    if suffix in OTHER_IMAGES:
        return "unsupported", 0
    return ("" if suffix in READABLE else "not_image"), status.st_size
