"""ScoreArray of many pairs of image files, each image read once, in bounded memory.

Work is done in threads here, or wherever a `parallel.Run` does it: then an item of work carries the
names that it needs, and its result the numbers.
An image that cannot be used fails the pairs it is in; its error is kept beside its name.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from facepairs.beam.places import Place
from facepairs.errors import BadImage
from facepairs.images.photo import Crop
from facepairs.support.parallel import Run, batches, in_order
from facepairs.verification.image_table import ImageTable
from facepairs.verification.partial_results import Partial
from facepairs.verification.scorer import BATCH_CROPS, ScoreArray
from facepairs.verification.verifier import CACHE_BYTES, Verifier

SAVE_EVERY = 512  # images; what a kill may cost
LOOKED_AT_ONCE = 65_536  # images
Numbers = npt.NDArray[np.integer[Any]]
Progress = Callable[[int, int], None]


class Readable(NamedTuple):
    """The crops of those images that can be used, their numbers, and the others' errors."""

    crops: Crop
    images: list[int]
    errors: dict[int, str]


@dataclass(frozen=True)
class Photos:
    """Image files by number, as a verifier's network sees them.

    `names` are paths below `root`. With `framing` the largest face of each photo is found and
    framed first, as in `Verifier.verify`.
    """

    verifier: Verifier
    root: Place
    names: Sequence[str]
    framing: bool = True

    def __len__(self) -> int:
        return len(self.names)

    def read(self, images: Iterable[int]) -> Readable:
        """Read crops, uint8[readable, crop_px, crop_px, 3]; what fails is told, not raised."""
        side = self.verifier.bundle.framing.crop_px
        crops: list[Crop] = []
        readable: list[int] = []
        errors: dict[int, str] = {}
        for image in images:
            try:
                crops.append(self._crop(self.root / self.names[image]))
                readable.append(image)
            except BadImage as error:
                errors[image] = str(error)
        stacked = np.stack(crops) if crops else np.zeros((0, side, side, 3), np.uint8)
        return Readable(stacked, readable, errors)

    def _crop(self, path: Place) -> Crop:
        if isinstance(path, Path):
            return self.verifier.crop(path, framing=self.framing)
        try:
            photo = path.read_bytes()
        except OSError as error:
            raise BadImage(f"{path}: {error.strerror}; give a readable image file") from None
        return self.verifier.crop(photo, str(path), self.framing)


class Chunk(NamedTuple):
    """Rows of a pairs file that follow one another, by the numbers of their images (-1: none)."""

    start: int
    left: Numbers
    right: Numbers


class PairScorer(Protocol):
    """ScoreArray rows of a pairs file, one chunk after the other."""

    def prepare(self, chunks: Iterable[Chunk], progress: Progress) -> None:
        """Do what comes before the first chunk; `progress` counts images, or rows."""

    def score(self, start: int, left: Numbers, right: Numbers) -> ScoreArray:
        """Score the rows from `start` on: float32[rows], NaN where an image failed or is -1."""


class Found(NamedTuple):
    """What came of some images or rows: values float32[done, D] of those done, others' errors."""

    done: list[int]
    values: ScoreArray
    errors: dict[int, str]


Named = list[tuple[int, str]]  # images by number and name


@dataclass(frozen=True)
class Embed:
    """Embeds some images: what `ByEmbedding` does at a time, wherever that is."""

    verifier: Verifier
    root: Place
    framing: bool

    def __call__(self, images: Named) -> Found:
        """Read and embed images, given by number and name; one network call sees them all."""
        numbers, names = zip(*images, strict=True)
        found = Photos(self.verifier, self.root, names, self.framing).read(range(len(names)))
        return Found(
            [numbers[at] for at in found.images],
            self.verifier.scorer.embed(found.crops),
            {numbers[at]: error for at, error in found.errors.items()},
        )


class ByEmbedding:
    """Embeds each image once; rows of `partial` are images."""

    def __init__(self, photos: Photos, images: ImageTable, partial: Partial, run: Run) -> None:
        self._work = Embed(photos.verifier, photos.root, photos.framing)
        self._images = images
        self._scorer = photos.verifier.scorer
        self._partial = partial
        self._run = run

    def prepare(self, chunks: Iterable[Chunk], progress: Progress) -> None:
        partial = self._partial
        seen = saved = int(partial.done.sum())
        todo = ((image, self._images[image]) for image in _undone(partial.done))
        for found in self._run(self._work, batches(todo, BATCH_CROPS)):
            partial.put(np.array(found.done, np.int64), found.values)
            self._images.fail(found.errors)
            seen += len(found.done) + len(found.errors)
            if seen - saved >= SAVE_EVERY:
                partial.save()
                saved = seen
            progress(seen, len(partial.done))
        partial.save()

    def score(self, start: int, left: Numbers, right: Numbers) -> ScoreArray:
        scores = np.full(len(left), np.nan, np.float32)
        both = np.flatnonzero((left >= 0) & (right >= 0))
        both = both[self._partial.done[left[both]] & self._partial.done[right[both]]]
        if len(both):
            rows = self._partial.get(np.concatenate([left[both], right[both]]))
            scores[both] = self._scorer.compare(rows[: len(both)], rows[len(both) :])
        return scores


