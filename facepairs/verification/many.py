"""Scores of many pairs of image files, each image read once, in threads and in bounded memory.

An image that cannot be used fails the pairs it is in, and its error is kept by its number.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadImage
from facepairs.verification.image import Crop
from facepairs.verification.parallel import batches, in_order
from facepairs.verification.partial import Partial
from facepairs.verification.scorer import BATCH_CROPS, Scores
from facepairs.verification.verifier import CACHE_BYTES, Verifier

SAVE_EVERY = 512  # images; what a kill may cost
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
    root: Path
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
                crops.append(
                    self.verifier.crop(self.root / self.names[image], framing=self.framing)
                )
                readable.append(image)
            except BadImage as error:
                errors[image] = str(error)
        stacked = np.stack(crops) if crops else np.zeros((0, side, side, 3), np.uint8)
        return Readable(stacked, readable, errors)


class PairScorer(Protocol):
    """Scores rows of a pairs file, one chunk after the other."""

    errors: dict[int, str]

    def prepare(self, progress: Progress) -> None:
        """Do what comes before the first chunk; `progress` counts images."""

    def score(self, start: int, left: Numbers, right: Numbers) -> Scores:
        """Score the rows from `start` on: float32[rows], NaN where an image failed or is -1."""


class ByEmbedding:
    """Embeds each image once; rows of `partial` are images."""

    def __init__(self, photos: Photos, partial: Partial) -> None:
        self.errors: dict[int, str] = {}
        self._photos = photos
        self._scorer = photos.verifier.scorer
        self._partial = partial

    def prepare(self, progress: Progress) -> None:
        partial = self._partial
        todo = np.flatnonzero(~partial.done).tolist()
        seen = saved = len(partial.done) - len(todo)
        for found, rows in in_order(self._embed, batches(todo, BATCH_CROPS)):
            partial.put(np.array(found.images, np.int64), rows)
            self.errors |= found.errors
            seen += len(found.images) + len(found.errors)
            if seen - saved >= SAVE_EVERY:
                partial.save()
                saved = seen
            progress(seen, len(partial.done))
        partial.save()

    def _embed(self, images: list[int]) -> tuple[Readable, Scores]:
        found = self._photos.read(images)
        return found, self._scorer.embed(found.crops)

    def score(self, start: int, left: Numbers, right: Numbers) -> Scores:
        scores = np.full(len(left), np.nan, np.float32)
        done = np.append(self._partial.done, False)  # -1, no image, finds the last
        both = np.flatnonzero(done[left] & done[right])
        if len(both):
            rows = self._partial.get(np.concatenate([left[both], right[both]]))
            scores[both] = self._scorer.compare(rows[: len(both)], rows[len(both) :])
        return scores


class ByPair:
    """Runs the network on every pair; rows of `partial` are pairs.

    Crops are kept up to CACHE_BYTES, those used least recently leave first, so that an image is
    read once unless more than that lie between two of its pairs.
    """

    def __init__(self, photos: Photos, partial: Partial) -> None:
        self.errors: dict[int, str] = {}
        self._photos = photos
        self._scorer = photos.verifier.scorer
        self._partial = partial
        self._kept: OrderedDict[int, Crop] = OrderedDict()
        side = photos.verifier.bundle.framing.crop_px
        self._fitting = CACHE_BYTES // (3 * side * side)

    def prepare(self, progress: Progress) -> None:
        """Need nothing: images are read with their pairs."""

    def score(self, start: int, left: Numbers, right: Numbers) -> Scores:
        done = self._partial.done[start : start + len(left)]
        self._load(np.unique(np.concatenate([left[~done], right[~done]])))
        todo = [
            at
            for at in np.flatnonzero(~done).tolist()
            if left[at] in self._kept and right[at] in self._kept
        ]

        def run(some: list[int]) -> tuple[list[int], Scores]:
            sides = (
                np.stack([self._kept[i] for i in side[some].tolist()]) for side in (left, right)
            )
            return some, self._scorer.score_pairs(*sides)

        for some, values in in_order(run, batches(todo, BATCH_CROPS // 2)):
            self._partial.put(start + np.array(some), values[:, None])
        self._partial.save()
        scores = np.full(len(left), np.nan, np.float32)
        found = np.flatnonzero(done)  # a view: it knows what was put above
        if len(found):
            scores[found] = self._partial.get(start + found)[:, 0]
        return scores

    def _load(self, images: Numbers) -> None:
        """Have the crops of a chunk's images at hand, as far as they can be read."""
        wanted: list[int] = images.tolist()
        for image in wanted:
            if image in self._kept:
                self._kept.move_to_end(image)
        missing = [i for i in wanted if i >= 0 and i not in self._kept and i not in self.errors]
        limit = max(len(wanted), self._fitting)
        for found in in_order(self._photos.read, batches(missing, BATCH_CROPS)):
            self.errors |= found.errors
            for image, crop in zip(found.images, found.crops, strict=True):
                self._kept[image] = crop.copy()  # not a view, which would keep the batch alive
                if len(self._kept) > limit:
                    self._kept.popitem(last=False)
