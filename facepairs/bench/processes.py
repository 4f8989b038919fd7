"""Workers: one process a measurement, killed with all it started when it must end."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from typing import Any

from facepairs.bench.job import Spec


def run_worker(spec: Spec, limit_s: float) -> dict[str, Any]:
    """Run one task to its result; a worker that breaks, or is not done in time, gives `failed`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "facepairs.bench.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=_environment(spec),
        start_new_session=True,  # so that Ctrl-C reaches this process alone, which then ends it
    )
    try:
        out, err = process.communicate(json.dumps(dataclasses.asdict(spec)), timeout=limit_s)
    except subprocess.TimeoutExpired:
        return {"failed": f"no result after {limit_s:.0f} s"}
    finally:
        _end(process)
    try:
        result: dict[str, Any] = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        last = next((line for line in reversed(err.splitlines()) if line.strip()), "no message")
        return {"failed": f"exit code {process.returncode}: {last.strip()}"}
    return result


def _environment(spec: Spec) -> dict[str, str]:
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
    # Input pipelines run on the CPU; a GPU would only add the time it takes to wake up.
    hidden = {} if spec.task == "training" else {"CUDA_VISIBLE_DEVICES": "-1"}
    return {**os.environ, **quiet, **hidden}


def _end(process: "subprocess.Popen[str]") -> None:
    """Kill what still runs of a worker and its own children."""
    if sys.platform == "win32":
        process.kill()
    else:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
    process.communicate()
