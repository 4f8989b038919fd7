"""Measure how long this process has run, without the wall clock and without time it was stopped.

Ctrl-Z, SIGSTOP, a scheduler or a suspended machine stop a process. A plan that fits training into a
number of minutes must not mistake such a gap for slow work.
"""

import threading
import time
from functools import cache

CHECK_INTERVAL_S = 0.5  # how often a thread reads the clock
STOPPED_S = 5.0  # a longer time between two readings means that the process was stopped


class RunningClock:
    """A monotonic clock in seconds, minus the gaps between two readings that are too long."""

    def __init__(
        self, check_interval_s: float = CHECK_INTERVAL_S, stopped_s: float = STOPPED_S
    ) -> None:
        self._check_interval_s, self._stopped_s = check_interval_s, stopped_s
        self._lock = threading.Lock()
        self._last_reading, self._lost_s = time.perf_counter(), 0.0
        threading.Thread(target=self._read_regularly, name="clock", daemon=True).start()

    def _read_regularly(self) -> None:
        while True:
            time.sleep(self._check_interval_s)
            self()

    def __call__(self) -> float:
        """Return the seconds; only differences have a meaning."""
        with self._lock:
            now = time.perf_counter()
            gap_s = now - self._last_reading
            if gap_s > self._stopped_s:
                self._lost_s += gap_s - self._check_interval_s
            self._last_reading = now
            return now - self._lost_s


_process_clock = cache(RunningClock)  # one thread a process is enough


def running_s() -> float:
    """Return the seconds this process has run since the first call, which starts the clock."""
    return _process_clock()()