def _undone(done: npt.NDArray[np.bool_]) -> Iterator[int]:
    """Yield the numbers of what is not done yet."""
    for start in range(0, len(done), LOOKED_AT_ONCE):
        part = done[start : start + LOOKED_AT_ONCE]
        yield from (start + np.flatnonzero(~part)).tolist()


@dataclass(frozen=True)
class ScoreRows:
    """ScoreArray a chunk of rows: what `ByPair` does at a time, elsewhere than in threads here."""

    verifier: Verifier
    root: Place
    framing: bool

    def __call__(self, item: tuple[Chunk, Named]) -> Found:
        """Score rows whose images are given by number and name; `errors` are those of images."""
        chunk, images = item
        numbers, names = zip(*images, strict=True)
        read = Photos(self.verifier, self.root, names, self.framing).read(range(len(names)))
        crops = {numbers[at]: crop for at, crop in zip(read.images, read.crops, strict=True)}
        done = [
            at
            for at, sides in enumerate(zip(chunk.left, chunk.right, strict=True))
            if sides[0] in crops and sides[1] in crops
        ]
        scores = [np.zeros(0, np.float32)]
        for some in batches(done, BATCH_CROPS // 2):
            left, right = (
                np.stack([crops[i] for i in side[some].tolist()])
                for side in (chunk.left, chunk.right)
            )
            scores.append(self.verifier.scorer.score_pairs(left, right))
        errors = {numbers[at]: error for at, error in read.errors.items()}
        return Found([chunk.start + at for at in done], np.concatenate(scores)[:, None], errors)


class ByPair:
    """Runs the network on every pair; rows of `partial` are pairs.

    Crops are kept up to CACHE_BYTES, those used least recently leave first, so that an image is
    read once unless more than that lie between two of its pairs. Elsewhere than in threads here, a
    chunk's images are read with it, and all chunks are scored beforehand.
    """

    def __init__(self, photos: Photos, images: ImageTable, partial: Partial, run: Run) -> None:
        self._run = run
        self._photos = photos
        self._images = images
        self._scorer = photos.verifier.scorer
        self._partial = partial
        self._kept: OrderedDict[int, Crop] = OrderedDict()
        side = photos.verifier.bundle.framing.crop_px
        self._fitting = CACHE_BYTES // (3 * side * side)

    def prepare(self, chunks: Iterable[Chunk], progress: Progress) -> None:
        if self._run is in_order:
            return  # images are read with their pairs
        work = ScoreRows(self._photos.verifier, self._photos.root, self._photos.framing)
        items = ((chunk, self._named(chunk)) for chunk in chunks)
        done = 0
        for found in self._run(work, (item for item in items if item[1])):
            self._partial.put(np.array(found.done, np.int64), found.values)
            self._images.fail(found.errors)
            done += len(found.done)
            progress(done, len(self._partial.done))
        self._partial.save()

    def _named(self, chunk: Chunk) -> Named:
        """Give the images of a chunk, unless all its rows are done."""
        if self._partial.done[chunk.start : chunk.start + len(chunk.left)].all():
            return []
        wanted = np.unique(np.concatenate([chunk.left, chunk.right]))
        return [(image, self._images[image]) for image in wanted.tolist() if image >= 0]

    def score(self, start: int, left: Numbers, right: Numbers) -> ScoreArray:
        if self._run is in_order:
            self._score(start, left, right)
        done = self._partial.done[start : start + len(left)]
        scores = np.full(len(left), np.nan, np.float32)
        found = np.flatnonzero(done)
        if len(found):
            scores[found] = self._partial.get(start + found)[:, 0]
        return scores

    def _score(self, start: int, left: Numbers, right: Numbers) -> None:
        """Score those rows that are not done yet."""
        done = self._partial.done[start : start + len(left)]
        self._load(np.unique(np.concatenate([left[~done], right[~done]])))
        todo = [
            at
            for at in np.flatnonzero(~done).tolist()
            if left[at] in self._kept and right[at] in self._kept
        ]

        def run(some: list[int]) -> tuple[list[int], ScoreArray]:
            sides = (
                np.stack([self._kept[i] for i in side[some].tolist()]) for side in (left, right)
            )
            return some, self._scorer.score_pairs(*sides)

        for some, values in in_order(run, batches(todo, BATCH_CROPS // 2)):
            self._partial.put(start + np.array(some), values[:, None])
        self._partial.save()

    def _load(self, images: Numbers) -> None:
        """Have the crops of a chunk's images at hand, as far as they can be read."""
        wanted: list[int] = images.tolist()
        for image in wanted:
            if image in self._kept:
                self._kept.move_to_end(image)
        new = (image for image in wanted if image >= 0 and image not in self._kept)
        missing = [image for image in new if not self._images.error(image)]
        limit = max(len(wanted), self._fitting)
        for found in in_order(self._photos.read, batches(missing, BATCH_CROPS)):
            self._images.fail(found.errors)
            for image, crop in zip(found.images, found.crops, strict=True):
                self._kept[image] = crop.copy()  # not a view, which would keep the batch alive
                if len(self._kept) > limit:
                    self._kept.popitem(last=False)
