"""Show progress on stderr: a bar in a terminal, a line now and then in a log file."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from facepairs.cli.shared.output import ERASE_LINE, log, quiet
from facepairs.support.console import Progress, showing

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

DISPLAY_AFTER_S = 2.0
LINE_EVERY_S = 30.0  # in a log file


@contextmanager
def showing_on_stderr(as_json: bool = False) -> Iterator[None]:
    """Show messages and progress on stderr during a block; with `as_json`, messages alone.

    In a terminal progress is a bar, once a phase takes two seconds; elsewhere a line every 30
    seconds. --quiet hides everything.
    """
    if as_json or quiet():
        with showing(log):
            yield
    elif not sys.stderr.isatty():
        with showing(log, _progress_lines):
            yield
    else:
        with _showing_bars():
            yield


@contextmanager
def _showing_bars() -> Iterator[None]:
    bars: Bars | None = None

    def begin(label: str) -> Progress:
        started, task = time.monotonic(), None

        def update(done: int, total: int) -> None:
            nonlocal bars, task
            if task is None and done < total and time.monotonic() - started > DISPLAY_AFTER_S:
                bars = bars or _start_bars()
                task = bars.add_task(label, completed=done, total=total)
            if bars is not None and task is not None:
                bars.update(task, completed=done, total=total, visible=done < total)

        return update

    try:
        with showing(log, begin, _waiting):
            yield
    finally:
        if bars is not None:
            bars.stop()


def _start_bars() -> "Bars":
    from rich import console, progress  # a twentieth of a second, which short work does not need

    columns = progress.BarColumn(24), progress.MofNCompleteColumn(), progress.TimeRemainingColumn()
    label = progress.TextColumn("{task.description}", markup=False)
    # Messages go past it: it would break long lines.
    bars = progress.Progress(
        label,
        *columns,
        console=console.Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bars.start()
    return bars


def _progress_lines(label: str) -> Progress:
    printed = time.monotonic()

    def update(done: int, total: int) -> None:
        nonlocal printed
        now = time.monotonic()
        if done < total and now - printed >= LINE_EVERY_S:
            printed = now
            log(f"{label} {done:,}/{total:,}")

    return update


@contextmanager
def _waiting(label: str) -> Iterator[None]:
    print(f"{ERASE_LINE}{label} …", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(ERASE_LINE, end="", file=sys.stderr, flush=True)
