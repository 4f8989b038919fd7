"""Embeddings of a gallery in memory, to be compared with one face at a time."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.support.parallel import thread_map
from facepairs.verification.scorer import ScoreArray

STORED = "<f2"  # in the file; rounding to it changes a cosine by less than .001
MOST_FAST_BYTES = 640 * 2**20  # of float32, which is compared fastest
BLOCK_ROWS = 512  # whose float32 fits into a processor's cache
PART_ROWS = 2**16  # of one thread at a time, a whole number of blocks

Compare = Callable[[ScoreArray, ScoreArray], ScoreArray]


class Vectors:
    """Embeddings [N, width] and whose they are.

    They are kept as float32, or where that would take more than `MOST_FAST_BYTES`, as bfloat16: the
    upper half of each float32, which is converted back faster than a float16, block by block.

    Args:
        width: Numbers in an embedding.
        capacity: For how many embeddings memory is taken; more can be added.
        until: Until when none of them expires, in seconds since 1970; None for ever.

    Attributes:
        until: The same as a number that can be compared.
    """

    def __init__(self, width: int, capacity: int, until: int | None = None) -> None:
        fast = 4 * width * capacity <= MOST_FAST_BYTES
        self._matrix: npt.NDArray[Any] = np.empty((capacity, width), "f4" if fast else "u2")
        self._person_of = np.empty(capacity, np.int32)
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._count = 0
        self.until: float = np.inf if until is None else until

    def __len__(self) -> int:
        return self._count

    @property
    def people(self) -> list[str]:
        """The names, by the number that `best` uses."""
        return self._names

    @property
    def photo_counts(self) -> npt.NDArray[np.intp]:
        """The number of photos of each person: int[people]."""
        return np.bincount(self._person_of[: self._count], minlength=len(self._numbers))

    def append(self, people: Sequence[str], values: npt.NDArray[Any]) -> None:
        """Add embeddings.

        Args:
            people: Whose they are: N names.
            values: float[N, width].
        """
        end = self._count + len(people)
        if end > len(self._matrix):
            capacity = max(end, 2 * self._count)
            self._matrix = _grown(self._matrix, capacity)
            self._person_of = _grown(self._person_of, capacity)
        values = values.astype(np.float32)
        is_whole = self._matrix.dtype == np.float32
        self._matrix[self._count : end] = values if is_whole else _upper_halves(values)
        for name in people:
            if name not in self._numbers:
                self._numbers[name] = len(self._names)
                self._names.append(name)
        numbers = [self._numbers[name] for name in people]
        self._person_of[self._count : end] = numbers
        self._count = end

    def best(self, probe: ScoreArray, compare: Compare | None = None) -> ScoreArray:
        """Return each person's score: that of the photo which is most like the probe.

        Args:
            probe: float32[width].
            compare: Scores embeddings row by row; None for the dot product.

        Returns:
            float32[people].
        """
        count = self._count  # first: another thread may be adding embeddings
        similar = self._similar(probe, compare, count)
        scores = np.full(len(self._numbers), -np.inf, np.float32)
        np.maximum.at(scores, self._person_of[:count], similar)
        return scores if compare else np.minimum(scores, 1)  # a cosine of rounded embeddings

    def _similar(self, probe: ScoreArray, compare: Compare | None, count: int) -> ScoreArray:
        """Return the score of each of the first embeddings: float32[count]."""
        matrix = self._matrix[:count]
        if compare is None and matrix.dtype == np.float32:
            return matrix @ probe
        similar = np.empty(count, np.float32)

        def score_part(begin: int) -> None:
            for start in range(begin, min(begin + PART_ROWS, count), BLOCK_ROWS):
                block = _as_floats(matrix[start : start + BLOCK_ROWS])
                rows = slice(start, start + len(block))
                if compare is None:
                    similar[rows] = block @ probe
                else:
                    similar[rows] = compare(np.broadcast_to(probe, block.shape), block)

        if count <= PART_ROWS:
            score_part(0)
        else:
            list(thread_map(score_part, range(0, count, PART_ROWS)))
        return similar

    def best_other(
        self, name: str, probe: ScoreArray, compare: Compare | None = None
    ) -> tuple[str, float] | None:
        """Return who else is most like the probe, and the score; None if there is nobody else."""
        scores = self.best(probe, compare)
        own = self._numbers.get(name)
        if own is not None:
            scores[own] = -np.inf
        if len(scores) <= (own is not None):
            return None
        best = int(scores.argmax())
        return self._names[best], float(scores[best])

    def of_person(self, name: str) -> ScoreArray:
        """Return the embeddings of one person: float32[N, width]."""
        rows = self._person_of[: self._count] == self._numbers.get(name, -1)
        return _as_floats(self._matrix[: self._count][rows])


def _upper_halves(values: ScoreArray) -> npt.NDArray[np.uint16]:
    return ((values.view(np.uint32) + 0x8000) >> 16).astype(np.uint16)


def _as_floats(block: npt.NDArray[Any]) -> ScoreArray:
    if block.dtype == np.uint16:
        block = np.left_shift(block, 16, dtype=np.uint32).view(np.float32)
    return block


def _grown(array: npt.NDArray[Any], capacity: int) -> npt.NDArray[Any]:
    grown = np.empty((capacity, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
