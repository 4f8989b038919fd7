"""`Verifier`: two images in, one verdict out; and many pairs of files in bounded memory."""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from facepairs.bundles.thresholds import operating_point
from facepairs.errors import BadData
from facepairs.faces.framing import Portrait, as_it_came, portraits
from facepairs.images.photo import Crop, Source, load_crop, open_photo
from facepairs.support.atomic import scratch_folder
from facepairs.verification.loading import Model, open_model, open_scorer
from facepairs.verification.scorer import BATCH_CROPS, ScoreArray

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
    An embedder made elsewhere may lack a calibration, then `probability` is None, or a threshold,
    then `threshold` and `same` are. `left` and `right` tell how each photo was framed and what it
    suffers from, None for a score alone; they do not count when verdicts are compared.
    """

    same: bool | None
    probability: float | None
    score: float
    threshold: float | None
    left: Portrait | None = field(default=None, compare=False, repr=False)
    right: Portrait | None = field(default=None, compare=False, repr=False)

    def __bool__(self) -> bool:
        """Give `same`, as a verdict that is always true in an `if` would be a trap.

        Raises BadData where there is none.
        """
        if self.same is None:
            raise BadData("no threshold, so no verdict; give one, or look at the score")
        return self.same

    def faces_json(self) -> dict[str, Any]:
        """Give a plain dict of left and right, each as `Portrait.to_json` or None."""
        sides = {"left": self.left, "right": self.right}
        return {side: face.to_json() if face else None for side, face in sides.items()}


class Verifier:
    """A bundle ready to compare faces; thread-safe.

    Example: `Verifier.load().verify("a.jpg", "b.jpg").probability`.
    """

    def __init__(self, bundle: Model, threads: int | None = None, quick: bool = False) -> None:
        self.bundle = bundle
        self.scorer = open_scorer(bundle, threads, quick)
        self._options = (threads, quick)

    def __reduce__(self) -> Any:
        """Pickle it with all that its model needs, so that it can work on another machine."""
        from facepairs.verification.portable import model_files

        return _unpacked, (*model_files(self.bundle), *self._options)

    @classmethod
    def load(
        cls, path: Path | str | None = None, threads: int | None = None, quick: bool = False
    ) -> "Verifier":
        """Open a bundle, or the TOML of an embedder made elsewhere (see `foreign`).

        `threads` are those of the network, by default one a core; `quick` opens it sooner and
        runs it slower: for a pair or two.
        Without a path, or with the word `default`, it is the one that comes with the package.
        Raises BadBundle for a bundle that is missing, damaged, or of another schema.
        """
        # The network is checked against its sum when the scorer reads it.
        return cls(open_model(path, verify_files=False), threads, quick)

    def crop(self, source: Source, name: str | None = None, framing: bool = False) -> Crop:
        """Read an image as the network sees it: uint8[crop_px, crop_px, 3]; see `load_crop`.

        With `framing` the largest face is found and framed first, as `verify` does. Raises BadImage
        for what cannot be read; NoFace, a BadImage too, where no face is found.
        """
        if framing:
            return portraits(source, self.bundle.framing, name, hints=False)[0].crop
        return load_crop(source, self.bundle.framing, name)

    def portraits(
        self, source: Source, name: str | None = None, framing: bool = True, every: bool = False
    ) -> list[Portrait]:
        """Frame the largest face of an image, or `every` face: at least one, the largest first.

        Without `framing` the image itself is taken for one. Raises BadImage, NoFace.
        """
        if framing:
            return portraits(source, self.bundle.framing, name, every)
        return [as_it_came(open_photo(source, name), self.bundle.framing)]

    def verify(
        self,
        a: Source,
        b: Source,
        threshold: float | None = None,
        max_fmr: float | None = None,
        framing: bool = True,
    ) -> Verdict:
        """Compare the largest faces of two photos; `threshold` on the score replaces the bundle's.

        So does the bundle's threshold for a false match rate of `max_fmr`. The order of the two
        photos does not matter. Photos that are framed as LFW is pass through unchanged (see
        `verification.framing` for what counts as that), all do without `framing`.

        Raises BadImage for a photo that cannot be read, NoFace for one without a face, BadConfig
        for a threshold that is no finite number, a rate that the bundle cannot promise, or both at
        once.
        """
        return self.verify_every(a, b, threshold, max_fmr, framing, every=False)[0]

    def verify_every(
        self,
        a: Source,
        b: Source,
        threshold: float | None = None,
        max_fmr: float | None = None,
        framing: bool = True,
        every: bool = True,
    ) -> list[Verdict]:
        """Compare every face of `a` with every face of `b`: by face of `a`, then of `b`.

        Faces come the largest first; without `every` that is the only one. Raises what `verify`
        does.
        """
        point = operating_point(self.bundle, threshold, max_fmr)
        left, right = (
            self.portraits(
                source, None if isinstance(source, str | os.PathLike) else name, framing, every
            )
            for source, name in ((a, "first image"), (b, "second image"))
        )
        pairs = [(one, other) for one in left for other in right]
        scores = self.scorer.score_pairs(
            np.stack([one.crop for one, _ in pairs]), np.stack([other.crop for _, other in pairs])
        )
        return [
            replace(self.verdict(score, point.threshold), left=one, right=other)
            for (one, other), score in zip(pairs, scores.tolist(), strict=True)
        ]

    def verdict(self, score: float, threshold: float | None) -> Verdict:
        """Say what a score means: its probability, and whether it reaches a threshold."""
        calibration = self.bundle.calibration
        probability = calibration.probability(score) if calibration else None
        same = None if threshold is None else score >= threshold
        return Verdict(same, probability, score, threshold)

    def embed(
        self, images: Iterable[Source], workers: int | None = None, framing: bool = True
    ) -> ScoreArray:
        """Embed images: float32[N, D], rows of length 1 in L2, in their order; none give [0, 0].

        Paths, bytes, open binary files, Pillow images or arrays; uint8[N, height, width, 3] will
        do. They are read, framed as in `verify` unless without `framing`, and embedded in `workers`
        threads (by default one a core). The score of two images is the dot product of their rows,
        for a bundle. Raises BadImage (NoFace among them) that names the image, or says which it is,
        BadData for one image instead of many, BadBundle for a bundle of kind 'pair', which has no
        embeddings.
        """
        from facepairs.support.parallel import batches, in_order

        if _is_one_image(images):
            raise BadData("embed takes several images; give one in a list: embed([image])")

        def some(part: list[tuple[int, Source]]) -> ScoreArray:
            return self._embed_some(part, framing)

        found = list(in_order(some, batches(enumerate(images), BATCH_CROPS), workers))
        return np.concatenate(found) if found else some([])

    def _embed_some(self, images: list[tuple[int, Source]], framing: bool) -> ScoreArray:
        side = self.bundle.framing.crop_px
        crops = np.zeros((len(images), side, side, 3), np.uint8)
        for at, (number, source) in enumerate(images):
            name = None if isinstance(source, str | os.PathLike) else f"image {number}"
            crops[at] = self.crop(source, name, framing)
        return self.scorer.embed(crops)

    def score_images(
        self,
        paths: Sequence[Path],
        left: Indices,
        right: Indices,
        progress: Progress | None = None,
        workers: int | None = None,
    ) -> ScoreArray:
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
    ) -> ScoreArray:
        images, where = np.unique(np.concatenate([left, right]), return_inverse=True)
        rows = np.zeros((0, 0), np.float32)
        for part in _slices(len(images), crops.capacity):
            found = self.scorer.embed(crops.take(images[part]))
            if not len(rows):
                rows = np.empty((len(images), found.shape[1]), np.float32)
            rows[part] = found
            if progress:
                progress(part.stop, len(images))
        scores = np.empty(len(left), np.float32)
        lefts, rights = where[: len(left)], where[len(left) :]
        for part in _slices(len(left), CHUNK_PAIRS):
            scores[part] = self.scorer.compare(rows[lefts[part]], rows[rights[part]])
        return scores

    def _score_crops(
        self, crops: "_Crops", left: Indices, right: Indices, progress: Progress | None
    ) -> ScoreArray:
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


def _unpacked(name: str, files: dict[str, bytes], threads: int | None, quick: bool) -> Verifier:
    """Open a verifier from its model's files; `name` is what to open among them, "" for all."""
    with scratch_folder("facepairs-model") as folder:
        for file, data in files.items():
            (folder / file).write_bytes(data)
        return Verifier.load(folder / name, threads, quick)


def _is_one_image(images: Any) -> bool:
    """Tell one image from several; a path or an array [H, W, 3] can be iterated over as well."""
    whole = isinstance(images, str | bytes | os.PathLike) or hasattr(images, "read")
    return whole or not isinstance(images, Iterable) or getattr(images, "ndim", 4) != 4


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
