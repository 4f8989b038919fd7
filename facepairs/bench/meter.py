"""What a row costs: time to the first batch, pairs/s, CPU time and memory, worker processes too."""

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psutil

from facepairs.bench.job import Batch, Job

WARM_UP_BATCHES, LEAST_BATCHES = 5, 20
SAMPLES_A_SECOND = 20
CHILD_EVERY = 10  # samples: reading a child's own pages costs milliseconds
MEGABYTE = 1e6


def _children() -> list[psutil.Process]:
    # Every library here starts its workers through multiprocessing, which knows them at no cost;
    # psutil would have to walk all of the machine's processes.
    found = []
    for child in multiprocessing.active_children():
        try:
            found.append(psutil.Process(child.pid))
        except psutil.NoSuchProcess:
            continue
    return found


def _over_children(measure: Callable[[psutil.Process], float]) -> float:
    total = 0.0
    for child in _children():
        try:
            total += measure(child)
        except psutil.Error:
            continue
    return total


def cpu_seconds() -> float:
    """CPU time so far, user and system, of this process and the children that live."""
    own: float = time.process_time()
    return own + _over_children(lambda child: sum(child.cpu_times()[:2]))


class MemoryPeak:
    """Samples resident memory 20 times a second; `megabytes` is the peak above the beginning.

    Of a child only the pages that are its own count (USS): a forked one shares its parent's.
    """

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._idle = self._process.memory_info().rss
        self._peak = self._idle
        self._in_children = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        count = 0
        while not self._stopped.wait(1 / SAMPLES_A_SECOND):
            self._sample(with_children=count % CHILD_EVERY == 0)
            count += 1

    def _sample(self, with_children: bool) -> None:
        if with_children:
            self._in_children = _over_children(lambda child: child.memory_full_info().uss)
        self._peak = max(self._peak, self._process.memory_info().rss + int(self._in_children))

    def megabytes(self) -> float:
        """Stop sampling and give the peak."""
        self._stopped.set()
        self._thread.join()
        self._sample(with_children=True)
        return float(self._peak - self._idle) / MEGABYTE


@dataclass(frozen=True)
class Measured:
    """What one run of a row came to."""

    pairs_per_s: float
    cpu_s_per_1k_pairs: float
    first_batch_s: float
    peak_rss_mb: float


def measure(row: Callable[[Job], Iterator[Batch]], job: Job, seconds: float) -> Measured:
    """Run a row: its first batch, five to warm up, then `seconds` and 20 batches at the least."""
    memory = MemoryPeak()
    started = time.perf_counter()
    batches = row(job)
    next(batches)
    first_batch_s = time.perf_counter() - started - job.aside_s
    for _ in range(WARM_UP_BATCHES):
        next(batches)
    pairs = count = 0
    cpu, began = cpu_seconds(), time.perf_counter()
    took = 0.0
    while count < LEAST_BATCHES or took < seconds:
        pairs += next(batches).pairs
        count += 1
        took = time.perf_counter() - began
    cpu = cpu_seconds() - cpu
    return Measured(
        pairs_per_s=pairs / took,
        cpu_s_per_1k_pairs=1000 * cpu / pairs,
        first_batch_s=first_batch_s,
        peak_rss_mb=memory.megabytes(),
    )
