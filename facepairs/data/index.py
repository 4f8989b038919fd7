"""`FaceIndex`: a folder of faces, `root/Person_Name/photo.jpg`, as flat arrays.

People are sorted by name and images by name within a person (by Unicode code point), so the same
folder gives the same index on every machine. An image takes 20 bytes and those of its file name, a
person 16 and those of the name; nothing else that is kept grows with them.
"""

import hashlib
import heapq
import os
import stat
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadData

READABLE = (".jpg", ".jpeg", ".png", ".bmp")  # what Pillow and TensorFlow both read
OTHER_IMAGES = (".webp", ".gif", ".tif", ".tiff", ".heic", ".heif", ".avif", ".jp2", ".ppm")
SORTED_AT_ONCE = 100_000  # names of a listing, some 10 MB


class StringTable(Sequence[str]):
    """A list of strings in one block of bytes (UTF-8, undecodable bytes kept), built by `add`."""

    def __init__(self, strings: Iterable[str] = ()) -> None:
        self._blob, self._ends = bytearray(), array("q")  # no object a string
        for string in strings:
            self.add(string)

    def add(self, string: str) -> None:
        """Put a string behind the last one."""
        self._blob += os.fsencode(string)
        self._ends.append(len(self._blob))

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        return os.fsdecode(self.encoded(range(len(self))[at]))

    def encoded(self, at: int) -> bytes:
        """Give the bytes of a string by its number from 0."""
        start = self._ends[at - 1] if at else 0
        return bytes(self._blob[start : self._ends[at]])

    def __iter__(self) -> Iterator[str]:
        start = 0
        for end in self._ends:
            yield os.fsdecode(bytes(self._blob[start:end]))
            start = end


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

    @property
    def paths(self) -> Sequence[Path]:
        """Every image's whole path by number, made when it is asked for."""
        return _Paths(self)

    def encoded_paths(self, images: npt.NDArray[np.integer[Any]]) -> list[bytes]:
        """Give the whole paths of some images, int[N], as the file system spells them."""
        root = os.fsencode(self.root)
        people, files = self.people.encoded, self.files.encoded
        chosen = zip(self.person_of[images].tolist(), images.tolist(), strict=True)
        return [b"%b/%b/%b" % (root, people(who), files(image)) for who, image in chosen]

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

    def find(self, name: str) -> int | None:
        """Give the number of the image at a path below the root, or None."""
        who, _, file = name.rpartition("/")
        person = self.find_person(who)
        if person is None:
            return None
        images = self.images_of(person)
        at = bisect_left(self.files, file, images.start, images.stop)
        return at if at < images.stop and self.files[at] == file else None

    def find_person(self, name: str) -> int | None:
        """Give the number of the person of that name, or None."""
        at = bisect_left(self.people, name)
        return at if at < len(self.people) and self.people[at] == name else None

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
        return cls.from_files(((name, -1) for name in names), root)

    @classmethod
    def from_files(
        cls, files: Iterable[tuple[str, int]], root: Path, skipped: Iterable[Skipped] = ()
    ) -> "FaceIndex":
        """Index (relative path, size) in any order; `skipped` is asked for when all are read."""
        # NUL sorts before all that a name may hold: by person, then by file, without key objects.
        rows = _sorted("\0".join((*name.rsplit("/", 1), str(size))) for name, size in files)
        split = (row.split("\0") for row in rows)
        index = _build(root, ((who, file, int(size)) for who, file, size in split), ())
        return cls(**{**vars(index), "skipped": tuple(skipped)})

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


class _Paths(Sequence[Path]):
    def __init__(self, index: FaceIndex) -> None:
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    @overload
    def __getitem__(self, at: int) -> Path: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Path]: ...
    def __getitem__(self, at: int | slice) -> Path | Sequence[Path]:
        images = range(len(self))[at]
        if isinstance(images, range):
            return [self._index.path(image) for image in images]
        return self._index.path(images)


def _build(
    root: Path, rows: Iterable[tuple[str, str, int]], skipped: tuple[Skipped, ...]
) -> FaceIndex:
    """Make the arrays from (person, file, size) rows that come sorted."""
    people, files = StringTable(), StringTable()
    first, sizes = array("q"), array("q")
    last = None
    for who, file, size in rows:
        if who != last:
            people.add(who)
            first.append(len(files))
            last = who
        files.add(file)
        sizes.append(size)
    first.append(len(files))
    begins = np.frombuffer(first, np.int64)
    person_of = np.repeat(np.arange(len(people), dtype=np.int32), np.diff(begins))
    return FaceIndex(
        root, people, files, person_of, begins, np.frombuffer(sizes, np.int64), skipped
    )


def _sorted(rows: Iterable[str]) -> Iterator[str]:
    """Yield strings in order; they wait in blocks of bytes, sorted parts that are then merged."""
    source = iter(rows)
    parts = []
    while part := list(islice(source, SORTED_AT_ONCE)):
        part.sort()
        parts.append(StringTable(part))
    if any(one[-1] > other[0] for one, other in pairwise(parts)):
        yield from heapq.merge(*parts)
        return
    parts.reverse()
    while parts:
        yield from parts.pop()  # which is then let go of


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as listing:
        return sorted((e for e in listing if not e.name.startswith(".")), key=lambda e: e.name)


def _walk(root: Path, skipped: list[Skipped]) -> Iterator[tuple[str, str, int]]:
    try:
        with os.scandir(root) as listing:  # of which the names alone are kept
            people = sorted(e.name for e in listing if not e.name.startswith("."))
    except OSError as error:
        raise BadData(
            f"{root}: {error.strerror}; give a folder of Person_Name folders with photos"
        ) from None
    above = {os.path.realpath(root)} | {str(p) for p in Path(os.path.realpath(root)).parents}
    for who in people:
        reason = _why_not_a_person(root / who, above)
        if reason:
            skipped.append(Skipped(who, reason))
            continue
        try:
            files = _entries(root / who)
        except OSError:
            skipped.append(Skipped(who, "no_permission"))
            continue
        found = 0
        for file in files:
            reason, size = _why_not_a_photo(file)
            if reason:
                skipped.append(Skipped(f"{who}/{file.name}", reason))
                continue
            found += 1
            yield who, file.name, size
        if not found:
            skipped.append(Skipped(who, "empty_person"))


def _why_not_a_person(folder: Path, above: set[str]) -> str:
    linked = folder.is_symlink()
    try:
        is_folder = stat.S_ISDIR(folder.stat().st_mode)
    except OSError:
        return "symlink_loop" if linked else "no_permission"
    if not is_folder:
        return "stray_file"
    return "symlink_loop" if linked and os.path.realpath(folder) in above else ""


def _why_not_a_photo(entry: os.DirEntry[str]) -> tuple[str, int]:
    try:
        status = entry.stat()
    except OSError:
        return ("symlink_loop" if entry.is_symlink() else "no_permission"), 0
    if entry.is_dir():
        return ("symlink_loop" if entry.is_symlink() else "nested_folder"), 0
    if not entry.is_file():
        return "special_file", 0
    return why_not_readable(entry.name), status.st_size


def why_not_readable(name: str) -> str:
    """Say what a file's name alone says against its being a photo, "" for nothing."""
    suffix = Path(name).suffix.lower()
    if suffix in OTHER_IMAGES:
        return "unsupported"
    return "" if suffix in READABLE else "not_image"
