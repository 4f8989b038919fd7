"""The embeddings of a gallery in memory, compared with one face at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.bundles.scorer import ScoreArray

STORED = "<f2"  # in the file; rounding to it changes a cosine by less than .001


class Vectors:
    """Embeddings float32[N, width] and their people; a million of width 128 take 512 MB.

    Args:
        width: Numbers in an embedding.
        capacity: Number of embeddings to allocate memory for; more can be added.
        until: When the first embedding expires, in seconds since 1970; None for never.

    Attributes:
        until: As above, infinity for never.
    """

    def __init__(self, width: int, capacity: int, until: int | None = None) -> None:
        self._matrix = np.empty((capacity, width), np.float32)
        self._person_of = np.empty(capacity, np.int32)
        self._numbers: dict[str, int] = {}
        self._count = 0
        self.until: float = np.inf if until is None else until

    def __len__(self) -> int:
        return self._count

    @property
    def people(self) -> list[str]:
        """The names of the people, in the order of `best`."""
        return list(self._numbers)

    def rows(self) -> tuple[ScoreArray, list[str]]:
        """Return all embeddings, float32[N, width], and the name of each one's person."""
        count, people = self._count, self.people
        return self._matrix[:count], [people[number] for number in self._person_of[:count]]

    def photos_of(self, number: int) -> int:
        """Return the number of photos of a person."""
        return int(np.count_nonzero(self._person_of[: self._count] == number))

    def append(self, people: Sequence[str], values: npt.NDArray[Any]) -> None:
        """Add embeddings.

        Args:
            people: N names.
            values: float[N, width].
        """
        end = self._count + len(people)
        if end > len(self._matrix):
            more = np.empty_like(self._matrix, shape=(end, self._matrix.shape[1]))
            self._matrix = np.concatenate([self._matrix, more])  # at least twice as many
            self._person_of = np.concatenate([self._person_of, np.empty(end, np.int32)])
        self._matrix[self._count : end] = values
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in people]
        self._person_of[self._count : end] = numbers
        self._count = end

    def best(self, probe: ScoreArray) -> ScoreArray:
        """Return each person's score, that of the photo most similar to the probe.

        Args:
            probe: float32[width], of length 1.

        Returns:
            float32[people].
        """
        count = self._count  # first: another thread may be adding embeddings
        matrix = self._matrix[:count]
        # By one thread in .4 ms; BLAS needs longer to wake its threads.
        similar = np.einsum("ij,j->i", matrix, probe)
        scores = np.full(len(self._numbers), -np.inf, np.float32)
        np.maximum.at(scores, self._person_of[:count], similar)
        return np.minimum(scores, 1)  # cosines of rounded embeddings
