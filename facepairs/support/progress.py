"""Progress and messages: types of the callbacks, and the time that is left."""

import math
from collections.abc import Callable

BAR = 24  # characters
ProgressCallback = Callable[[int, int], None]
"""Called as `progress(done, total)`; both count the same unit, and `done` never falls."""

MessageCallback = Callable[[str], None]
"""Called as `log(line)` with one line of plain text for the person who waits."""

ProgressFactory = Callable[[str], ProgressCallback]
"""Called as `display(label)`; returns the callback of one named phase of the work."""


def ignore_progress(done: int, total: int) -> None:
    """Discard a progress report."""


def ignore_phases(label: str) -> ProgressCallback:
    """Return a callback that discards the progress of a phase; the silent `ProgressFactory`."""
    return ignore_progress


def ignore_message(line: str) -> None:
    """Discard a message."""


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


class Counter:
    """Adds up the steps of a phase for its callback.

    Args:
        progress: The callback.
        total: All steps.
    """

    def __init__(self, progress: ProgressCallback, total: int) -> None:
        self._progress, self._done, self._total = progress, 0, total

    def __call__(self, steps: int = 1) -> None:
        """Count further steps."""
        self._done += steps
        self._progress(self._done, self._total)


def format_duration(seconds: float) -> str:
    """Return a duration as `m:ss` or `h:mm:ss`; negative ones as `0:00`."""
    minutes, second = divmod(round(max(seconds, 0)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def format_bar(done: int, total: int) -> str:
    """Return a text bar of the share of all steps that is done, such as `[======      ]`."""
    filled = BAR * done // max(total, 1)
    return f"[{'=' * filled}{' ' * (BAR - filled)}]"
