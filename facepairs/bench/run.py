"""`run_bench`: every row in its own process, round after round, and what came of it."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psutil

from facepairs.bench.job import Job, Spec
from facepairs.bench.meter import LEAST_BATCHES, WARM_UP_BATCHES
from facepairs.bench.processes import run_worker
from facepairs.bench.rows import ROWS, STORES
from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.errors import BadConfig
from facepairs.support.machine import cores

FRAME_PX = 250
TRAINABLE = ("difference", "siamese-conv")  # step by step, from the images of each
BUSY = 0.5  # of the cores
Say = Callable[[str], None]
Tick = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """What to measure; `rows` are names of `ROWS`."""

    data: Path
    rows: list[str]
    repeats: int
    seconds: float
    batch_size: int
    crop_px: int
    model: str
    training: bool


@dataclass
class Line:
    """What is known of one row of a table: a result a round for each variant still in the race."""

    name: str
    running: list[str]
    skipped: str = ""
    failed: str = ""
    build_s: float = 0.0
    disk_mb: float = 0.0
    runs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to run."""
        return bool(self.skipped or self.failed)

    def add(self, variant: str, result: dict[str, Any]) -> None:
        """Take a worker's result; a row has failed when no variant of it is left."""
        if "skipped" in result:
            self.skipped = result["skipped"]
        elif "failed" in result:
            self.running.remove(variant)
            self.failed = "" if self.running else result["failed"]
        else:
            self.runs.setdefault(variant, []).append(result)

    def settle(self) -> None:
        """Let only the variant go on that was fastest in the first round."""
        if len(self.running) > 1:
            self.running = [max(self.running, key=lambda name: self.runs[name][0]["pairs_per_s"])]


@dataclass
class Results:
    """Both tables, and how warm and how busy the machine was."""

    options: Options
    images: int
    people: int
    page_cache: str
    load_average: float
    rows: list[Line]
    training: list[Line]
    interrupted: bool = False

    @property
    def failed(self) -> bool:
        """Whether any row broke."""
        return any(line.failed for line in [*self.rows, *self.training])


def check_model(model: str) -> None:
    """Raise BadConfig for a model that does not learn from the images of each step."""
    if model == "siamese":
        raise BadConfig(
            "siamese learns from vectors made once, so no store feeds its steps; use --model "
            "siamese-conv or difference"
        )
    TrainConfig().replace(model=model)
    if model not in TRAINABLE:
        raise BadConfig(f"{model} has nothing to train; use --model difference")


def run_bench(options: Options, say: Say, progress: Tick) -> Results:
    """Measure all rows, `repeats` times in turn; Ctrl-C ends it with what there is.

    Raises BadData and NotEnough for a folder that no pairs can be drawn from, BadConfig for a model
    whose steps no store feeds.
    """
    if options.training:
        check_model(options.model)
    busy = psutil.getloadavg()[0]
    if busy > BUSY * cores():
        say(f"warning: this machine is busy (load {busy:.1f} on {cores()} cores): figures suffer")
    index = Job(_spec(options, "row", "")).index
    stores = [name for name in STORES if name in options.rows] if options.training else []
    results = Results(
        options,
        len(index),
        len(index.people),
        _warm(index, progress),
        round(busy, 2),
        [
            Line(name, list(ROWS[name].variants), skipped=ROWS[name].missing())
            for name in options.rows
        ],
        [Line(name, [""]) for name in stores],
    )
    try:
        with tempfile.TemporaryDirectory(prefix="facepairs-bench-") as folder:
            runner = _Runner(options, Path(folder), len(index), say)
            runner.build(results)
            runner.rounds(results.rows, "row", "pairs_per_s", "pairs/s")
            runner.rounds(results.training, "training", "steps_per_s", "steps/s")
    except KeyboardInterrupt:
        results.interrupted = True
    return results


def _spec(
    options: Options, task: Literal["build", "row", "training"], name: str, **more: Any
) -> Spec:
    return Spec(
        task=task,
        name=name,
        data=str(options.data),
        batch_size=options.batch_size,
        frame_px=FRAME_PX,
        crop_px=options.crop_px,
        seconds=options.seconds,
        model=options.model,
        **more,
    )


def _warm(index: FaceIndex, progress: Tick) -> str:
    """Read every file once, so that no row pays for the disk; say whether memory can hold them."""
    free = psutil.virtual_memory().available
    for image in range(len(index)):
        with open(index.path(image), "rb") as handle:
            handle.read()
        progress(image + 1, len(index))
    return "warm" if index.sizes.sum() < free else "larger than memory"


class _Runner:
    """Runs workers for the lines of a table and tells of each."""

    def __init__(self, options: Options, folder: Path, images: int, say: Say) -> None:
        self.options, self.folder, self.say = options, folder, say
        # A worker that hangs must end one day: libraries that fork may wait for themselves.
        pairs = (WARM_UP_BATCHES + LEAST_BATCHES) * options.batch_size
        self.limit_s = {
            "build": 600 + images / 20,
            "row": 90 + 12 * options.seconds + pairs / 50 + images / 1000,
            "training": 900 + pairs / 20 + images / 1000,
        }

    def _cache(self, name: str) -> str:
        known = name in ROWS and ROWS[name].built
        return str(self.folder / f"{name}.store") if known else ""

    def _work(
        self, task: Literal["build", "row", "training"], name: str, variant: str = ""
    ) -> dict[str, Any]:
        spec = _spec(self.options, task, name, variant=variant, cache=self._cache(name))
        return run_worker(spec, self.limit_s[task])

    def build(self, results: Results) -> None:
        """Build the stores that are kept on disk; a row whose store fails has failed."""
        for line in results.rows:
            if not ROWS[line.name].built:
                continue
            self.say(f"building the store of {line.name}")
            result = self._work("build", line.name)
            line.failed = result.get("failed", "")
            line.build_s = result.get("build_s", 0.0)
            line.disk_mb = _size(self.folder / f"{line.name}.store") / 1e6
        broken = {line.name: line.failed for line in results.rows}
        for line in results.training:
            line.failed = broken.get(line.name, "")

    def rounds(
        self, lines: list[Line], task: Literal["row", "training"], figure: str, unit: str
    ) -> None:
        """Run every line once, then every line again: what slows the machine down hits all."""
        for number in range(self.options.repeats):
            for line in lines:
                for variant in list(line.running) if not line.ended else []:
                    result = self._work(task, line.name, variant)
                    line.add(variant, result)
                    label = f"{line.name} {variant}" if len(line.running) > 1 else line.name
                    text = (
                        f"{result[figure]:,.1f} {unit}"
                        if figure in result
                        else "; ".join(f"{key}: {value}" for key, value in result.items())
                    )
                    self.say(f"round {number + 1} of {self.options.repeats}: {label}: {text}")
                line.settle()


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
