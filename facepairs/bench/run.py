"""`run_bench`: measure every row in its own process, round after round."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import psutil

from facepairs.bench.job import Job
from facepairs.bench.rows import Measurement, Settings, Spec, Task
from facepairs.bench.worker import run_worker
from facepairs.support import console

WORDS: dict[Task, str] = {"build": "cache of ", "row": "", "training": "training from "}


@dataclass
class Line:
    """The line of one row in a table: what every run gave, or why there are no figures."""

    name: str
    runs: list[Measurement] = field(default_factory=list)

    @property
    def last(self) -> Measurement:
        """The latest run; if it failed or was skipped, it is the last one."""
        return self.runs[-1] if self.runs else Measurement()

    def figures(self, name: str) -> list[float]:
        """Return one figure of every run that has it; nothing for a row that failed."""
        values = [getattr(run, name) for run in self.runs if not self.last.failed]
        return [value for value in values if value is not None]


@dataclass
class Results:
    """Both tables, and the state of the machine before the first measurement.

    Attributes:
        settings: What was measured.
        images: Number of images that were used.
        people: Number of people that were used.
        pairs: Number of different pairs.
        load_average_before: The machine's load before the bench began.
        rows: The lines of the pipeline table.
        training: The lines of the training table.
        interrupted: Whether Ctrl-C ended the bench early.
    """

    settings: Settings
    images: int
    people: int
    pairs: int
    load_average_before: float
    rows: Sequence[Line]
    training: Sequence[Line]
    interrupted: bool = False

    @property
    def failed(self) -> bool:
        """Whether any row failed."""
        return any(line.last.failed for line in (*self.rows, *self.training))


def run_bench(settings: Settings) -> Results:
    """Measure all rows, `repeats` times in turn. Ctrl-C ends it early and keeps what was measured.

    Args:
        settings: What to measure.

    Raises:
        BadData: If the folder cannot be indexed, or no photo can be used.
        NotEnough: If no pairs can be drawn from the folder.
    """
    with tempfile.TemporaryDirectory(prefix="facepairs-bench-") as folder:
        job = Job(Spec(settings, folder))
        job.prepare()
        results = Results(
            settings,
            images=len(job.index),
            people=len(job.index.people),
            pairs=len(job.pairs),
            load_average_before=round(psutil.getloadavg()[0], 2),
            rows=[Line(name) for name in settings.rows],
            training=[Line(name) for name in settings.training],
        )
        try:
            _run_all(results, folder)
        except KeyboardInterrupt:
            results.interrupted = True
    return results


def _run_all(results: Results, folder: str) -> None:
    runs, progress = list(_runs(results)), console.progress("measuring")
    console.log("this takes a few minutes, more with large photos; Ctrl-C shows what is measured")
    for number, (line, task) in enumerate(runs, 1):
        if not (line.last.failed or line.last.skipped):
            line.runs.append(run_worker(Spec(results.settings, folder, line.name, task)))
            console.log(f"{number} of {len(runs)}, {WORDS[task]}{line.name}: {line.runs[-1]}")
        progress(number, len(runs))


def _runs(results: Results) -> Iterator[tuple[Line, Task]]:
    """Yield what to run. Rows take turns, because a slow phase of the machine then affects all."""
    settings = results.settings
    yield from ((line, "build") for line in results.rows if settings.rows[line.name].has_cache)
    for _ in range(settings.repeats):
        yield from ((line, "row") for line in results.rows)
    for _ in range(settings.repeats):
        yield from ((line, "training") for line in results.training)
