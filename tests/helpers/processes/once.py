"""Fixtures that all processes of pytest-xdist share."""

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from filelock import FileLock

T = TypeVar("T")


def made_once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], T]) -> T:
    """Return what `make` returns for a new folder, once for all processes."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    kept = shared / f"{name}.pickle"
    with FileLock(f"{kept}.lock"):
        if not kept.exists():
            shutil.rmtree(shared / name, ignore_errors=True)  # another process may have failed
            kept.write_bytes(pickle.dumps(make(shared / name)))
    made: T = pickle.loads(kept.read_bytes())
    return made
