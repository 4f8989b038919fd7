"""`Verifier`: compare the faces of two photos, embed images, and score many pairs of files."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from facepairs.bundles.calibration import EQUAL_PRIORS, check_prior
from facepairs.bundles.rates import OperatingPoint, operating_point
from facepairs.errors import BadConfig, BadData
from facepairs.faces.align import AlignedFace, align_faces, unaligned_face
from facepairs.images.crop import Crop
from facepairs.images.photo import ImageSource, open_photo
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.support.words import counted
from facepairs.verification.background import Background
from facepairs.verification.loading import (
    Model,
    check_threshold,
    model_name,
    open_model,
    open_scorer,
)
from facepairs.verification.scorer import BATCH_CROPS, ScoreArray, Scorer
from facepairs.verification.verdict import Verdict

if TYPE_CHECKING:
    from facepairs.verification.pairs.pair_frame import Frame


class Verifier:
    """A model that is ready to compare faces; thread-safe, and can be pickled with its model.

    Examples:
        >>> verdict = Verifier.load().verify("a.jpg", "b.jpg")
        >>> print(verdict.words, verdict.describe_probability(), verdict.point.describe())

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
        self._again: Callable[[], Scorer] = partial(open_scorer, bundle, threads, quick)
        self._open = Background(self._again).result if quick else self._again
        if not quick:
            self.scorer  # noqa: B018 - opens it

    @cached_property
    def scorer(self) -> Scorer:
        """The network."""
        return self._open()

    def __repr__(self) -> str:
        return f"Verifier({model_name(self.bundle)!r}, kind={self.bundle.kind!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Free the network's memory; it is opened again when it is used again."""
        vars(self).pop("scorer", None)
        self._open = self._again

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: the model with its open network, whose files may be elsewhere."""
        again = partial(open_scorer, self.bundle)
        opened = {"scorer": self.scorer, "_open": again, "_again": again}
        return {"bundle": self.bundle, **opened, "_quick": False}

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
            source: A path, bytes, an open binary file, a Pillow image or an array.
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
            source: A path, bytes, an open binary file, a Pillow image or an array.
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

    def align_face(
        self, source: ImageSource, name: str | None = None, position: int | None = None
    ) -> AlignedFace:
        """Find and align one face of an image.

        Args:
            source: As for `align_faces`.
            name: What messages call the image.
            position: Its place in the list that `align_faces` returns with `every`; None for the
                most prominent face.

        Raises:
            BadConfig: The image has fewer faces.
            BadImage: As in `align_faces`, and so for NoFace and TooSmallFace.
        """
        faces = self.align_faces(source, name, every=position is not None)
        if position is not None and not 0 <= position < len(faces):
            raise BadConfig(
                f"{name or 'image'}: it shows {counted(len(faces), 'face')}, none at position "
                f"{position}; positions count from 0"
            )
        return faces[position or 0]

    def detect(self, source: ImageSource, name: str | None = None) -> list[AlignedFace]:
        """Find and align every face of an image, the most prominent first.

        Args:
            source: As for `align_faces`.
            name: What messages call the image.

        Raises:
            BadImage: As in `align_faces`, and so for NoFace and TooSmallFace.
        """
        return self.align_faces(source, name, every=True)

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
        balanced: bool = False,
        prior: float = EQUAL_PRIORS,
    ) -> Verdict:
        """Compare the most prominent faces of two photos; their order does not matter.

        The model's default operating point decides; at most one of `threshold`, `max_fmr` and
        `balanced` chooses another. `Verdict.point` has the errors to expect there.

        Args:
            a: A path, bytes, an open binary file, a Pillow image or an array.
            b: The other photo.
            threshold: Accept from this score on.
            max_fmr: Use the model's threshold for this false match rate, 0 to 1.
            balanced: Use the threshold at which the probability at equal priors is one half.
            prior: Share of genuine pairs among those that you compare, in (0, 1). It changes the
                probability, not the threshold.

        Raises:
            BadImage: A photo cannot be read.
            NoFace: A photo shows no face.
            TooSmallFace: A photo's face has too few pixels.
            BadConfig: The threshold is no score of this model, the model has none for `max_fmr`,
                several thresholds are asked for, or the prior is outside (0, 1).
        """
        point = self.operating_point(threshold, max_fmr, balanced)
        return self.compare_faces(a, b, point, prior, every=False)[0]

    def operating_point(
        self,
        threshold: float | None = None,
        max_fmr: float | None = None,
        balanced: bool = False,
    ) -> OperatingPoint:
        """Choose a threshold; arguments and errors as in `verify`."""
        if threshold is not None:
            check_threshold(self.bundle, threshold)
        return operating_point(self.bundle, threshold, max_fmr, balanced)

    def compare_faces(
        self,
        a: ImageSource,
        b: ImageSource,
        point: OperatingPoint | None = None,
        prior: float = EQUAL_PRIORS,
        every: bool = True,
    ) -> list[Verdict]:
        """Compare every face of `a` with every face of `b`.

        Args:
            a: One photo, see `verify`.
            b: The other photo.
            point: The threshold; None for the model's default.
            prior: As for `verify`.
            every: Without it only the most prominent faces are compared.

        Returns:
            Verdicts by face of `a`, then of `b`, the most prominent faces first. If there are
            several, none has a probability, because the best of them is no single comparison; see
            `Verdict.expected_matches`.

        Raises:
            BadImage: As in `verify`, and so for NoFace, TooSmallFace and BadConfig.
        """
        point = point or self.operating_point()
        check_prior(prior)
        align_right: Callable[[], list[AlignedFace]]
        align_right = partial(self.align_faces, b, _name_of(b, "second image"), every)
        if self._quick:
            align_right = Background(align_right).result
        left = self.align_faces(a, _name_of(a, "first image"), every)
        return self.compare_aligned(left, align_right(), point, prior)

    def compare_aligned(
        self,
        left: Sequence[AlignedFace],
        right: Sequence[AlignedFace],
        point: OperatingPoint,
        prior: float = EQUAL_PRIORS,
    ) -> list[Verdict]:
        """Compare every face of `left` with every face of `right`; see `compare_faces`."""
        scores = self._score_all(*(np.stack([f.crop for f in side]) for side in (left, right)))
        count = len(left) * len(right)
        return [
            replace(
                self.verdict(score, self._point_for(point, one, other), prior, count),
                left=one,
                right=other,
            )
            for one, row in zip(left, scores, strict=True)
            for other, score in zip(right, row.tolist(), strict=True)
        ]

    def _point_for(self, point: OperatingPoint, *faces: AlignedFace) -> OperatingPoint:
        """Return the threshold with the errors of faces of this size."""
        sides = [aligned.face.side_px for aligned in faces if aligned.face]
        return point.for_face(self.bundle.errors, min(sides)) if sides else point

    def _score_all(self, left: Crop, right: Crop) -> Iterator[ScoreArray]:
        """Score M crops with each of N others: M times float32[N]; no copy of a crop per pair."""
        scorer = self.scorer
        rows: npt.NDArray[Any] = left
        others: npt.NDArray[Any] = right
        score: Callable[[Any, Any], ScoreArray] = scorer.score_pairs
        if self.bundle.kind == "embedding":
            score, rows, others = scorer.compare, scorer.embed(left), scorer.embed(right)
        return (score(np.broadcast_to(row, others.shape), others) for row in rows)

    def verdict(
        self,
        score: float,
        point: OperatingPoint,
        prior: float = EQUAL_PRIORS,
        comparisons: int = 1,
    ) -> Verdict:
        """Return what a score means: whether it reaches a threshold, and its probability."""
        calibration = self.bundle.calibration if comparisons == 1 else None
        probability = calibration.probability(score, prior) if calibration else None
        same = None if point.threshold is None else score >= point.threshold
        return Verdict(same, probability, score, point, prior, comparisons)

    def embed(self, images: Iterable[ImageSource], workers: int | None = None) -> ScoreArray:
        """Embed images.

        Args:
            images: Paths, bytes, open binary files, Pillow images or arrays; an array
                uint8[N, height, width, 3] works too.
            workers: Threads that read and embed images; None for one per core.

        Returns:
            float32[N, D] in the order of the images. A bundle's rows have length 1 in L2, and the
            score of two images is the dot product of their rows.

        Raises:
            BadImage: An image cannot be read, or shows no face; the message names it (one without
                a name by its place: `image 1` is the first).
            BadData: `images` is one image.
            BadBundle: The network scores pairs and has no embeddings.
        """
        from facepairs.support.parallel import batches, thread_map  # costs `verify` 15 ms

        if _is_one_image(images):
            raise BadData("embed takes several images; give one in a list: embed([image])")
        numbered = batches(enumerate(images, 1), BATCH_CROPS)
        parts = list(thread_map(self._embed_batch, numbered, workers))
        return np.concatenate(parts) if parts else self._embed_batch([])

    def _embed_batch(self, images: list[tuple[int, ImageSource]]) -> ScoreArray:
        side = self.bundle.framing.crop_px
        crops = np.zeros((len(images), side, side, 3), np.uint8)
        for at, (number, source) in enumerate(images):
            crops[at] = self.crop(source, _name_of(source, f"image {number}"))
        return self.scorer.embed(crops)

    def verify_pairs(
        self,
        pairs: "Frame",
        point: OperatingPoint | None = None,
        prior: float = EQUAL_PRIORS,
        progress: ProgressCallback | None = None,
    ) -> "Frame":
        """Score the pairs of photos in a pandas DataFrame; each photo is read once.

        Args:
            pairs: Its columns `left` and `right` are paths.
            point: The threshold, from `operating_point`; None for the model's default.
            prior: As for `verify`.
            progress: As for `score_images`.

        Returns:
            A copy with the columns score, probability, same and error. Where a photo cannot be
            used, error says why, score is NaN, and probability and same are None.

        Raises:
            BadConfig: `pairs` lacks the column left or right.
        """
        from facepairs.verification.pairs.pair_frame import verify_frame

        return verify_frame(self, pairs, point or self.operating_point(), prior, progress)

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
        from facepairs.verification.pairs.score_files import score_files

        return score_files(
            self,
            paths,
            left,
            right,
            progress=progress or ignore_progress,
            workers=workers,
            errors=errors,
        )


def _name_of(source: ImageSource, name: str) -> str | None:
    """Return None for a path, which messages name themselves, and `name` for other sources."""
    return None if isinstance(source, str | os.PathLike) else name


def _is_one_image(images: Any) -> bool:
    """Tell one image from several; a path or an array [H, W, 3] can be iterated over as well."""
    is_file = isinstance(images, str | bytes | os.PathLike) or hasattr(images, "read")
    several = getattr(images, "ndim", 1) in (1, 4)  # a column of paths, or an array of images
    return is_file or not isinstance(images, Iterable) or not several
