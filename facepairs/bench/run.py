"""`run_bench`: measure every row in its own process, round after round."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import psutil

from facepairs.bench.job import FRAME_PX, BenchSettings, Job, Spec, Task, inspect_all, save_plan
from facepairs.bench.measurements import RowMeasurement, StepMeasurement, WorkerResult
from facepairs.bench.processes import run_worker
from facepairs.bench.rows import UNALIGNED, Row
from facepairs.images.crop import CropSpec
from facepairs.support.platform import cores
from facepairs.support.progress import (
    Counter,
    MessageCallback,
    ProgressCallback,
    ProgressFactory,
    ignore_message,
    ignore_phases,
)

BUSY_LOAD = 0.5  # per core
FACE_S = 0.012  # to find the faces in a photo
START_S = 4.0  # of a worker with TensorFlow, on two cores
BUILD_S = 8.0  # of a cache
TRAINING_S = 13.0  # of the steps of one measurement of training, at batch 64
TIMEOUT_S = 3600.0  # a library may wait for ever for a process that it forked
PLAN = "plan.npz"
M = TypeVar("M", RowMeasurement, StepMeasurement)


@dataclass(frozen=True)
class Options:
    """What to measure.

    Attributes:
        settings: What all measurements have in common.
        rows: The pipelines by name: `rows.ROWS`, a part of them, or rows of your own as well.
        repeats: Rounds; every row runs once per round.
        training: Names of those `rows.STORES` from which training is measured as well.
    """

    settings: BenchSettings
    rows: Mapping[str, Row]
    repeats: int = 2
    training: Sequence[str] = ()

    def seconds(self) -> float:
        """Return about how long the measurements take on two cores, after faces are found."""
        rows = [row for row in self.rows.values() if not row.missing()]
        row_s = START_S + self.settings.seconds
        training_s = START_S + TRAINING_S * self.settings.batch_size / 64
        round_s = len(rows) * row_s + len(self.training) * training_s
        return sum(row.has_cache for row in rows) * BUILD_S + self.repeats * round_s


@dataclass
class Line(Generic[M]):
    """The line of one row in a table: one measurement per round, or why there are none."""

    name: str
    skipped: str = ""
    failed: str = ""
    build_s: float = 0.0
    disk_mb: float = 0.0
    measurements: list[M] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether the row was skipped or has failed."""
        return bool(self.skipped or self.failed)

    def add(self, result: WorkerResult, measurement: type[M]) -> str:
        """Add a worker's result, and return it as text."""
        self.skipped, self.failed = result.skipped, result.failed
        if result.values is None:
            return f"failed: {self.failed}" if self.failed else f"skipped: {self.skipped}"
        self.measurements.append(measurement(**result.values))
        return str(self.measurements[-1])


@dataclass
class BenchResults:
    """Both tables, and the state of the machine before the first measurement.

    Attributes:
        options: What was measured.
        images: Number of images in the folder.
        people: Number of people in the folder.
        page_cache: "warm", or "larger than memory".
        load_average: The machine's load before the bench began.
        rows: The lines of the pipeline table.
        training: The lines of the training table.
        interrupted: Whether Ctrl-C ended the bench early.
    """

    options: Options
    images: int
    people: int
    page_cache: str
    load_average: float
    rows: list[Line[RowMeasurement]]
    training: list[Line[StepMeasurement]]
    interrupted: bool = False

    @property
    def failed(self) -> bool:
        """Whether any row failed."""
        return any(row.failed for row in self.rows) or any(row.failed for row in self.training)


