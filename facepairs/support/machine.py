"""Describe the machine that measurements were made on."""

import contextlib
import importlib.metadata
import platform
from pathlib import Path
from typing import Any

import psutil

from facepairs.support.platform import cores

PACKAGES = ("tensorflow", "keras", "numpy", "pillow", "torch", "onnxruntime", "scikit-learn")


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def package_versions() -> dict[str, str]:
    """Return the installed versions of the packages that decide what is measured."""
    versions = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def describe() -> dict[str, Any]:
    """Return CPU, cores, memory, operating system and the versions of the packages measured."""
    return {
        "cpu": _cpu_model(),
        "cores": cores(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "os": platform.platform(),
        "python": platform.python_version(),
        "versions": package_versions(),
    }
