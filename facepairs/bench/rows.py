"""The settings of a bench, its rows by name, and the result of one run of a row.

A row is an input pipeline. The command and its worker processes share these values, which travel as
JSON. Scripts can add rows of their own: a `Row` names a function that the worker imports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from facepairs.choices import Align
from facepairs.errors import BadConfig
from facepairs.support.validation import did_you_mean

BASELINE, LIMIT, UNALIGNED = "pil", "limit", "files-unaligned"
STORES = ("files", "memory", "tfrecord-jpeg", "tfrecord-raw")
TRAINED = ("files", "memory")  # stores that training is measured from, unless rows are named
OUR_STORE = "facepairs.bench.stores:store_batches"

Task = Literal["build", "row", "training"]


@dataclass(frozen=True)
class Row:
    """An input pipeline to measure.

    Attributes:
        function: "module:name" of a function that takes a `Job` and yields `Batch`es without end.
            The worker process imports it before any clock starts.
        note: The pipeline in one line.
        has_cache: Whether a cache on disk is built first, once.
    """

    function: str
    note: str
    has_cache: bool = False


@dataclass(frozen=True)
class Settings:
    """What to measure.

    Attributes:
        data: Folder of Person_Name/photo.jpg.
        rows: The pipelines by name: `ROWS`, a part of them, or rows of your own as well.
        training: Names of those `STORES` from which training is measured as well.
        repeats: Rounds; every row runs once per round.
        seconds: Least time to measure a row in a round.
        batch_size: Pairs per batch.
        crop_px: Side of the crops, in pixels of a 250-pixel frame.
        align: Whether the stores cut aligned faces or centre squares.
        most_images: Use people drawn at random who have about this many images together; None: all.
    """

    data: str
    rows: Mapping[str, Row]
    training: Sequence[str] = ()
    repeats: int = 2
    seconds: float = 5.0
    batch_size: int = 64
    crop_px: int = 112
    align: Align = "landmarks"
    most_images: int | None = None


@dataclass(frozen=True)
class Spec:
    """One run of a worker process.

    Attributes:
        settings: What all runs have in common.
        folder: Of the bench's own files: how images are cropped, and caches.
        name: Name of the row.
        task: Build the row's cache, measure the row, or measure training from its store.
    """

    settings: Settings
    folder: str
    name: str = ""
    task: Task = "row"


@dataclass(frozen=True)
class Measurement:
    """What one run gave; None for the figures of other tasks.

    Attributes:
        pairs_per_s: Pairs per second, after the warm-up.
        cpu_s_per_1k_pairs: CPU seconds per 1,000 pairs, child processes included.
        build_s: Seconds to build the cache.
        disk_mb: Size of the cache, in MB.
        steps_per_s: Training steps per second on the store's batches.
        ceiling_steps_per_s: Training steps per second on a constant batch, in the same process.
        share_of_ceiling: The first of these as a share of the second.
        input_wait_share: Share of the time that the training loop waited for input, 0 to 1.
        device: What training ran on: name of the GPU, or "CPU".
        skipped: Why the row cannot run on this folder or machine, or "".
        failed: Why the run has no figures although it should, or "".
    """

    pairs_per_s: float | None = None
    cpu_s_per_1k_pairs: float | None = None
    build_s: float | None = None
    disk_mb: float | None = None
    steps_per_s: float | None = None
    ceiling_steps_per_s: float | None = None
    share_of_ceiling: float | None = None
    input_wait_share: float | None = None
    device: str = ""
    skipped: str = ""
    failed: str = ""

    def __str__(self) -> str:
        if self.failed or self.skipped:
            return f"failed: {self.failed}" if self.failed else f"skipped: {self.skipped}"
        if self.pairs_per_s is not None:
            return f"{self.pairs_per_s:,.0f} pairs/s"
        return f"{self.build_s:.1f} s" if self.build_s else f"{self.steps_per_s:.2f} steps/s"


ROWS: Mapping[str, Row] = {
    "pil": Row("facepairs.bench.pillow:pil", "Pillow generator: whole images, resized, as float32"),
    "article": Row("facepairs.bench.usual:article", "tf.data as tutorials do: pair by pair, by 10"),
    "article-parallel": Row("facepairs.bench.usual:article_parallel", "the same with AUTOTUNE"),
    "files": Row(OUR_STORE, "facepairs: faces decoded and aligned when needed"),
    "files-unaligned": Row(OUR_STORE, "facepairs: centre squares decoded when needed"),
    "tfrecord-jpeg": Row(OUR_STORE, "facepairs: cache of pairs, crops as JPEGs", has_cache=True),
    "tfrecord-raw": Row(OUR_STORE, "facepairs: cache of pairs, crops as pixels", has_cache=True),
    "memory": Row(OUR_STORE, "facepairs: crops decoded once, kept in memory"),
    "limit": Row("facepairs.bench.usual:limit", "squares decoded on all cores, then dropped"),
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
        raise BadConfig(f"no row given; use some of {', '.join(known)}", "rows")
    for name in selected:
        if name not in known:
            raise BadConfig(f"unknown row {name!r}; {did_you_mean(name, known)}")
    return {name: known[name] for name in selected}
