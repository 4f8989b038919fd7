"""Checkpoint files: all variables, the position of a run and the weights of its best epoch.

A checkpoint is one `.npz`, whole or absent, so its parts always belong together.

The archive's own CRC-32 sums detect damage. Nothing in the file is executed (no pickle).
"""

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadRun
from facepairs.support.atomic import atomic_file

if TYPE_CHECKING:  # importing it loads TensorFlow
    import keras

STATE = "state"
# RuntimeError: a flipped bit can make a member look encrypted or packed by another method.
DAMAGE = (OSError, ValueError, KeyError, RuntimeError, EOFError, zipfile.BadZipFile)


def save_checkpoint(
    path: Path,
    variables: "Sequence[keras.Variable]",
    state: dict[str, Any],
    best: Sequence[npt.NDArray[Any]] = (),
) -> None:
    """Write a checkpoint atomically.

    Args:
        path: The file.
        variables: Saved in this order.
        state: Plain values, ready for JSON.
        best: The weights of the best epoch, if any.
    """
    arrays = {f"v{i:04d}": np.asarray(variable) for i, variable in enumerate(variables)}
    arrays |= {f"best{i:04d}": values for i, values in enumerate(best)}
    arrays[STATE] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    with atomic_file(path, "wb") as handle:
        np.savez(handle, **arrays)  # type: ignore[arg-type]


def load_checkpoint(
    path: Path, variables: "Sequence[keras.Variable]"
) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
    """Set the variables from a checkpoint.

    Args:
        path: The file.
        variables: In the order in which they were saved.

    Returns:
        The saved state, and the weights of the best epoch, if any.

    Raises:
        BadRun: The file is damaged or of another model; the variables are unchanged.
    """
    try:
        with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as archive:
            values, best = (
                [archive[name] for name in sorted(archive.files) if name.startswith(kind)]
                for kind in ("v", "best")
            )
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
    return state, best
