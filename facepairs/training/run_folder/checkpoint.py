"""Checkpoint files: all variables and the position of a run in one `.npz`, whole or absent.

The archive's own CRC-32 sums detect damage. Nothing in the file is executed (no pickle).
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
# RuntimeError: a flipped bit can make a member look encrypted or packed by another method.
DAMAGE = (OSError, ValueError, KeyError, RuntimeError, EOFError, zipfile.BadZipFile)


def save_checkpoint(path: Path, variables: Sequence[keras.Variable], state: dict[str, Any]) -> None:
    """Write a checkpoint atomically.

    Args:
        path: The file.
        variables: Saved in this order.
        state: Plain values, ready for JSON.
    """
    arrays = {f"v{i:04d}": np.asarray(variable) for i, variable in enumerate(variables)}
    arrays[STATE] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    with atomic_file(path, "wb") as handle:
        np.savez(handle, **arrays)  # type: ignore[arg-type]


def load_checkpoint(path: Path, variables: Sequence[keras.Variable]) -> dict[str, Any]:
    """Set the variables from a checkpoint.

    Args:
        path: The file.
        variables: In the order in which they were saved.

    Returns:
        The saved state.

    Raises:
        BadRun: The file is damaged or of another model; the variables are unchanged.
    """
    try:
        with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as archive:
            values = [archive[f"v{i:04d}"] for i in range(len(archive.files) - 1)]
            state: dict[str, Any] = json.loads(archive[STATE].tobytes())
    except DAMAGE as error:
        raise BadRun(
            f"{path}: damaged checkpoint ({error}); train again with another --out"
        ) from None
    if [value.shape for value in values] != [tuple(v.shape) for v in variables]:
        raise BadRun(
            f"{path}: checkpoint of another model or version; train again with another --out"
        )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
    return state
