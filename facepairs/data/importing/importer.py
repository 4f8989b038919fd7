"""Import a data set into the layout that all commands read, `Person_Name/photo.jpg`."""

import os
import shutil
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from facepairs.data.importing.parquet import find_parquet, read_parquet
from facepairs.data.importing.rows import (
    LeftOut,
    Rows,
    find_people,
    folder_rows,
    read_csv,
)
from facepairs.data.unpack import unpack
from facepairs.errors import BadData
from facepairs.support.atomic import atomic_folder
from facepairs.support.places import check_output_folder

SCHEMA = 3


@dataclass(frozen=True)
class ImportReport:
    """What was imported.

    Attributes:
        people: Number of people.
        images: Number of photos.
        left_out: What was not imported, and why.
    """

    people: int
    images: int
    left_out: tuple[LeftOut, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict."""
        left_out = [one._asdict() for one in self.left_out]
        return {**asdict(self), "left_out": left_out, "schema": SCHEMA}


def import_photos(source: Path, out: Path, *, person_column: str | None = None) -> ImportReport:
    """Import photos of people; none is decoded.

    Args:
        source: A folder or an archive (zip, tar) in which, however deep, lie folders of people or
            parquet files with images; such a parquet file; or a CSV file of paths and people.
        out: A new or empty folder; it appears complete or not at all. Files of the source get a
            second name there (a hard link) where that is possible, else they are copied.
        person_column: The column of a table that names the person.

    Returns:
        What was imported, and what was not.

    Raises:
        BadData: The source has no photos of people or several folders of them, a table is wrong, or
            `out` cannot be written.
        BadTransfer: The archive is damaged or unsafe.
        MissingExtra: The source has parquet files, and PyArrow is not installed.
    """
    if not source.exists():
        raise BadData(f"{source}: does not exist; give a folder, an archive, or a table of photos")
    check_output_folder(out, inputs=source if source.is_dir() else None)
    with atomic_folder(out.resolve()) as folder:
        if source.is_dir():
            return _write(_rows_below(source, person_column), folder)
        if source.suffix.lower() == ".csv":
            return _write(read_csv(source, person_column), folder)
        if source.suffix.lower() == ".parquet":
            return _write(read_parquet([source], person_column), folder)
        content = folder / ".content"
        content.mkdir()
        unpack(source, content)
        try:
            report = _write(_rows_below(content, person_column), folder)
        except BadData as error:
            raise BadData(str(error).replace(str(content), str(source))) from None
        shutil.rmtree(content)
        return report


def _rows_below(source: Path, person_column: str | None) -> Rows:
    """Return the photos that lie somewhere in a folder."""
    people = find_people(source)
    if people is None and (tables := find_parquet(source)):
        return read_parquet(tables, person_column)
    return folder_rows(people or source)


def _write(rows: Rows, folder: Path) -> ImportReport:
    """Write photos into an empty folder, `folder/Person_Name/photo.jpg`."""
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
        if isinstance(row.source, bytes):
            target.write_bytes(row.source)
            continue
        try:
            os.link(os.path.realpath(row.source), target)
        except OSError:  # on another disk, for instance
            shutil.copyfile(row.source, target)
    if not people:
        reasons = f": {left_out[0].name}: {left_out[0].reason}" if left_out else ""
        raise BadData(f"no photo to import{reasons}; choose another source")
    return ImportReport(len(people), people.total(), tuple(left_out))


def _free_name(path: Path) -> Path:
    """Return the path, or one with a number where another photo has its name."""
    free, number = path, 1
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free
