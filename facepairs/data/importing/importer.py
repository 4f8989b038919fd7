"""Import a data set into the layout that all commands read, `Person_Name/photo.jpg`."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from facepairs.data.importing.folders import find_parquet, find_people, find_table
from facepairs.data.importing.lfw_lists import OfficialList, find_lists
from facepairs.data.importing.photos import LeftOut, NewPhoto, PhotoWriter, Transfer, in_words
from facepairs.data.importing.tables import Rows, read_csv, read_parquet
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.fetch import ARCHIVES, LISTS
from facepairs.data.unpack import unpack
from facepairs.errors import BadData
from facepairs.support.atomic import atomic_folder
from facepairs.support.places import check_output_folder
from facepairs.support.progress import ProgressCallback, ProgressFactory, ignore_phases

SCHEMA = 1
LFW_FOLDERS = [archive.folder for archive in ARCHIVES.values()]
LFW_LISTS = [one.file for one in LISTS]


@dataclass(frozen=True)
class ImportReport:
    """What was imported.

    Attributes:
        photos: The folder of the people's folders: the output folder, or one in it for LFW.
        people: Number of people.
        images: Number of photos.
        linked: Number of photos that are hard links to the source's files.
        copied: Number of photos that are copies of the source's files; others come out of an
            archive or a table.
        lists: LFW's official lists that were found, without their content.
        missing_lists: LFW's official lists that were not found; empty for other data sets.
        left_out: What was not imported, and why.
    """

    photos: Path
    people: int
    images: int
    linked: int
    copied: int
    lists: tuple[OfficialList, ...]
    missing_lists: tuple[str, ...]
    left_out: tuple[LeftOut, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict."""
        lists = [{"name": one.name, "as_published": one.as_published} for one in self.lists]
        left_out = [one._asdict() for one in self.left_out]
        values = {**asdict(self), "photos": str(self.photos), "lists": lists, "left_out": left_out}
        return {**values, "schema": SCHEMA}


def import_photos(
    source: Path,
    out: Path,
    *,
    person_column: str | None = None,
    copy: bool = False,
    progress: ProgressFactory = ignore_phases,
) -> ImportReport:
    """Import photos of people; none is decoded.

    Args:
        source: A folder or an archive (zip, tar) in which, however deep, lie folders of people or
            parquet files with images; such a parquet file; or a CSV file of paths and people.
        out: A new or empty folder; it appears complete or not at all. LFW gets the layout of
            `fetch_lfw`: `out/lfw-deepfunneled` and the lists in `out`.
        person_column: The column of a table that names the person.
        copy: Copy files; by default they get a second name (a hard link) where that is possible.
        progress: Called with the name of each phase.

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
    transfer: Transfer = "copy" if copy else "link"
    display = progress("importing photos")
    with atomic_folder(out.resolve()) as folder:
        if source.is_dir():
            return _import_folder(
                source, out, PhotoWriter(folder, transfer), person_column, display
            )
        if source.suffix.lower() == ".csv":
            rows = read_csv(source, person_column, display)
            return _write(rows, out, PhotoWriter(folder, transfer))
        if source.suffix.lower() == ".parquet":
            rows = read_parquet([source], person_column, display)
            return _write(rows, out, PhotoWriter(folder, transfer))
        content = folder / ".content"
        content.mkdir()
        unpack(source, content, progress("unpacking"))
        try:
            writer = PhotoWriter(folder, "move")
            report = _import_folder(content, out, writer, person_column, display)
        except BadData as error:
            raise BadData(str(error).replace(str(content), str(source))) from None
        shutil.rmtree(content)
        return report


def _import_folder(
    source: Path,
    out: Path,
    writer: PhotoWriter,
    person_column: str | None,
    progress: ProgressCallback,
) -> ImportReport:
    """Import what lies in a folder; the folder of `writer` will become `out`."""
    people = find_people(source)
    if people is None and (tables := find_parquet(source)):
        return _write(read_parquet(tables, person_column, progress), out, writer)
    people = people or source
    if table := find_table(people, source):
        raise BadData(f"{table}: says who is in the photos; import this file, not its folder")
    lists = find_lists(people, source)
    name = people.name if people.name in LFW_FOLDERS else "photos"
    if not lists and name == "photos":
        return _write(_folder_rows(people, progress), out, writer)
    for one in lists:
        (writer.folder / one.name).write_bytes(one.content)
    writer.folder /= name
    writer.folder.mkdir()
    return _write(_folder_rows(people, progress), out / name, writer, lists, LFW_LISTS)


def _folder_rows(people: Path, progress: ProgressCallback) -> Rows:
    index = FaceIndex.scan(people)
    for done, name in enumerate(index.names(), 1):
        person, _, file = name.rpartition("/")
        yield NewPhoto(person, file, people / name)
        progress(done, len(index))
    for skipped in index.skipped:
        yield LeftOut(skipped.path, in_words(skipped.reason))


def _write(
    rows: Rows,
    photos: Path,
    writer: PhotoWriter,
    lists: Sequence[OfficialList] = (),
    needed_lists: Sequence[str] = (),
) -> ImportReport:
    left_out = []
    for row in rows:
        if isinstance(row, LeftOut):
            left_out.append(row)
        else:
            writer.write(row)
    if not writer.people:
        reasons = f": {left_out[0].name}: {left_out[0].reason}" if left_out else ""
        raise BadData(f"no photo to import{reasons}; choose another source")
    found = {one.name for one in lists}
    return ImportReport(
        photos=photos,
        people=len(writer.people),
        images=writer.people.total(),
        linked=writer.linked,
        copied=writer.copied,
        lists=tuple(lists),
        missing_lists=tuple(name for name in needed_lists if name not in found),
        left_out=tuple(left_out),
    )
