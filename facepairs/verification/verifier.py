"""`Verifier`: compare the faces of two photos, embed images, and score many pairs of files."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.bundles.operating_point import operating_point
from facepairs.errors import BadData
from facepairs.faces.align import AlignedFace, align_faces, unaligned_face
from facepairs.images.crop import Crop
from facepairs.images.photo import ImageSource, open_photo
from facepairs.support.background import Background
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.verification.loading import Model, open_model, open_scorer
from facepairs.verification.scorer import BATCH_CROPS, ScoreArray, Scorer


@dataclass(frozen=True)
class Verdict:
    """The result of `Verifier.verify`; true in an `if` when both photos show one person.

    Attributes:
        same: score >= threshold; None without a threshold.
        probability: Calibrated P(same person) at equal priors; None without a calibration.
        score: The network's score; higher is more alike.
        threshold: The threshold on the score; None for an external embedder without one.
        left: The face of the first photo and its quality hints; None for a score alone.
        right: The face of the second photo. Equality of verdicts ignores both faces.
    """

    same: bool | None
    probability: float | None
    score: float
    threshold: float | None
    left: AlignedFace | None = field(default=None, compare=False, repr=False)
    right: AlignedFace | None = field(default=None, compare=False, repr=False)

    def __bool__(self) -> bool:
        """Return `same`; raise BadData where it is None. A verdict must not be true by default."""
        if self.same is None:
            raise BadData("no threshold, so no verdict; give one, or look at the score")
        return self.same

    def faces_json(self) -> dict[str, Any]:
        """Return a plain dict of left and right, each as `AlignedFace.to_json` or None."""
        sides = {"left": self.left, "right": self.right}
        return {side: face.to_json() if face else None for side, face in sides.items()}


class Verifier:
    """A model that is ready to compare faces; thread-safe, and can be pickled with its model.

    Example:
        Verifier.load().verify("a.jpg", "b.jpg").probability

    Args:
        bundle: A bundle or an external embedder.
        threads: Threads of one call of the network; None for one per core.
        quick: For a pair or two: open the network sooner, in another thread, and run it slower;
            read two photos at the same time. What is wrong with the network is raised when it is
            first used.
    """

    def __init__(self, bundle: Model, threads: int | None = None, quick: bool = False) -> None:
        self.bundle = bundle
        self._quick = quick
        self._open: Callable[[], Scorer] = partial(open_scorer, bundle, threads, quick)
        if quick:
            self._open = Background(self._open).result
        else:
            self.scorer  # noqa: B018 - opens it

    @cached_property
    def scorer(self) -> Scorer:
        """The network."""
        return self._open()

    def __reduce__(self) -> Any:
        return _restore, (self.bundle, self.scorer)

    @classmethod
    def load(
        cls, path: Path | str | None = None, threads: int | None = None, quick: bool = False
    ) -> "Verifier":
        """Open a bundle, or the TOML of an external embedder.

        Args:
            path: None and the word `default` mean the bundle that comes with the package.
            threads: Threads of one call of the network; None for one per core.
            quick: As for `Verifier`.

        Raises:
            BadBundle: The model is missing, damaged, or of another schema.
        """
        # The scorer checks the network against its SHA-256 when it reads it.
        return cls(open_model(path, verify_files=False), threads, quick)

    def crop(self, source: ImageSource, name: str | None = None) -> Crop:
        """Read an image as the network sees it: uint8[crop_px, crop_px, 3].

        Args:
            source: See `load_crop`.
            name: What messages call the image.

        Raises:
            BadImage: The image cannot be read.
            NoFace: No face is found.
            TooSmallFace: The face has too few pixels.
        """
        return self._faces(source, name, hints=False)[0].crop

    def align_faces(
        self, source: ImageSource, name: str | None = None, every: bool = False
    ) -> list[AlignedFace]:
        """Find and align the most prominent face of an image, as the bundle's alignment asks for.

        Args:
            source: See `load_crop`.
            name: What messages call the image.
            every: Return every face, the most prominent first.

        Returns:
            At least one face.

        Raises:
            BadImage: The image cannot be read.
            NoFace: No face is found.
            TooSmallFace: The face has too few pixels.
        """
        return self._faces(source, name, every)

    def _faces(
        self, source: ImageSource, name: str | None, every: bool = False, hints: bool = True
    ) -> list[AlignedFace]:
        if self.bundle.aligned:
            return align_faces(source, self.bundle.framing, name, every, hints)
        return [unaligned_face(open_photo(source, name), self.bundle.framing, hints)]

    def verify(
        self,
        a: ImageSource,
        b: ImageSource,
        threshold: float | None = None,
        max_fmr: float | None = None,
    ) -> Verdict:
        """Compare the most prominent faces of two photos; their order does not matter.

        Args:
            a: A path, bytes, an open binary file, a Pillow image or an array; see `load_crop`.
            b: The other photo.
            threshold: Accept from this score on, in place of the model's own threshold.
            max_fmr: Use the model's threshold for this false match rate, 0 to 1.

        Raises:
            BadImage: A photo cannot be read.
            NoFace: A photo shows no face.
            TooSmallFace: A photo's face has too few pixels.
            BadConfig: The threshold is not finite, the model has none for `max_fmr`, or both are
                given.
        """
        return self.compare_faces(a, b, threshold, max_fmr, every=False)[0]

    def compare_faces(
        self,
        a: ImageSource,
        b: ImageSource,
        threshold: float | None = None,
        max_fmr: float | None = None,
        every: bool = True,
    ) -> list[Verdict]:
        """Compare every face of `a` with every face of `b`; arguments and errors as in `verify`.

        Returns:
            Verdicts by face of `a`, then of `b`, the most prominent faces first. Without `every`
            only the most prominent faces are compared.
        """
        point = operating_point(self.bundle, threshold, max_fmr)
        align_right: Callable[[], list[AlignedFace]]
        align_right = partial(self.align_faces, b, _name_of(b, "second image"), every)
        if self._quick:
            align_right = Background(align_right).result
        left = self.align_faces(a, _name_of(a, "first image"), every)
        right = align_right()
        scores = self._score_all(*(np.stack([f.crop for f in side]) for side in (left, right)))
        return [
            replace(self.verdict(score, point.threshold), left=one, right=other)
            for one, row in zip(left, scores, strict=True)
            for other, score in zip(right, row.tolist(), strict=True)
        ]

    def _score_all(self, left: Crop, right: Crop) -> Iterator[ScoreArray]:
        """Score M crops with each of N others: M times float32[N]; no copy of a crop per pair."""
        scorer = self.scorer
        rows: npt.NDArray[Any] = left
        others: npt.NDArray[Any] = right
        score: Callable[[Any, Any], ScoreArray] = scorer.score_pairs
        if self.bundle.kind == "embedding":
            score, rows, others = scorer.compare, scorer.embed(left), scorer.embed(right)
        return (score(np.broadcast_to(row, others.shape), others) for row in rows)

    def verdict(self, score: float, threshold: float | None) -> Verdict:
        """Return what a score means: its probability, and whether it reaches a threshold."""
        calibration = self.bundle.calibration
        probability = calibration.probability(score) if calibration else None
        same = None if threshold is None else score >= threshold
        return Verdict(same, probability, score, threshold)

    def embed(self, images: Iterable[ImageSource], workers: int | None = None) -> ScoreArray:
        """Embed images.

        Args:
            images: Paths, bytes, open binary files, Pillow images or arrays; an array
                uint8[N, height, width, 3] works too.
            workers: Threads that read and embed images; None for one per core.

        Returns:
            float32[N, D] in the order of the images; [0, 0] for no images. A bundle's rows have
            length 1 in L2, and the score of two images is the dot product of their rows.

        Raises:
            BadImage: An image cannot be read, or shows no face; the message names it.
            BadData: `images` is one image.
            BadBundle: The network scores pairs and has no embeddings.
        """
        from facepairs.support.parallel import batches, thread_map  # costs `verify` 15 ms

        if _is_one_image(images):
            raise BadData("embed takes several images; give one in a list: embed([image])")
        numbered = batches(enumerate(images), BATCH_CROPS)
        parts = list(thread_map(self._embed_batch, numbered, workers))
        return np.concatenate(parts) if parts else self._embed_batch([])

    def _embed_batch(self, images: list[tuple[int, ImageSource]]) -> ScoreArray:
        side = self.bundle.framing.crop_px
        crops = np.zeros((len(images), side, side, 3), np.uint8)
        for at, (number, source) in enumerate(images):
            crops[at] = self.crop(source, _name_of(source, f"image {number}"))
        return self.scorer.embed(crops)

    def score_images(
        self,
        paths: Sequence[Path],
        left: npt.NDArray[np.integer[Any]],
        right: npt.NDArray[np.integer[Any]],
        progress: ProgressCallback | None = None,
        workers: int | None = None,
        errors: dict[int, str] | None = None,
    ) -> ScoreArray:
        """Score pairs of image files; see `score_files.score_files`.

        Args:
            paths: Image files.
            left: integer[N], positions in `paths`.
            right: integer[N], positions in `paths`.
            progress: Counts images for an embedding network, else pairs.
            workers: Threads that read images and run the network; None for one per core.
            errors: Is filled with what is wrong with images, by position; their pairs score NaN.

        Returns:
            float32[N] in the order of the pairs.

        Raises:
            BadImage: An image cannot be used, and `errors` is None; the message names it.
            BadData: `left` and `right` are no positions in `paths`, or differ in length.
        """
        from facepairs.support.parallel import thread_map
        from facepairs.verification.score_files import score_files

        ordered_map = partial(thread_map, workers=workers)
        progress = progress or ignore_progress
        return score_files(
            self,
            paths,
            left,
            right,
            progress=progress,
            ordered_map=ordered_map,
            errors=errors,
        )


def _restore(bundle: Model, scorer: Scorer) -> Verifier:
    """Return a pickled verifier."""
    verifier = Verifier.__new__(Verifier)
    vars(verifier).update(bundle=bundle, scorer=scorer, _quick=False)
    return verifier


def _name_of(source: ImageSource, name: str) -> str | None:
    """Return None for a path, which messages name themselves, and `name` for other sources."""
    return None if isinstance(source, str | os.PathLike) else name


def _is_one_image(images: Any) -> bool:
    """Tell one image from several; a path or an array [H, W, 3] can be iterated over as well."""
    is_file = isinstance(images, str | bytes | os.PathLike) or hasattr(images, "read")
    return is_file or not isinstance(images, Iterable) or getattr(images, "ndim", 4) != 4
