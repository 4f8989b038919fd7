"""The rows by name: which function each one is, and what it is in one line."""

import difflib
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from facepairs.bench.job import Batch, Job
from facepairs.errors import BadConfig
from facepairs.support.machine import cores

BASE, LIMIT = "pil", "limit"
STORES = ("files", "memory", "tfrecord-jpeg", "tfrecord-raw")


@dataclass(frozen=True)
class Row:
    """A pipeline: `function` is `module:name` in this room, imported before any clock starts.

    Of several `variants` the first round's fastest goes on. `needs` is a package that facepairs
    does not depend on; `built` rows have a store on disk that is built once.
    """

    function: str
    note: str
    variants: tuple[str, ...] = ("",)
    needs: str = ""
    built: bool = False

    def load(self) -> Callable[[Job], Iterator[Batch]]:
        """Import the row's module and its libraries."""
        module, _, name = self.function.partition(":")
        function: Callable[[Job], Iterator[Batch]] = getattr(
            importlib.import_module(f"facepairs.bench.{module}"), name
        )
        return function

    def missing(self) -> str:
        """Say why the row cannot run here, or ''."""
        try:
            there = not self.needs or importlib.util.find_spec(self.needs) is not None
        except ModuleNotFoundError:  # of a dotted name's first part
            there = False
        return "" if there else f"{self.needs} is not installed"


def _torch(workers: int) -> Row:
    return Row(
        "torch_rows:loader",
        f"PyTorch DataLoader, {workers} workers, Pillow crops as uint8 tensors",
        variants=(str(workers),),
        needs="torch",
    )


ROWS = {
    "pil": Row(
        "pillow_rows:pil",
        "generator: Pillow, whole image (as tutorials do), resized, float32, stacked",
    ),
    "pil-draft": Row("pillow_rows:pil_draft", "generator: Pillow, crop straight into uint8"),
    "keras-pydataset": Row(
        "keras_rows:py_dataset",
        "keras.utils.PyDataset, 2 workers, Pillow crops as uint8",
        variants=("threads", "processes"),
    ),
    **{f"torch-{workers}": _torch(workers) for workers in sorted({0, 2, cores()})},
    "article": Row(
        "tensorflow_rows:article",
        "tf.data as tutorials do: a pair at a time, whole image resized, float32, batch 10",
    ),
    "article-parallel": Row(
        "tensorflow_rows:article_parallel", "the same with AUTOTUNE and this bench's batch"
    ),
    "dali-cpu": Row(
        "dali_rows:dali", f"NVIDIA DALI on the CPU, {cores()} threads", needs="nvidia.dali"
    ),
    "files": Row("store_rows:stored", "facepairs: images decoded when needed"),
    "tfrecord-jpeg": Row(
        "store_rows:stored",
        "facepairs: cache of these pairs, the files' bytes, read in order",
        built=True,
    ),
    "tfrecord-raw": Row(
        "store_rows:stored", "facepairs: cache of these pairs, as crops, read in order", built=True
    ),
    "memory": Row(
        "store_rows:stored", "facepairs: crops decoded once and mapped into memory", built=True
    ),
    "limit": Row(
        "tensorflow_rows:limit",
        "files read and squares decoded on all cores, and dropped: no batches, no labels",
    ),
}


def choose(names: str | None) -> list[str]:
    """Read a list `a,b`, or give all names; raises BadConfig for one that is no row."""
    if names is None:
        return list(ROWS)
    chosen = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    for name in chosen:
        if name not in ROWS:
            near = difflib.get_close_matches(name, ROWS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(ROWS)}"
            raise BadConfig(f"unknown row {name!r}; {hint}")
    if not chosen:
        raise BadConfig(f"no rows given; known: {', '.join(ROWS)}")
    return chosen
