"""`Verifier`: two images in, one verdict out; and many pairs of files in bounded memory."""

import math
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadData
from facepairs.verification.bundle import Bundle
from facepairs.verification.image import Crop, Source, load_crop
from facepairs.verification.scorer import BATCH_CROPS, Scorer, Scores, pair_scores

if TYPE_CHECKING:
    from concurrent.futures import Executor

CHUNK_PAIRS = 2048
CACHE_BYTES = 256 * 2**20  # decoded crops kept between chunks of pairs
Indices = npt.NDArray[np.integer[Any]]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Verdict:
    """What `Verifier.verify` found; true in an `if` when the two are held to be one person.

    `probability` is the calibrated P(same person) at equal priors, `same` is score >= threshold.
    """

    same: bool
    probability: float
    score: float
    threshold: float

    def __bool__(self) -> bool:
        """Give `same`, as a verdict that is always true in an `if` would be a trap."""
        return self.same


class Verifier:
    """A bundle ready to compare faces; thread-safe.

    Example: `Verifier.load().verify("a.jpg", "b.jpg").probability`.
    """

    def __init__(self, bundle: Bundle, threads: int | None = None) -> None:
        self.bundle = bundle
        self.scorer = Scorer(bundle, threads)

    @classmethod
    def load(cls, path: Path | str | None = None, threads: int | None = None) -> "Verifier":
        """Open a bundle; `threads` are those of the network, by default one a core.

        Without a path, or with the word `default`, it is the one that comes with the package.
        Raises BadBundle for a bundle that is missing, damaged, or of another schema.
        """
        # The network is checked against its sum when the scorer reads it.
        return cls(Bundle.open(path, verify_files=False), threads)

    def crop(self, source: Source, name: str | None = None) -> Crop:
        """Read an image as the network sees it: uint8[crop_px, crop_px, 3]; see `load_crop`."""
        return load_crop(source, self.bundle.framing, name)

    def verify(self, a: Source, b: Source, threshold: float | None = None) -> Verdict:
        """Compare two images; `threshold` on the score stands in for the bundle's.

        The order of the two does not matter. Raises BadImage for an image that cannot be read,
        BadData for a threshold that is not a number.
        """
        if threshold is None:
            threshold = self.bundle.threshold
        if math.isnan(threshold):
            raise BadData("the threshold is not a number; give a score")
        left, right = (
            self.crop(source, None if isinstance(source, str | os.PathLike) else name)[None]
            for source, name in ((a, "first image"), (b, "second image"))
        )
        score = float(self.scorer.score_pairs(left, right)[0])
        probability = self.bundle.calibration.probability(score)
        return Verdict(score >= threshold, probability, score, float(threshold))

    def score_images(
        self,
        paths: Sequence[Path],
        left: Indices,
        right: Indices,
        progress: Progress | None = None,
        workers: int | None = None,
    ) -> Scores:
        """Score pairs of image files: float32[N] in the order of the pairs.

        `left` and `right` are integer[N] positions in `paths`. Images are decoded in `workers`
        threads (by default one a core) in bounded memory; an embedding network sees each image
        once. `progress(done, total)` counts pairs, or images for an embedding network.

        Raises BadImage by name for an image that cannot be read, BadData for bad positions.
        """
        from concurrent.futures import ThreadPoolExecutor  # 15 ms that one `verify` can do without

        left, right = _positions(left, len(paths)), _positions(right, len(paths))
        if len(left) != len(right):
            raise BadData(f"{len(left)} left images and {len(right)} right ones make no pairs")
        pool = ThreadPoolExecutor(workers or os.cpu_count() or 1)
        try:
            crops = _Crops(pool, lambda image: self.crop(paths[image]), self._capacity())
            if self.bundle.kind == "embedding":
                return self._score_embeddings(crops, left, right, progress)
            return self._score_crops(crops, left, right, progress)
        finally:
            pool.shutdown(cancel_futures=True)

    def _capacity(self) -> int:
        """Give how many crops to keep: some pairs' worth, or one batch that is embedded once."""
        fit = max(2, CACHE_BYTES // (3 * self.bundle.framing.crop_px**2))
        return min(fit, BATCH_CROPS) if self.bundle.kind == "embedding" else fit

    def _score_embeddings(
        self, crops: "_Crops", left: Indices, right: Indices, progress: Progress | None
    ) -> Scores:
        images, where = np.unique(np.concatenate([left, right]), return_inverse=True)
        batches = []
        for part in _slices(len(images), crops.capacity):
            batches.append(self.scorer.embed(crops.take(images[part])))
            if progress:
                progress(part.stop, len(images))
        rows = np.concatenate(batches) if batches else np.zeros((0, 0), np.float32)
        scores = np.empty(len(left), np.float32)
        lefts, rights = where[: len(left)], where[len(left) :]
        for part in _slices(len(left), CHUNK_PAIRS):
            scores[part] = pair_scores(rows[lefts[part]], rows[rights[part]])
        return scores

    def _score_crops(
        self, crops: "_Crops", left: Indices, right: Indices, progress: Progress | None
    ) -> Scores:
        scores = np.empty(len(left), np.float32)
        order = np.lexsort((right, left))  # neighbours share images
        chunk = min(CHUNK_PAIRS, crops.capacity // 2)  # all crops of a chunk fit into the cache
        done = 0
        for part in _slices(len(left), chunk):
            pairs = order[part]
            crops.load(np.unique(np.concatenate([left[pairs], right[pairs]])))
            for batch in _slices(len(pairs), BATCH_CROPS):
                some = pairs[batch]
                scores[some] = self.scorer.score_pairs(
                    crops.take(left[some]), crops.take(right[some])
                )
                done += len(some)
                if progress:
                    progress(done, len(left))
        return scores


class _Crops:
    """Decoded crops by image number, the least recently used leave first; for one thread."""

    def __init__(self, pool: "Executor", decode: Callable[[int], Crop], capacity: int) -> None:
        self.capacity = capacity
        self._pool = pool
        self._decode = decode
        self._kept: OrderedDict[int, Crop] = OrderedDict()

    def load(self, images: Indices) -> None:
        """Decode those of some images that are not at hand, at most `capacity` of them."""
        wanted: list[int] = images.tolist()
        for image in wanted:
            if image in self._kept:
                self._kept.move_to_end(image)
        missing = [image for image in wanted if image not in self._kept]
        for image, crop in zip(missing, self._pool.map(self._decode, missing), strict=True):
            self._kept[image] = crop
            if len(self._kept) > self.capacity:
                self._kept.popitem(last=False)

    def take(self, images: Indices) -> Crop:
        """Gather the crops of some images: uint8[images, crop_px, crop_px, 3]."""
        self.load(images)
        return np.stack([self._kept[image] for image in images.tolist()])


def _slices(length: int, step: int) -> Iterator[slice]:
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def _positions(values: Indices, images: int) -> Indices:
    """Check positions; a negative one would silently mean an image counted from the end."""
    values = np.asarray(values)
    if values.ndim != 1 or not (values.size == 0 or np.issubdtype(values.dtype, np.integer)):
        raise BadData(f"pairs are {values.dtype} {list(values.shape)}, not whole numbers [N]")
    if values.size and not 0 <= values.min() <= values.max() < images:
        raise BadData(f"pairs name images {values.min()} to {values.max()}; there are {images}")
    return values
