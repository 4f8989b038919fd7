"""The photos of a folder or of a CSV file, one row each."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from facepairs.data.index import FaceIndex, find_file, name_problem, walk
from facepairs.data.pairs import csv_rows
from facepairs.data.unpack import UNSAFE_CHARACTERS
from facepairs.errors import BadData
from facepairs.support import console
from facepairs.support.words import counted

PHASE = "importing photos"
TABLE = "metadata.csv"  # beside Hugging Face's folders, which name nobody then
PATH_COLUMNS = ("path", "file", "file_name", "filename", "image")
PERSON_COLUMNS = ("person", "identity", "label_name", "name", "label")


class NewPhoto(NamedTuple):
    """A photo to write: whose it is, its file name, and its file or content."""

    person: str
    file: str
    source: Path | bytes


class LeftOut(NamedTuple):
    """Something in the source that was not imported, and why."""

    name: str
    reason: str


Rows = Iterator[NewPhoto | LeftOut]


def folder_rows(people: Path) -> Rows:
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
    """Return the folder of the people's folders, `root` or one in it; None if there are no photos.

    Raises:
        BadData: Photos lie in several such folders, for instance `train` and `test`, or a table
            says who is in them.
    """
    photos: Counter[Path] = Counter()  # by the folder of the people's folders
    for folder, files in walk(root):
        if TABLE in files:
            table = folder / TABLE
            raise BadData(f"{table}: says who is in the photos; import this file, not its folder")
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


def read_csv(path: Path, person_column: str | None) -> Rows:
    """Yield the photos of a CSV file with the columns path and person.

    Args:
        path: The file, as `csv_rows` reads it; its paths count from its folder.
        person_column: The column that names the person; by default the first of PERSON_COLUMNS.

    Raises:
        BadData: A column is missing, or a row is wrong.
    """
    rows = list(csv_rows(path, ()))
    progress = console.progress(PHASE)
    columns = list(rows[0][1]) if rows else []
    file_column = choose_column(path, columns, PATH_COLUMNS)
    person_column = choose_column(path, columns, person_columns(person_column))
    for done, (line, row) in enumerate(rows, 1):
        place = f"{path}: line {line}"
        person = check_name(row[person_column].strip(), place)
        source = find_file(path.parent, row[file_column])
        if not source.is_file():
            raise BadData(f"{place}: no file {source}; paths count from the folder of the table")
        if problem := name_problem(source.name):
            yield LeftOut(str(source), problem.replace("_", " "))
        else:
            yield NewPhoto(person, source.name, source)
        progress(done, len(rows))


def person_columns(chosen: str | None) -> Sequence[str]:
    """Return the columns that may name the person."""
    return [chosen] if chosen else PERSON_COLUMNS


def choose_column(path: Path, columns: Sequence[str], wanted: Sequence[str]) -> str:
    """Return the first of the wanted columns that a table has, whatever its capitals.

    Raises:
        BadData: It has none of them.
    """
    plain = {column.strip().lower(): column for column in columns}
    found = (plain.get(column.strip().lower()) for column in wanted)
    column = next(filter(None, found), None)
    if column is None:
        raise BadData(
            f"{path}: has no column {' or '.join(wanted)}, only {', '.join(columns) or 'none'}; "
            "rename one, or name another",
            *(() if wanted is PATH_COLUMNS else ("person_column",)),
        )
    return column


def check_name(name: str, place: str) -> str:
    """Return the name of a folder or file, if it is safe on every system.

    Args:
        name: From a table, which is not trusted.
        place: The file and row that it comes from, for messages.

    Raises:
        BadData: The name would lead elsewhere, hide the file, or has a special meaning somewhere.
    """
    unsafe = any(c in UNSAFE_CHARACTERS or c == "/" or not c.isprintable() for c in name)
    if not name or name.startswith(".") or name.endswith((".", " ")) or unsafe:
        raise BadData(
            f"{place}: {name!r} cannot name a folder or file on every system; rename it, without a "
            f"dot at its beginning or end and without / {' '.join(UNSAFE_CHARACTERS)}"
        )
    return name
