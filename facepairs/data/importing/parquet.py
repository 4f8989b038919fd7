"""The photos in parquet files as Hugging Face publishes them.

One column holds images as `{bytes, path}` or as bytes, another the person: a text, or a number for
which the file's metadata have a name.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from facepairs.data.importing.rows import (
    PHASE,
    LeftOut,
    NewPhoto,
    Rows,
    check_name,
    choose_column,
    person_columns,
)
from facepairs.data.index import READABLE, walk
from facepairs.data.unpack import MAX_FILE_BYTES
from facepairs.errors import BadData
from facepairs.images.formats import pillow_format
from facepairs.images.problem import ImageProblem
from facepairs.support import console
from facepairs.support.extras import require_extras

if TYPE_CHECKING:
    import pyarrow

ROWS = 64  # in memory at once
SUFFIXES = {"JPEG": ".jpg", "TIFF": ".tif"}  # of Pillow's formats; else the format's own name


def find_parquet(root: Path) -> list[Path]:
    """Return the parquet files of a folder, sorted."""
    found = (folder / name for folder, files in walk(root) for name in files)
    return sorted(path for path in found if path.suffix.lower() == ".parquet")


def read_parquet(paths: Sequence[Path], person_column: str | None) -> Rows:
    """Yield the photos of parquet files.

    Args:
        paths: The files.
        person_column: The column that names the person; by default the first of PERSON_COLUMNS.

    Raises:
        BadData: A file is damaged, or a column is missing.
        MissingExtra: PyArrow is not installed.
    """
    require_extras(["parquet"], "a parquet file")
    import pyarrow
    from pyarrow import parquet

    photos = Counter[str]()  # of each person so far
    total = done = 0
    progress = console.progress(PHASE)
    path = paths[0]
    try:
        for path in paths:
            total += parquet.read_metadata(path).num_rows
        for path in paths:
            with parquet.ParquetFile(path) as file:
                schema = file.schema_arrow
                columns = [
                    _image_column(path, schema),
                    choose_column(path, schema.names, person_columns(person_column)),
                ]
                name_of = _label_names(schema, columns[1])
                batches = file.iter_batches(ROWS, columns=columns)
                rows = chain.from_iterable(batch.to_pylist() for batch in batches)
                for number, row in enumerate(rows, 1):
                    place = f"{path.name}: row {number:,}"
                    image, label = (row[column] for column in columns)
                    person = check_name(name_of(label), place)
                    photos[person] += 1
                    yield _photo(person, photos[person], image, place)
                    done += 1
                    progress(done, total)
    except (pyarrow.ArrowException, OSError) as error:
        raise BadData(f"{path}: {error}; download the file again") from None


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
        return LeftOut(place, problem.reason)
    name = PurePosixPath(cell.get("path") or "").name
    if PurePosixPath(name).suffix.lower() not in READABLE:
        name = f"{person}_{number:04d}{SUFFIXES.get(kind, '.' + kind.lower())}"
    return NewPhoto(person, check_name(name, place), content)
