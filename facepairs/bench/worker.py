"""One run in a process of its own: `python -m facepairs.bench.worker < spec.json`.

The process reads a `Spec` as JSON and prints a `Measurement` as JSON on the last line of stdout.
`run_worker` starts it, and kills it with all its children at the end.
"""

import contextlib
import multiprocessing
import os
import pkgutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import msgspec
import psutil

from facepairs.bench.job import Batch, Job, Skip
from facepairs.bench.rows import Measurement, Row, Spec
from facepairs.support.platform import keep_freed_memory, kill_with_children

WARM_UP_BATCHES, MIN_BATCHES = 5, 8  # one of 64 pairs of large photos may take ten seconds
TIMEOUT_S = 3600.0  # a library may wait for ever for a process that it forked


def run_worker(spec: Spec, timeout_s: float = TIMEOUT_S) -> Measurement:
    """Run one task in a process of its own.

    Args:
        spec: The task.
        timeout_s: Kill the worker after this many seconds.

    Returns:
        What was measured. A worker that crashes or runs out of time gives `failed`.
    """
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
    if spec.task != "training":  # input pipelines run on the CPU; a GPU would add start-up time
        environment["CUDA_VISIBLE_DEVICES"] = "-1"
    process = subprocess.Popen(
        [sys.executable, "-m", "facepairs.bench.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=environment,
        start_new_session=True,  # Ctrl-C then reaches only this process, which kills the worker
    )
    try:
        out, err = process.communicate(msgspec.json.encode(spec).decode(), timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return Measurement(failed=f"no result after {timeout_s:.0f} s")
    finally:
        kill_with_children(process)
        process.communicate()
    try:
        return msgspec.json.decode(out.splitlines()[-1], type=Measurement)
    except (IndexError, msgspec.DecodeError):
        last = next((line for line in reversed(err.splitlines()) if line.strip()), "no message")
        return Measurement(failed=f"exit code {process.returncode}: {last.strip()}")


def main() -> None:
    """Read the task, run it, print the result."""
    spec = msgspec.json.decode(sys.stdin.buffer.read(), type=Spec)
    try:
        result = _work(spec)
    except (Skip, ModuleNotFoundError) as reason:  # a library of a row may not be installed
        result = Measurement(skipped=str(reason))
    except Exception as error:  # noqa: BLE001 - a row that breaks is a result of its own
        result = Measurement(failed=f"{type(error).__name__}: {error}".partition("\n")[0])
    print("\n" + msgspec.json.encode(result).decode(), flush=True)


def _work(spec: Spec) -> Measurement:
    keep_freed_memory()  # as training does; set for every row, so that none has an advantage
    job = Job(spec)
    if spec.task == "row":
        return measure(row_function(spec.settings.rows[spec.name]), job)
    from facepairs.bench.stores import build, measure_steps

    return build(job) if spec.task == "build" else measure_steps(job)


def row_function(row: Row) -> Callable[[Job], Iterator[Batch]]:
    """Import the function of a row."""
    function: Callable[[Job], Iterator[Batch]] = pkgutil.resolve_name(row.function)
    return function


def measure(row: Callable[[Job], Iterator[Batch]], job: Job) -> Measurement:
    """Run a row: 5 batches to warm up, then at least 8, and as long as the settings say."""
    batches = row(job)
    for _ in range(WARM_UP_BATCHES):
        next(batches)
    pairs = count = 0
    cpu_s, started, elapsed_s = _cpu_seconds(), time.perf_counter(), 0.0
    while count < MIN_BATCHES or elapsed_s < job.settings.seconds:
        pairs += next(batches).pairs
        count += 1
        elapsed_s = time.perf_counter() - started
    cpu_s = _cpu_seconds() - cpu_s
    return Measurement(pairs_per_s=pairs / elapsed_s, cpu_s_per_1k_pairs=1000 * cpu_s / pairs)


def _cpu_seconds() -> float:
    """Return the CPU time, user and system, of this process and its living children."""
    total = time.process_time()
    for child in multiprocessing.active_children():  # every library starts its workers with it
        with contextlib.suppress(psutil.Error):  # it has ended
            total += sum(psutil.Process(child.pid).cpu_times()[:2])
    return total


if __name__ == "__main__":
    main()
