"""The machine that figures were made on."""

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

import psutil

TENSORFLOW_MB = 1900  # of address space, that its import takes
TRAINING_MB = 1000  # and that the smallest training takes besides
PACKAGES = ("tensorflow", "keras", "numpy", "pillow", "torch", "onnxruntime", "scikit-learn")


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def require_room_to_train() -> None:
    """Raise MemoryError where the process's limit of addresses (ulimit -v) leaves too few to train.

    TensorFlow does not say so itself: it aborts. Call it before its import.
    """
    try:
        import resource
    except ImportError:  # Windows knows no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    needed = TRAINING_MB + (0 if "tensorflow" in sys.modules else TENSORFLOW_MB)
    if limit - psutil.Process().memory_info().vms < needed << 20:
        raise MemoryError


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def _versions() -> dict[str, str]:
    installed = {dist.name.lower(): dist.version for dist in importlib.metadata.distributions()}
    versions = {name: installed[name] for name in PACKAGES if name in installed}
    dali = [version for name, version in installed.items() if name.startswith("nvidia-dali")]
    return {**versions, **({"dali": dali[0]} if dali else {})}


def describe() -> dict[str, Any]:
    """Give CPU, cores, memory, system and the versions of what was measured."""
    return {
        "cpu": _cpu_model(),
        "cores": cores(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "os": platform.platform(),
        "python": platform.python_version(),
        "versions": _versions(),
    }
