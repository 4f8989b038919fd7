"""Read tables of photos: CSV files with paths, parquet files with the images themselves."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from facepairs.data.importing.photos import LeftOut, NewPhoto, PeopleNames, check_name, in_words
from facepairs.data.index import READABLE, find_file, name_problem
from facepairs.data.pairs import csv_rows
from facepairs.data.unpack import MAX_FILE_BYTES
from facepairs.errors import BadData
from facepairs.images.formats import pillow_format
from facepairs.images.problem import ImageProblem
from facepairs.support.extras import require_extras
from facepairs.support.progress import ProgressCallback

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import parquet

PATH_COLUMNS = ("path", "file", "file_name", "filename", "image")
PERSON_COLUMNS = ("person", "identity", "label_name", "name", "label")
PARQUET_ROWS = 64  # in memory at once
SUFFIXES = {"JPEG": ".jpg", "TIFF": ".tif"}  # of Pillow's formats; else the format's own name
Rows = Iterator[NewPhoto | LeftOut]


def read_csv(path: Path, person_column: str | None, progress: ProgressCallback) -> Rows:
    """Yield the photos of a CSV file with the columns path and person.

    Args:
        path: The file, as `csv_rows` reads it; its paths count from its folder.
        person_column: The column that names the person; by default the first of PERSON_COLUMNS.
        progress: Called with the rows done and in all.

    Raises:
        BadData: A column is missing, or a row is wrong.
    """
    rows = list(csv_rows(path, ()))
    columns = list(rows[0][1]) if rows else []
    file_column = _choose(path, columns, PATH_COLUMNS)
    person_column = _choose(path, columns, [person_column] if person_column else PERSON_COLUMNS)
    names = PeopleNames()
    for done, (line, row) in enumerate(rows, 1):
        place = f"{path}: line {line}"
        person = names.check(row[person_column].strip(), place)
        source = find_file(path.parent, row[file_column])
        if not source.is_file():
            raise BadData(f"{place}: no file {source}; paths count from the folder of the table")
        if problem := name_problem(source.name):
            yield LeftOut(str(source), in_words(problem))
        else:
            yield NewPhoto(person, source.name, source)
        progress(done, len(rows))


def read_parquet(
    paths: Sequence[Path], person_column: str | None, progress: ProgressCallback
) -> Rows:
    """Yield the photos of parquet files as Hugging Face publishes them.

    One column holds images as `{bytes, path}` or as bytes, another the person: a text, or a number
    for which the file's metadata have a name.

    Args:
        paths: The files.
        person_column: The column that names the person; by default the first of PERSON_COLUMNS.
        progress: Called with the rows done and in all.

    Raises:
        BadData: A file is damaged, or a column is missing.
        MissingExtra: PyArrow is not installed.
    """
    require_extras(["parquet"], "a parquet file")
    import pyarrow
    from pyarrow import parquet

    names, numbers = PeopleNames(), Counter[str]()
    done = 0
    path = paths[0]
    try:
        total = 0
        for path in paths:
            total += parquet.read_metadata(path).num_rows
        for path in paths:
            with parquet.ParquetFile(path) as file:
                schema = file.schema_arrow
                image_column = _image_column(path, schema)
                wanted = [person_column] if person_column else PERSON_COLUMNS
                label_column = _choose(path, schema.names, wanted)
                name_of = _label_names(schema, label_column)
                for row, values in enumerate(_rows(file, [image_column, label_column]), 1):
                    place = f"{path.name}: row {row:,}"
                    person = names.check(name_of(values[label_column]), place)
                    numbers[person] += 1
                    yield _photo(person, numbers[person], values[image_column], place)
                    done += 1
                    progress(done, total)
    except (pyarrow.ArrowException, OSError) as error:
        raise BadData(f"{path}: {error}; download the file again") from None


def _rows(file: "parquet.ParquetFile", columns: list[str]) -> Iterator[dict[str, Any]]:
    for batch in file.iter_batches(PARQUET_ROWS, columns=columns):
        yield from batch.to_pylist()


def _choose(path: Path, columns: Sequence[str], wanted: Sequence[str]) -> str:
    """Return the first of the wanted columns that a table has."""
    plain = {column.strip().lower(): column for column in columns}
    for column in wanted:
        if column.strip().lower() in plain:
            return plain[column.strip().lower()]
    lacks = f"has no column {' or '.join(wanted)}, only {', '.join(columns) or 'none'}"
    if wanted is PERSON_COLUMNS:
        raise BadData(f"{path}: {lacks}; rename one, or name it", "person_column")
    raise BadData(f"{path}: {lacks}; rename one")


def _image_column(path: Path, schema: "pyarrow.Schema") -> str:
    """Return the first column of images, or of bytes."""
    from pyarrow import types

    for field in schema:
        kind = field.type
        if types.is_struct(kind):
            kind = kind.field("bytes").type if kind.get_field_index("bytes") >= 0 else None
        if kind is not None and (types.is_binary(kind) or types.is_large_binary(kind)):
            return str(field.name)
    raise BadData(f"{path}: has no column of images, only {', '.join(schema.names)}; use another")


def _label_names(schema: "pyarrow.Schema", column: str) -> Callable[[Any], str]:
    """Return what names the person of a value: Hugging Face keeps names of numbers in metadata."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        names = [str(name) for name in features[column]["names"]]
    except (KeyError, TypeError, ValueError):
        names = []

    def name_of(value: Any) -> str:
        if isinstance(value, int) and 0 <= value < len(names):
            return names[value].strip()
        return "" if value is None else str(value).strip()

    return name_of


def _photo(person: str, number: int, image: Any, place: str) -> NewPhoto | LeftOut:
    """Return the photo of a row; `number` counts the person's, for one without a file name."""
    cell = image if isinstance(image, dict) else {"bytes": image}
    content = cell["bytes"]
    if not content:
        return LeftOut(place, "has no image in it, but at most a path")
    if len(content) > MAX_FILE_BYTES:
        return LeftOut(place, f"an image of {len(content):,} bytes, above {MAX_FILE_BYTES:,}")
    try:
        kind = pillow_format(content, place)
    except ImageProblem as problem:
        return LeftOut(place, str(problem).removeprefix(f"{place}: "))
    name = PurePosixPath(cell.get("path") or "").name
    if PurePosixPath(name).suffix.lower() not in READABLE:
        name = f"{person}_{number:04d}{SUFFIXES.get(kind, '.' + kind.lower())}"
    return NewPhoto(person, check_name(name, place), content)
