"""Show on stderr what work tells: a bar in a terminal, a line now and then in a log file."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from facepairs.cli.shared.output import ERASE_LINE, log
from facepairs.cli.shared.quiet import quiet
from facepairs.support.console import Progress, showing
from facepairs.support.words import format_duration

DISPLAY_AFTER_S, REFRESH_S = 2.0, 0.1
LINE_EVERY_S = 30.0  # in a log file
BAR = 24  # characters


def showing_on_stderr(as_json: bool = False) -> AbstractContextManager[None]:
    """Show messages and progress on stderr during a block; with `as_json`, messages alone.

    In a terminal progress is a bar, once a phase takes two seconds; elsewhere a line every 30
    seconds. --quiet hides everything.
    """
    if as_json or quiet():
        return showing(log)
    return (
        showing(log, _progress_bar, _waiting)
        if sys.stderr.isatty()
        else showing(log, _progress_lines)
    )


@contextmanager
def _waiting(label: str) -> Iterator[None]:
    print(f"{ERASE_LINE}{label} …", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(ERASE_LINE, end="", file=sys.stderr, flush=True)


def _progress_bar(label: str) -> Progress:
    started = time.monotonic()
    refreshed = 0.0
    time_left = TimeLeft()

    def update(done: int, total: int) -> None:
        nonlocal refreshed
        now = time.monotonic()
        left = _left(time_left.update(done, total, now))
        finished = done >= total
        too_soon = now - started < DISPLAY_AFTER_S or now - refreshed < REFRESH_S
        if too_soon and not (finished and refreshed):
            return
        refreshed = now
        bar = f"{label} {_bar(done, total)} {done:,}/{total:,}{left}"
        print(ERASE_LINE + ("" if finished else bar), end="", file=sys.stderr, flush=True)

    return update


def _progress_lines(label: str) -> Progress:
    printed = time.monotonic()
    time_left = TimeLeft()

    def update(done: int, total: int) -> None:
        nonlocal printed
        now = time.monotonic()
        left = _left(time_left.update(done, total, now))
        if done < total and now - printed >= LINE_EVERY_S:
            printed = now
            log(f"{label} {done:,}/{total:,}{left}")

    return update


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f"  {format_duration(seconds)} left"


def _bar(done: int, total: int) -> str:
    """Return a text bar of the share of all steps that is done, such as `[======      ]`."""
    filled = BAR * done // max(total, 1)
    return f"[{'=' * filled}{' ' * (BAR - filled)}]"


class TimeLeft:
    """Estimate how long the rest of a phase takes, from its speed of late.

    The first item does not count: it may have waited for a disk or a compiler, or stand for work of
    an earlier run. The speed is an average that forgets: what lies further back than a quarter of
    the time so far, and at least `MEMORY_S`, hardly matters.
    """

    MEMORY_S, MIN_SECONDS, MIN_UPDATES = 5.0, 2.0, 3

    def __init__(self) -> None:
        self._first: float | None = None
        self._last, self._done, self._updates = 0.0, 0, 0
        self._work = self._seconds = 0.0  # of late: older ones count less

    def update(self, done: int, total: int, now: float) -> float | None:
        """Return the seconds left, or None as long as there is nothing to judge by.

        Args:
            done: Steps done.
            total: All steps.
            now: The time of a monotonic clock, in seconds.
        """
        if done > self._done:
            if self._first is None:
                self._first = now
            else:
                self._add(done - self._done, now - self._last, now - self._first)
            self._last, self._done = now, done
        too_few = self._updates < self.MIN_UPDATES
        if self._first is None or too_few or now - self._first < self.MIN_SECONDS:
            return None
        return max(0.0, (total - done) * self._seconds / self._work - (now - self._last))

    def _add(self, steps: int, seconds: float, elapsed: float) -> None:
        kept = math.exp(-seconds / max(self.MEMORY_S, elapsed / 4))
        self._work = self._work * kept + steps
        self._seconds = self._seconds * kept + seconds
        self._updates += 1
