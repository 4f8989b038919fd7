"""The seconds that this process has run: no clock on the wall, and no time that it stood still.

A process is stopped by Ctrl-Z or SIGSTOP, by a scheduler or with its whole machine. A plan for so
many minutes of training must not take such a gap for slow work.
"""

import threading
import time

BEAT_S = 0.5  # how often a thread looks at the clock …
STOPPED_S = 5.0  # … and how much more than that has passed where the process stood still


class RunningClock:
    """Seconds of a monotonic clock, less the gaps between two looks at it that are too long."""

    def __init__(self, beat_s: float = BEAT_S, stopped_s: float = STOPPED_S) -> None:
        self._beat_s, self._stopped_s = beat_s, stopped_s
        self._lock = threading.Lock()
        self._seen, self._lost = time.perf_counter(), 0.0
        threading.Thread(target=self._beat, name="clock", daemon=True).start()

    def _beat(self) -> None:
        while True:
            time.sleep(self._beat_s)
            self()

    def __call__(self) -> float:
        """Give the seconds; only differences mean anything."""
        with self._lock:
            now = time.perf_counter()
            if now - self._seen > self._stopped_s:
                self._lost += now - self._seen - self._beat_s
            self._seen = now
            return now - self._lost


_clock: RunningClock | None = None


def running_s() -> float:
    """Give the seconds that this process has run since some moment; the first call starts it."""
    global _clock  # noqa: PLW0603 - one thread a process is enough
    if _clock is None:
        _clock = RunningClock()
    return _clock()
