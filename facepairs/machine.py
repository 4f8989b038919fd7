"""The machine that figures were made on."""

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("tensorflow", "keras", "numpy", "pillow", "torch", "onnxruntime", "scikit-learn")


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


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
