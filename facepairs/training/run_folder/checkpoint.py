"""Checkpoints: every variable and the position of a run in one `.npz`, whole or absent.

The archive's own CRC-32 sums find damage when it is read; nothing in it is executed (no pickle).
"""

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from facepairs.errors import BadRun
from facepairs.support.atomic import atomic_file

STATE = "state"
# A changed bit may say of a member that it is encrypted or packed in another way: RuntimeError.
DAMAGE = (OSError, ValueError, KeyError, RuntimeError, EOFError, zipfile.BadZipFile)


def save_checkpoint(path: Path, variables: Sequence[keras.Variable], state: dict[str, Any]) -> None:
    """Write the variables' values in order, and a JSON-ready state."""
    arrays = {f"v{i:04d}": np.asarray(v) for i, v in enumerate(variables)}
    arrays[STATE] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    with atomic_file(path, "wb") as handle:
        np.savez(handle, **arrays)  # type: ignore[arg-type]


def load_checkpoint(path: Path, variables: Sequence[keras.Variable]) -> dict[str, Any]:
    """Set the variables from a checkpoint and give its state.

    Raises BadRun when it is damaged or of another model; the variables are then untouched.
    """
    try:
        with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as archive:
            values = [archive[f"v{i:04d}"] for i in range(len(archive.files) - 1)]
            state: dict[str, Any] = json.loads(archive[STATE].tobytes())
    except DAMAGE as error:
        raise BadRun(f"{path}: damaged checkpoint ({error}); start anew in another --out") from None
    if [value.shape for value in values] != [tuple(v.shape) for v in variables]:
        raise BadRun(f"{path}: checkpoint of another model or version; start anew")
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
    return state
