"""One measurement in a process of its own: `python -m facepairs.bench.worker` is told on stdin.

Reads a `Spec` as JSON and prints a JSON object as the last line of stdout: the measured values,
or `{"failed": reason}` or `{"skipped": reason}`.
"""

import dataclasses
import json
import sys
import time
from typing import Any

from facepairs.bench.job import Job, Skip, Spec
from facepairs.errors import FacepairsError
from facepairs.support.allocator import keep_freed_memory


def work(spec: Spec) -> dict[str, Any]:
    """Do a task; raises whatever the row raises."""
    keep_freed_memory()  # as training does; every row has it, so that none is favoured
    if spec.task == "training":
        from facepairs.bench.steps import train_steps

        return dataclasses.asdict(train_steps(Job(spec)))
    if spec.task == "build":
        from facepairs.bench.store_rows import build

        job = Job(spec)
        started = time.perf_counter()
        build(job)
        return {"build_s": time.perf_counter() - started}
    from facepairs.bench.meter import measure
    from facepairs.bench.rows import ROWS

    row = ROWS[spec.name].load()
    return dataclasses.asdict(measure(row, Job(spec), spec.seconds))


def main() -> None:
    """Read the task, print the result."""
    spec = Spec(**json.load(sys.stdin))
    try:
        result = work(spec)
    except Skip as reason:
        result = {"skipped": str(reason)}
    except FacepairsError as error:
        result = {"failed": str(error)}
    except Exception as error:  # noqa: BLE001 - a row that breaks is a result of its own
        first = next(iter(str(error).splitlines()), "")
        result = {"failed": f"{type(error).__name__}: {first}"}
    print("\n" + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
