"""Import a data set into the layout that all commands read, `Person_Name/photo.jpg`."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from facepairs.data.index import FaceIndex, find_file, name_problem, walk
from facepairs.data.pairs import csv_rows
from facepairs.data.unpack import UNSAFE_CHARACTERS, unpack
from facepairs.errors import BadData
from facepairs.support import console
from facepairs.support.atomic import atomic_folder
from facepairs.support.places import check_output_folder
from facepairs.support.results import Result
from facepairs.support.words import counted

PHASE = "importing photos"


class NewPhoto(NamedTuple):
    """A photo to write: the person, the new file name, and the source file."""

    person: str
    file: str
    source: Path


class LeftOut(msgspec.Struct, frozen=True):
    """A part of the source that was not imported, and the reason."""

    name: str
    reason: str


Rows = Iterator[NewPhoto | LeftOut]


class ImportReport(Result, frozen=True, kw_only=True):
    """The result of an import.

    Attributes:
        people: Number of people.
        images: Number of photos.
        left_out: Parts of the source that were not imported.
        out: The folder that was written.
    """

    people: int
    images: int
    left_out: tuple[LeftOut, ...]
    out: str


def import_photos(source: Path, out: Path) -> ImportReport:
    """Import photos of people; none is decoded.

    Args:
        source: A folder or an archive (zip, tar) in which, however deep, lie folders of people, or
            a CSV file with the columns path and person.
        out: A new or empty folder; it appears complete or not at all. Files of the source get a
            second name there (a hard link) where that is possible, else they are copied.

    Returns:
        The counts, and the parts of the source that were left out.

    Raises:
        BadData: The source has no photos of people or several folders of them, a table is wrong, or
            `out` cannot be written.
        BadTransfer: The archive is damaged or unsafe.
    """
    if not source.exists():
        raise BadData(f"{source}: does not exist; give a folder, an archive, or a table of photos")
    check_output_folder(out, inputs=source if source.is_dir() else None)
    with atomic_folder(out.resolve()) as folder:
        if source.is_dir():
            return _write(_folder_rows(find_people(source) or source), folder, out)
        if source.suffix.lower() == ".csv":
            return _write(_read_csv(source), folder, out)
        content = folder / ".content"
        content.mkdir()
        unpack(source, content)
        try:
            report = _write(_folder_rows(find_people(content) or content), folder, out)
        except BadData as error:
            raise BadData(str(error).replace(str(content), str(source))) from None
        shutil.rmtree(content)
        return report


def _write(rows: Rows, folder: Path, out: Path) -> ImportReport:
    """Write photos into an empty folder, `folder/Person_Name/photo.jpg`, which becomes `out`."""
    people: Counter[str] = Counter()
    left_out: list[LeftOut] = []
    for row in rows:
        if isinstance(row, LeftOut):
            left_out.append(row)
            continue
        if row.person not in people:
            (folder / row.person).mkdir()  # fails where the disk takes two names for one
        people[row.person] += 1
        target = _free_name(folder / row.person / row.file)
        try:
            os.link(os.path.realpath(row.source), target)
        except OSError:  # on another disk, for instance
            shutil.copyfile(row.source, target)
    if not people:
        reasons = f": {left_out[0].name}: {left_out[0].reason}" if left_out else ""
        raise BadData(f"no photo to import{reasons}; choose another source")
    return ImportReport(
        people=len(people), images=people.total(), left_out=tuple(left_out), out=str(out)
    )


def _free_name(path: Path) -> Path:
    """Return the path, with a number if another photo has this name."""
    free, number = path, 1
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def _folder_rows(people: Path) -> Rows:
    """Yield the photos of a folder `Person_Name/photo.jpg`.

    Raises:
        BadData: It has none.
    """
    index = FaceIndex.scan(people)
    progress = console.progress(PHASE)
    for done, name in enumerate(index.names(), 1):
        person, _, file = name.rpartition("/")
        yield NewPhoto(person, file, people / name)
        progress(done, len(index))
    for skipped in index.skipped:
        yield LeftOut(skipped.path, skipped.reason.replace("_", " "))


def find_people(root: Path) -> Path | None:
    """Return the folder that holds the people's folders, or None if there are no photos.

    Raises:
        BadData: Photos lie in several such folders, for instance `train` and `test`.
    """
    photos: Counter[Path] = Counter()  # by the folder of the people's folders
    for folder, files in walk(root):
        if folder != root:
            photos[folder.parent] += sum(name_problem(file) is None for file in files)
    photos = +photos
    if not photos:
        return None
    by_count = photos.most_common()
    people = by_count[0][0]
    if any(not folder.is_relative_to(people) for folder in photos):
        places = ", ".join(f"{path} ({counted(count, 'photo')})" for path, count in by_count)
        raise BadData(f"{root}: has photos of people in several places: {places}; import one")
    return people


def _read_csv(path: Path) -> Rows:
    """Yield the photos of a CSV file with the columns path and person.

    Args:
        path: The file, as `csv_rows` reads it; its paths count from its folder.

    Raises:
        BadData: A column is missing, or a row is wrong.
    """
    rows = list(csv_rows(path, ("path", "person")))
    progress = console.progress(PHASE)
    for done, (line, row) in enumerate(rows, 1):
        place = f"{path}: line {line}"
        person = _check_name(row["person"].strip(), place)
        source = find_file(path.parent, row["path"])
        if not source.is_file():
            raise BadData(f"{place}: no file {source}; paths count from the folder of the table")
        if problem := name_problem(source.name):
            yield LeftOut(str(source), problem.replace("_", " "))
        else:
            yield NewPhoto(person, source.name, source)
        progress(done, len(rows))


def _check_name(name: str, place: str) -> str:
    """Return the name of a folder or file, if it is safe on every system.

    Args:
        name: From a table, which is not trusted.
        place: The file and row that it comes from, for messages.

    Raises:
        BadData: The name would lead elsewhere, hide the file, or has a special meaning on some
            system.
    """
    unsafe = any(c in UNSAFE_CHARACTERS or c == "/" or not c.isprintable() for c in name)
    if not name or name.startswith(".") or name.endswith((".", " ")) or unsafe:
        raise BadData(
            f"{place}: {name!r} is not a valid file name on every system; rename it, without a dot "
            f"at its beginning or end and without / {' '.join(UNSAFE_CHARACTERS)}"
        )
    return name
