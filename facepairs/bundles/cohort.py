"""`cohort.npy`, a bundle's cohort for grouping: centres of many people's embeddings.

It says where faces crowd: strangers who resemble many others are more alike, which grouping takes
into account (`grouping.linkage`).
"""

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadBundle

COHORT = "cohort.npy"
MAX_DIMENSIONS = 4096
Floats = npt.NDArray[np.float32]


def npy_bytes(rows: Floats) -> bytes:
    """Return the content of an .npy file of float32."""
    content = io.BytesIO()
    np.save(content, rows.astype("<f4"), allow_pickle=False)
    return content.getvalue()


def parse_rows(content: bytes, path: Path) -> Floats:
    """Read the content of an .npy file of float32[N, D]; nothing in it is executed.

    Raises:
        BadBundle: It is damaged.
    """
    try:
        rows: Floats = np.load(io.BytesIO(content), allow_pickle=False)
        if rows.dtype != np.float32 or rows.ndim != 2 or not rows.size:
            raise ValueError(f"it holds {rows.dtype} {list(rows.shape)}")
        if rows.shape[1] > MAX_DIMENSIONS or not np.isfinite(rows).all():
            raise ValueError("its numbers cannot be used")
    except (ValueError, EOFError, OSError) as error:
        raise BadBundle(f"{path}: damaged ({error}); copy the bundle again") from None
    return rows