def run_bench(
    options: Options,
    log: MessageCallback = ignore_message,
    progress: ProgressFactory = ignore_phases,
) -> BenchResults:
    """Measure all rows, `repeats` times in turn. Ctrl-C ends it early and keeps what was measured.

    Args:
        options: What to measure.
        log: Called with one line per measurement.
        progress: Displays finding faces, and then the measurements.

    Returns:
        The measurements of every row.

    Raises:
        BadData: If the folder cannot be indexed, or a photo cannot be read or shows no face.
        NotEnough: If no pairs can be drawn from the folder.
    """
    load = psutil.getloadavg()[0]
    if load > BUSY_LOAD * cores():
        log(f"warning: this machine is busy (load {load:.1f} on {cores()} cores); expect noise")
    index = Job(Spec(options.settings)).index
    free = psutil.virtual_memory().available
    log(_describe_time(options, len(index)))
    # Reads every file once, so that no row waits for the disk.
    photos = inspect_all(index, options.settings.align, progress("finding faces"))
    results = BenchResults(
        options,
        len(index),
        len(index.people),
        "warm" if index.sizes.sum() < free else "larger than memory",
        round(load, 2),
        [Line(name, skipped=_why_skipped(name, options)) for name in options.rows],
        [Line(name) for name in options.training],
    )
    try:
        with tempfile.TemporaryDirectory(prefix="facepairs-bench-") as folder:
            spec = CropSpec(FRAME_PX, options.settings.crop_px)
            save_plan(Path(folder) / PLAN, photos.crop_plan(spec, options.settings.align))
            runner = _Runner(options, Path(folder), log, progress("measuring"))
            runner.build_caches(results)
            runner.run_rounds(results.rows, "row", RowMeasurement)
            runner.run_rounds(results.training, "training", StepMeasurement)
    except KeyboardInterrupt:
        results.interrupted = True
    return results


def _describe_time(options: Options, images: int) -> str:
    seconds = options.seconds()
    longest = seconds + (images * FACE_S if options.settings.align == "landmarks" else 0)
    low, high = (max(1, round(one / 60)) for one in (seconds, longest))
    found = f", {high} if faces must be found first" if high > low else ""
    return f"this takes about {low} min on two cores{found}; Ctrl-C shows what is measured by then"


def _why_skipped(name: str, options: Options) -> str:
    if name == UNALIGNED and options.settings.align == "none":
        return "files itself is unaligned"
    return options.rows[name].missing()


class _Runner:
    """Runs the workers of both tables."""

    def __init__(
        self,
        options: Options,
        folder: Path,
        log: MessageCallback,
        progress: ProgressCallback,
    ) -> None:
        self._options, self._folder, self._log = options, folder, log
        builds = sum(row.has_cache for row in options.rows.values())
        lines = sum(not _why_skipped(name, options) for name in options.rows)
        lines += len(options.training)
        self._count = Counter(progress, builds + options.repeats * lines)

    def _cache(self, name: str) -> Path:
        return self._folder / f"{name}.store"

    def _run(self, task: Task, name: str) -> WorkerResult:
        row = self._options.rows[name]
        cache = str(self._cache(name)) if row.has_cache else ""
        settings = self._options.settings
        plan = str(self._folder / PLAN)
        spec = Spec(settings, task, name, row.function, row.module_folder, cache, plan)
        result = run_worker(spec, TIMEOUT_S)
        self._count()
        return result

    def build_caches(self, results: BenchResults) -> None:
        """Build the caches on disk. A row whose cache cannot be built has failed."""
        for line in results.rows:
            if not self._options.rows[line.name].has_cache:
                continue
            self._log(f"building the cache of {line.name}")
            result = self._run("build", line.name)
            line.failed = result.failed
            line.build_s = result.values["build_s"] if result.values else 0.0
            line.disk_mb = _size_mb(self._cache(line.name))
        failures = {line.name: line.failed for line in results.rows}
        for step_line in results.training:
            step_line.failed = failures.get(step_line.name, "")

    def run_rounds(self, lines: list[Line[M]], task: Task, measurement: type[M]) -> None:
        """Run every row once, then every row again: a slow phase of the machine affects all."""
        for number in range(self._options.repeats):
            for line in lines:
                if not line.ended:
                    text = line.add(self._run(task, line.name), measurement)
                    what = f"training from {line.name}" if task == "training" else line.name
                    self._log(f"round {number + 1} of {self._options.repeats}: {what}: {text}")


def _size_mb(path: Path) -> float:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6
