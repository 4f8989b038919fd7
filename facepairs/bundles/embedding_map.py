"""Arrays that follow a network in its bundle: the map of embeddings, and the cohort of grouping.

`map.npy` is fitted by `facepairs calibrate` to one's own photos. A network trained on photos of
another kind spreads one person's embeddings widely in directions that do not tell people apart
here. The map shrinks these directions.

`cohort.npy` says where faces crowd: strangers who resemble many others are more alike, which
grouping takes into account (`verification.linkage`).
"""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadBundle

MAP = "map.npy"
COHORT = "cohort.npy"
MAX_DIMENSIONS = 4096
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class EmbeddingMap:
    """Embeddings less their mean, times a matrix, scaled to length 1.

    Attributes:
        mean: float32[D].
        matrix: float32[D, D].
    """

    mean: Floats
    matrix: Floats

    def __call__(self, embeddings: Floats) -> Floats:
        """Map float32[N, D] to float32[N, D], rows of length 1."""
        rows = (embeddings - self.mean) @ self.matrix
        lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        mapped: Floats = (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
        return mapped

    def to_bytes(self) -> bytes:
        """Return the content of `map.npy`: float32[D + 1, D], the mean and then the matrix."""
        return npy_bytes(np.vstack([self.mean, self.matrix]))


def npy_bytes(rows: Floats) -> bytes:
    """Return the content of an .npy file of float32."""
    content = io.BytesIO()
    np.save(content, rows.astype("<f4"), allow_pickle=False)
    return content.getvalue()


def parse_map(content: bytes, path: Path) -> EmbeddingMap:
    """Read the content of `map.npy`; nothing in it is executed.

    Raises:
        BadBundle: It is damaged.
    """
    rows = parse_rows(content, path)
    if rows.shape[0] != rows.shape[1] + 1:
        raise BadBundle(f"{path}: not a map of embeddings ({list(rows.shape)}); calibrate again")
    return EmbeddingMap(rows[0], rows[1:])


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
        raise BadBundle(f"{path}: damaged ({error}); copy or calibrate the bundle again") from None
    return rows
