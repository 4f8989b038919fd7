"""Run one measurement in this process: `python -m facepairs.bench.worker < spec.json`.

Reads a `Spec` as JSON from stdin and prints a `WorkerResult` as JSON on the last line of stdout.
"""

import dataclasses
import importlib
import sys
import time
from typing import Any

import msgspec

from facepairs.bench.job import Job, Skip, Spec
from facepairs.bench.measurements import WorkerResult
from facepairs.errors import FacepairsError
from facepairs.support.platform import keep_freed_memory


def work(spec: Spec) -> dict[str, Any]:
    """Run a task and return its values; raises whatever the row raises."""
    keep_freed_memory()  # as training does; set for every row, so that none has an advantage
    if spec.task == "training":
        from facepairs.bench.steps import measure_steps

        return dataclasses.asdict(measure_steps(Job(spec)))
    if spec.task == "build":
        from facepairs.bench.store_rows import build

        job = Job(spec)
        started = time.perf_counter()
        build(job)
        return {"build_s": time.perf_counter() - started}
    from facepairs.bench.meter import measure

    module, _, name = spec.function.partition(":")
    row = getattr(importlib.import_module(module), name)
    return dataclasses.asdict(measure(row, Job(spec), spec.settings.seconds))


def main() -> None:
    """Read the task, run it, print the result."""
    spec = msgspec.json.decode(sys.stdin.buffer.read(), type=Spec)
    try:
        result = WorkerResult(work(spec))
    except Skip as reason:
        result = WorkerResult(skipped=str(reason))
    except FacepairsError as error:
        result = WorkerResult(failed=str(error))
    except Exception as error:  # noqa: BLE001 - a row that breaks is a result of its own
        first_line = next(iter(str(error).splitlines()), "")
        result = WorkerResult(failed=f"{type(error).__name__}: {first_line}")
    print("\n" + msgspec.json.encode(result).decode(), flush=True)


if __name__ == "__main__":
    main()
