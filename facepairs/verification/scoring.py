"""Scores of many pairs of photos, each of which is read once.

An embedding network embeds every photo once, and the scores follow from the embeddings. A pair
network runs once per pair. Both are one pass: somebody, threads here or other machines, does
`PairScoring.work` on each of its `items()`, and `collect` takes the results. Work, items and
results can be pickled. A photo that cannot be used fails the pairs it is in.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadData
from facepairs.support import console
from facepairs.support.parallel import batches
from facepairs.verification.loading import describe_scoring
from facepairs.verification.photos import Named, PhotoReader, SeenPhoto
from facepairs.verification.scorer import BATCH_CROPS, ScoreArray

CROP_BYTES = 256 * 2**20  # crops that are kept for further pairs
CHUNK_PAIRS = 4096  # compared at a time

Indices = npt.NDArray[np.integer[Any]]


class Batch(NamedTuple):
    """One work item: photos by number; for a pair network the rows that show no others."""

    photos: dict[int, Named]
    rows: list[int]
    left: list[int]
    right: list[int]


class Done(NamedTuple):
    """The result of one work item: photos by number, without crops, and rows with their scores."""

    photos: dict[int, SeenPhoto]
    rows: list[int]
    scores: ScoreArray


class PairScores(NamedTuple):
    """The scores of pairs: float32[N], NaN where a photo cannot be used; and the photos."""

    scores: ScoreArray
    photos: dict[int, SeenPhoto]


class ScoreBatch:
    """Does the work of a batch in one call of the network; threads share its cache of crops."""

    def __init__(self, reader: PhotoReader) -> None:
        self._reader = reader
        crop_bytes = 3 * reader.model.framing.crop_px**2
        self._read = lru_cache(max(2, CROP_BYTES // crop_bytes))(self._read_one)

    def __reduce__(self) -> Any:
        """Pickle it without its cache."""
        return ScoreBatch, (self._reader,)

    def _read_one(self, photo: Named) -> SeenPhoto:
        (seen,) = self._reader.read([photo])
        return seen

    def __call__(self, batch: Batch) -> Done:
        """Return the photos; of a pair network also scores, where both photos can be used."""
        named = list(batch.photos.values())
        seen = self._reader.read(named) if self._reader.embeds else list(map(self._read, named))
        photos = dict(zip(batch.photos, seen, strict=True))
        pairs = zip(batch.rows, batch.left, batch.right, strict=True)
        usable = [one for one in pairs if not (photos[one[1]].error or photos[one[2]].error)]
        rows, scores = [row for row, _, _ in usable], np.zeros(0, np.float32)
        if usable:
            sides = ([photos[pair[side]] for pair in usable] for side in (1, 2))
            scores = self._reader.score(*sides)
        return Done({n: one._replace(crop=None) for n, one in photos.items()}, rows, scores)


@dataclass
class PairScoring:
    """Scores pairs: do `work` on each of `items()`, in any place, and `collect` the results.

    Attributes:
        reader: Reads the photos; knows the network.
        photos: Name and source of each photo.
        left: integer[N], numbers of photos; -1 in rows without a pair.
        right: integer[N], the same.
        work: What is to be done with each of `items()`.
    """

    reader: PhotoReader
    photos: Sequence[Named]
    left: Indices
    right: Indices

    def __post_init__(self) -> None:
        self.work = ScoreBatch(self.reader)
        self._whole = np.flatnonzero((self.left >= 0) & (self.right >= 0))
        sides = np.concatenate([self.left[self._whole], self.right[self._whole]])
        self._images: list[int] = np.unique(sides).tolist()

    def items(self) -> Iterator[Batch]:
        """Yield the work."""
        if self.reader.embeds:
            for part in batches(self._images, BATCH_CROPS):
                yield Batch({number: self.photos[number] for number in part}, [], [], [])
            return
        left, right = self.left[self._whole], self.right[self._whole]
        by_photo = self._whole[
            np.lexsort((right, left))
        ]  # crops are used again while they are kept
        for rows in batches(by_photo.tolist(), max(1, BATCH_CROPS // 2)):
            sides = self.left[rows].tolist(), self.right[rows].tolist()
            numbers = dict.fromkeys([*sides[0], *sides[1]])
            yield Batch({number: self.photos[number] for number in numbers}, rows, *sides)

    def collect(self, work_done: Iterable[Done], strict: bool = False) -> PairScores:
        """Return the scores, once the work is done.

        Args:
            work_done: Does the work while it is iterated.
            strict: Raise what is wrong with the first photo that cannot be used.

        Raises:
            BadImage: A photo cannot be used, and `strict` is true.
        """
        scores = np.full(len(self.left), np.nan, np.float32)
        photos: dict[int, SeenPhoto] = {}
        total = len(self._images if self.reader.embeds else self._whole)
        done, progress = 0, console.progress(describe_scoring(self.reader.model))
        for batch in work_done:
            for seen in batch.photos.values():
                if strict and seen.error:
                    raise seen.error
            photos |= batch.photos
            scores[batch.rows] = batch.scores
            done += len(batch.photos) if self.reader.embeds else len(batch.rows)
            progress(min(done, total), total)
        progress(total, total)
        if self.reader.embeds:
            self._compare(photos, scores)
        return PairScores(scores, photos)

    def _compare(self, photos: dict[int, SeenPhoto], scores: ScoreArray) -> None:
        """Fill in the scores of all pairs whose two photos are embedded."""
        embedded = {n: seen.embedding for n, seen in photos.items() if seen.embedding is not None}
        if not embedded:
            return
        place = np.full(len(self.photos), -1)
        place[list(embedded)] = np.arange(len(embedded))
        rows = np.stack(list(embedded.values()))
        left, right = place[self.left[self._whole]], place[self.right[self._whole]]
        both = np.flatnonzero((left >= 0) & (right >= 0))
        for start in range(0, len(both), CHUNK_PAIRS):
            part = both[start : start + CHUNK_PAIRS]
            values = self.reader.scorer.compare(rows[left[part]], rows[right[part]])
            scores[self._whole[part]] = values


def check_positions(values: Indices, images: int) -> Indices:
    """Check positions in a list of images; NumPy would count a negative one from the end.

    Raises:
        BadData: They are no positions.
    """
    values = np.asarray(values)
    if values.ndim != 1 or not (values.size == 0 or np.issubdtype(values.dtype, np.integer)):
        raise BadData(f"pairs are {values.dtype} {list(values.shape)}, not whole numbers [N]")
    if values.size and not 0 <= values.min() <= values.max() < images:
        raise BadData(f"pairs name images {values.min()} to {values.max()}; there are {images}")
    return values
