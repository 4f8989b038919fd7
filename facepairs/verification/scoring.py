"""Scores of many pairs of photos, each of which is read once.

An embedding network embeds every photo once, and the scores follow from the embeddings. A pair
network runs once per pair. Both are one pass: somebody, threads here or other machines, does
`PairScoring.work` on each of its `items()`, and `collect` takes the results. Work, items and
results can be pickled. A photo that cannot be used fails the pairs it is in.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadData
from facepairs.support import console
from facepairs.support.parallel import batches
from facepairs.verification.photos import Named, PhotoReader, SeenPhoto
from facepairs.verification.scorer import BATCH_CROPS, ScoreArray

CROP_BYTES = 256 * 2**20  # crops that are kept for further pairs
CHUNK_PAIRS = 4096  # compared at a time

Indices = npt.NDArray[np.integer[Any]]


class Batch(NamedTuple):
    """One work item: photos by number; for a pair network also pairs: row, left and right photo."""

    photos: dict[int, Named]
    pairs: list[tuple[int, int, int]]


class Done(NamedTuple):
    """The result of one work item: photos by number, without crops, and rows with their scores."""

    photos: dict[int, SeenPhoto]
    rows: list[int]
    scores: ScoreArray


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
        usable = [
            (row, photos[left], photos[right])
            for row, left, right in batch.pairs
            if not (photos[left].error or photos[right].error)
        ]
        scores = np.zeros(0, np.float32)
        if usable:
            scores = self._reader.score([one[1] for one in usable], [one[2] for one in usable])
        without_crops = {number: one._replace(crop=None) for number, one in photos.items()}
        return Done(without_crops, [one[0] for one in usable], scores)


class PairScoring:
    """Scores pairs: do `work` on each of `items()`, in any place, and `collect` the results.

    Args:
        reader: Reads the photos; knows the network.
        photos: Name and source of each photo.
        left: integer[N], numbers of photos.
        right: integer[N], the same.

    Attributes:
        work: What is to be done with each of `items()`.
    """

    def __init__(
        self, reader: PhotoReader, photos: Sequence[Named], left: Indices, right: Indices
    ) -> None:
        self.reader = reader
        self.photos = photos
        self.left, self.right = left, right
        self.work = ScoreBatch(reader)
        self._images: list[int] = np.unique(np.concatenate([left, right])).tolist()

    def items(self) -> Iterator[Batch]:
        """Yield the work."""
        if self.reader.embeds:
            for part in batches(self._images, BATCH_CROPS):
                yield Batch({number: self.photos[number] for number in part}, [])
            return
        by_photo = np.lexsort((self.right, self.left))  # crops are used again while they are kept
        for rows in batches(by_photo.tolist(), max(1, BATCH_CROPS // 2)):
            left, right = self.left[rows].tolist(), self.right[rows].tolist()
            numbers = dict.fromkeys([*left, *right])
            photos = {number: self.photos[number] for number in numbers}
            yield Batch(photos, list(zip(rows, left, right, strict=True)))

    def collect(
        self, work_done: Iterable[Done], strict: bool = False
    ) -> tuple[ScoreArray, dict[int, SeenPhoto]]:
        """Return the scores, once the work is done, and what was found in the photos.

        Args:
            work_done: Does the work while it is iterated.
            strict: Raise what is wrong with the first photo that cannot be used.

        Returns:
            float32[N], NaN where a photo cannot be used; and the photos by their number.

        Raises:
            BadImage: A photo cannot be used, and `strict` is true.
        """
        scores = np.full(len(self.left), np.nan, np.float32)
        photos: dict[int, SeenPhoto] = {}
        progress = console.progress("reading photos")
        for batch in work_done:
            for seen in batch.photos.values():
                if strict and seen.error:
                    raise seen.error
            photos |= batch.photos
            scores[batch.rows] = batch.scores
            progress(len(photos), len(self._images))
        if self.reader.embeds:
            self._compare(photos, scores)
        return scores, photos

    def _compare(self, photos: dict[int, SeenPhoto], scores: ScoreArray) -> None:
        """Fill in the scores by the embeddings of the photos."""
        scorer = self.reader.scorer
        rows = np.full((len(self.photos), scorer.width), np.nan, np.float32)
        for number, seen in photos.items():
            if seen.embedding is not None:
                rows[number] = seen.embedding
        for start in range(0, len(scores), CHUNK_PAIRS):
            part = slice(start, start + CHUNK_PAIRS)
            scores[part] = scorer.compare(rows[self.left[part]], rows[self.right[part]])


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
