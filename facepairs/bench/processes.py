"""Start one worker process per measurement, and kill it with all its children at the end."""

import os
import subprocess
import sys

import msgspec

from facepairs.bench.job import Spec
from facepairs.bench.measurements import WorkerResult
from facepairs.support.platform import kill_with_children


def run_worker(spec: Spec, timeout_s: float) -> WorkerResult:
    """Run one task in a process of its own.

    Args:
        spec: The task.
        timeout_s: Kill the worker after this many seconds.

    Returns:
        The worker's result. A worker that crashes or runs out of time gives `failed`.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "facepairs.bench.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=_environment(spec),
        start_new_session=True,  # Ctrl-C then reaches only this process, which kills the worker
    )
    try:
        out, err = process.communicate(msgspec.json.encode(spec).decode(), timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return WorkerResult(failed=f"no result after {timeout_s:.0f} s")
    finally:
        _kill(process)
    try:
        return msgspec.json.decode(out.splitlines()[-1], type=WorkerResult)
    except (IndexError, msgspec.DecodeError):
        last = next((line for line in reversed(err.splitlines()) if line.strip()), "no message")
        return WorkerResult(failed=f"exit code {process.returncode}: {last.strip()}")


def _environment(spec: Spec) -> dict[str, str]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
    if spec.task != "training":  # input pipelines run on the CPU; a GPU would add start-up time
        environment["CUDA_VISIBLE_DEVICES"] = "-1"
    if spec.module_folder:
        paths = [spec.module_folder, os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return environment


def _kill(process: "subprocess.Popen[str]") -> None:
    """Kill the worker and its children, where they still run."""
    kill_with_children(process)
    process.communicate()
