"""The rows of the bench by name, and the type with which scripts add rows of their own."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass

from facepairs.errors import BadConfig
from facepairs.support.validation import did_you_mean

BASELINE, LIMIT, UNALIGNED = "pil", "limit", "files-unaligned"
STORES = ("files", "memory", "tfrecord-jpeg", "tfrecord-raw")
TRAINED = ("files", "memory")  # stores that training is measured from, unless rows are named


@dataclass(frozen=True)
class Row:
    """An input pipeline to measure.

    Attributes:
        function: "module:name" of a function that takes a `Job` and yields `Batch`es without end.
            The worker process imports it before any clock starts.
        note: The pipeline in one line.
        needs: A package that the row imports and facepairs does not depend on.
        module_folder: Folder to import the module from, for rows outside this package.
        has_cache: Whether a cache on disk is built first, once.
    """

    function: str
    note: str
    needs: str = ""
    module_folder: str = ""
    has_cache: bool = False

    def missing(self) -> str:
        """Return why the row cannot run here, or ""."""
        try:
            installed = not self.needs or importlib.util.find_spec(self.needs) is not None
        except ModuleNotFoundError:  # the parent package of a dotted name is missing
            installed = False
        return "" if installed else f"{self.needs} is not installed"


def _own(function: str, note: str, has_cache: bool = False) -> Row:
    return Row(f"facepairs.bench.{function}", note, has_cache=has_cache)


ROWS: Mapping[str, Row] = {
    "pil": _own(
        "pillow_rows:pil",
        "generator: Pillow, whole image (as tutorials do), resized, float32, stacked",
    ),
    "article": _own(
        "tensorflow_rows:article",
        "tf.data as tutorials do: one pair at a time, whole image resized, float32, batch 10",
    ),
    "article-parallel": _own(
        "tensorflow_rows:article_parallel", "the same with AUTOTUNE and this bench's batch size"
    ),
    "files": _own("store_rows:store_batches", "facepairs: faces decoded and aligned when needed"),
    "files-unaligned": _own(
        "store_rows:store_batches", "facepairs: centre squares decoded when needed"
    ),
    "tfrecord-jpeg": _own(
        "store_rows:store_batches",
        "facepairs: cache of these pairs, crops as JPEGs, read in order",
        has_cache=True,
    ),
    "tfrecord-raw": _own(
        "store_rows:store_batches",
        "facepairs: cache of these pairs, crops as pixels, read in order",
        has_cache=True,
    ),
    "memory": _own(
        "store_rows:store_batches",
        "facepairs: crops decoded once and mapped into memory",
        has_cache=True,
    ),
    "limit": _own(
        "tensorflow_rows:limit",
        "files read and squares decoded on all cores, then dropped: no batches, no labels",
    ),
}


def select_rows(names: str | None, known: Mapping[str, Row] = ROWS) -> dict[str, Row]:
    """Return the rows named in a comma-separated list.

    Args:
        names: Such as "pil,files"; None selects all rows.
        known: The rows to choose from.

    Returns:
        The rows by name, in the order of the list, without repetition.

    Raises:
        BadConfig: If a name is unknown or the list is empty.
    """
    if names is None:
        return dict(known)
    selected = dict.fromkeys(name.strip() for name in names.split(",") if name.strip())
    if not selected:
        raise BadConfig(f"--rows names no row; use some of {', '.join(known)}")
    for name in selected:
        if name not in known:
            raise BadConfig(f"unknown row {name!r}; {did_you_mean(name, known)}")
    return {name: known[name] for name in selected}
