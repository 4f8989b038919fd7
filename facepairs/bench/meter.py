"""Measure a row of the bench, which is one input pipeline.

Measured are the time to the first batch, pairs per second, and CPU time and memory with children.
"""

import contextlib
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator

import psutil

from facepairs.bench.job import Batch, Job
from facepairs.bench.measurements import RowMeasurement

WARM_UP_BATCHES, MIN_BATCHES = 5, 20
SAMPLES_PER_S = 20
CHILD_SAMPLE_INTERVAL = 10  # reading the private pages of a child takes milliseconds
MEGABYTE = 1e6


def _sum_over_children(measure: Callable[[psutil.Process], float]) -> float:
    # Every library starts its workers through multiprocessing, which lists them at no cost; psutil
    # would have to walk all processes of the machine.
    total = 0.0
    for child in multiprocessing.active_children():
        with contextlib.suppress(psutil.Error):  # it has ended
            total += measure(psutil.Process(child.pid))
    return total


def cpu_seconds() -> float:
    """Return the CPU time, user and system, of this process and its living children."""
    own: float = time.process_time()
    return own + _sum_over_children(lambda child: sum(child.cpu_times()[:2]))


class MemoryPeak:
    """Sample resident memory 20 times a second, from construction to `megabytes()`.

    Only the private pages (USS) of a child count: a forked child shares those of its parent.
    """

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._start = self._process.memory_info().rss
        self._peak = self._start
        self._children = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        count = 0
        while not self._stopped.wait(1 / SAMPLES_PER_S):
            self._sample(with_children=count % CHILD_SAMPLE_INTERVAL == 0)
            count += 1

    def _sample(self, with_children: bool) -> None:
        if with_children:
            self._children = _sum_over_children(lambda child: child.memory_full_info().uss)
        self._peak = max(self._peak, self._process.memory_info().rss + int(self._children))

    def megabytes(self) -> float:
        """Stop sampling and return the peak above the start, in MB."""
        self._stopped.set()
        self._thread.join()
        self._sample(with_children=True)
        return float(self._peak - self._start) / MEGABYTE


def measure(row: Callable[[Job], Iterator[Batch]], job: Job, min_seconds: float) -> RowMeasurement:
    """Run a row: the first batch, 5 batches to warm up, then the measured ones.

    Args:
        row: The row's function.
        job: The pairs to load.
        min_seconds: Measure at least this long, and at least 20 batches.

    Returns:
        The row's speed and cost.
    """
    memory = MemoryPeak()
    started = time.perf_counter()
    batches = row(job)
    next(batches)
    first_batch_s = time.perf_counter() - started - job.setup_s
    for _ in range(WARM_UP_BATCHES):
        next(batches)
    pairs = count = 0
    cpu_s, measured_from = cpu_seconds(), time.perf_counter()
    elapsed_s = 0.0
    while count < MIN_BATCHES or elapsed_s < min_seconds:
        pairs += next(batches).pairs
        count += 1
        elapsed_s = time.perf_counter() - measured_from
    cpu_s = cpu_seconds() - cpu_s
    return RowMeasurement(
        pairs_per_s=pairs / elapsed_s,
        cpu_s_per_1k_pairs=1000 * cpu_s / pairs,
        first_batch_s=first_batch_s,
        peak_rss_mb=memory.megabytes(),
    )
