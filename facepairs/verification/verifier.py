"""`Verifier`: compare the faces of two photos, embed images, and score many pairs of files."""

import os
from collections.abc import Iterable, Sequence, Sized
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from facepairs.bundles.loading import open_model
from facepairs.bundles.measured import EQUAL_PRIORS, check_prior, operating_point
from facepairs.bundles.model import Model
from facepairs.bundles.rates import OperatingPoint
from facepairs.bundles.scorer import BATCH_CROPS, ScoreArray, Scorer, open_scorer
from facepairs.errors import BadData
from facepairs.photos.align import AlignedFace, align_faces, unaligned_face
from facepairs.photos.photo import ImageSource
from facepairs.support import console
from facepairs.verification.verdict import Verdict

if TYPE_CHECKING:
    from facepairs.verification.photos import PhotoReader


class Verifier:
    """A model that is ready to compare faces; thread-safe, and can be pickled with its model.

    Examples:
        >>> verdict = Verifier.load().verify("a.jpg", "b.jpg")
        >>> print(verdict.words, verdict.describe_probability(), verdict.point.describe())

    Args:
        model: The model.
        threads: Threads of one call of the network; None for one per core.

    Attributes:
        model: The model.
        scorer: Its network.
    """

    def __init__(self, model: Model, threads: int | None = None) -> None:
        self.model = model
        self.scorer: Scorer = open_scorer(model, threads)

    def __repr__(self) -> str:
        return f"Verifier({self.model.place!r}, kind={self.model.network.kind!r})"

    @classmethod
    def load(cls, path: Path | str | None = None, threads: int | None = None) -> Self:
        """Open a bundle, or the TOML of an external embedder.

        Args:
            path: None and the word `default` mean the bundle that comes with the package.
            threads: Threads of one call of the network; None for one per core.

        Raises:
            BadBundle: The model is missing, damaged, or of another schema.
        """
        return cls(open_model(path), threads)

    def detect(
        self, source: ImageSource, name: str | None = None, every: bool = True
    ) -> list[AlignedFace]:
        """Find and align the faces of an image, the most prominent first.

        Args:
            source: A path, bytes, an open binary file, a Pillow image or an array.
            name: What messages call the image.
            every: Without it, only the most prominent face is aligned, which takes less time.

        Returns:
            At least one face. A model of whole images gives one, of the whole image.

        Raises:
            BadImage: The image cannot be read.
            NoFace: No face is found.
            TooSmallFace: The faces have too few pixels.
        """
        if self.model.aligned:
            return align_faces(source, self.model.framing, name, every)
        return [unaligned_face(source, self.model.framing, name)]

    def verify(
        self,
        a: ImageSource,
        b: ImageSource,
        threshold: float | None = None,
        max_fmr: float | None = None,
        prior: float = EQUAL_PRIORS,
    ) -> Verdict:
        """Compare the most prominent faces of two photos; their order does not matter.

        The model's default operating point decides, unless `threshold` or `max_fmr` chooses
        another. `Verdict.point` has the errors to expect there.

        Args:
            a: A path, bytes, an open binary file, a Pillow image or an array.
            b: The other photo.
            threshold: Accept from this score on.
            max_fmr: Use the model's threshold for this false match rate, 0 to 1.
            prior: Share of genuine pairs among those that you compare, in (0, 1). It changes the
                probability, not the threshold.

        Raises:
            BadImage: A photo cannot be read.
            NoFace: A photo shows no face.
            TooSmallFace: A photo's face has too few pixels.
            BadConfig: The threshold is no score of this model, the model has none for `max_fmr`,
                both are given, or the prior is outside (0, 1).
        """
        point = self.operating_point(threshold, max_fmr)
        check_prior(prior)
        (left,) = self.detect(a, _name_of(a, "first image"), every=False)
        (right,) = self.detect(b, _name_of(b, "second image"), every=False)
        return self.verify_faces(left, right, point, prior)

    def operating_point(
        self,
        threshold: float | None = None,
        max_fmr: float | None = None,
    ) -> OperatingPoint:
        """Choose a threshold; arguments and errors as in `verify`."""
        if threshold is not None:
            self.scorer.check_threshold(threshold)
        return operating_point(self.model.profile, threshold, max_fmr)

    def verify_faces(
        self,
        left: AlignedFace,
        right: AlignedFace,
        point: OperatingPoint | None = None,
        prior: float = EQUAL_PRIORS,
    ) -> Verdict:
        """Compare two faces.

        Args:
            left: A face from `detect`.
            right: The other face.
            point: The threshold; None for the model's default.
            prior: As for `verify`.

        Raises:
            BadConfig: The prior is outside (0, 1).
        """
        point = point or self.operating_point()
        check_prior(prior)
        score = float(self.scorer.score_pairs(left.crop[None], right.crop[None])[0])
        faces = [aligned.face for aligned in (left, right) if aligned.face]
        if faces:  # with the errors of faces of this size, and turned this far
            side_px = min(face.side_px for face in faces)
            yaw = max(abs(face.yaw) for face in faces)
            point = point.for_faces(self.model.profile.errors, side_px, yaw)
        return Verdict.of(self.model.profile, score, point, prior, left, right)

    def compare(self, left: ScoreArray, right: ScoreArray) -> ScoreArray:
        """Score embeddings row by row, the same in either order.

        Args:
            left: float32[N, D], from `embed`.
            right: float32[N, D].

        Returns:
            float32[N].

        Raises:
            BadData: They are no two such arrays of equally many rows.
        """
        left, right = (np.asarray(side, np.float32) for side in (left, right))
        if left.ndim != 2 or left.shape != right.shape or left.shape[1] != self.scorer.width:
            raise BadData(
                f"embeddings of shape {list(left.shape)} and {list(right.shape)} make no pairs; "
                f"give two arrays [N, {self.scorer.width}] of equally many rows"
            )
        return self.scorer.compare(left, right)

    def embed(
        self,
        images: Iterable[ImageSource | AlignedFace],
        workers: int | None = None,
        errors: dict[int, str] | None = None,
    ) -> ScoreArray:
        """Embed images; what is found in files given by their paths is kept, see `photo_cache`.

        Args:
            images: Paths, bytes, open binary files, Pillow images, arrays or faces from `detect`;
                an array uint8[N, height, width, 3] works too.
            workers: Threads that read and embed images; None for one per core.
            errors: Is filled with what is wrong with images, by position from 0; their rows are
                NaN.

        Returns:
            float32[N, D] in the order of the images. A bundle's rows have length 1 in L2, and the
            score of two images is the dot product of their rows.

        Raises:
            BadImage: An image cannot be read, or shows no face, and `errors` is None; the message
                names it (one without a name by its place: `image 1` is the first).
            BadData: `images` is one image.
            BadBundle: The network scores pairs and has no embeddings.
        """
        from facepairs.support.parallel import batches, thread_map  # costs `verify` 15 ms

        if is_one_image(images):
            raise BadData("embed takes several images; give one in a list: embed([image])")
        named = (
            (_name_of(source, None) or f"image {number}", source)
            for number, source in enumerate(images, 1)
        )
        progress = console.progress("reading photos")
        rows: list[ScoreArray] = []
        total = len(images) if isinstance(images, Sized) else 0
        nothing = np.full(self.scorer.width, np.nan, np.float32)
        for seen in thread_map(self.reader().read, batches(named, BATCH_CROPS), workers):
            for one in seen:
                if one.error and errors is None:
                    raise one.error
                if one.error and errors is not None:
                    errors[len(rows)] = str(one.error)
                rows.append(nothing if one.embedding is None else one.embedding)
            progress(len(rows), max(total, len(rows)))
        return np.stack(rows) if rows else np.zeros((0, self.scorer.width), np.float32)

    def reader(self, keep: bool = True) -> "PhotoReader":
        """Return what reads and embeds photos with the user's cache of photos.

        Args:
            keep: Whether what is found is stored in the cache.
        """
        from facepairs.photos.photo_cache import photo_cache  # two photos alone need no SQLite
        from facepairs.verification.photos import PhotoReader

        return PhotoReader(self.model, self.scorer, photo_cache(), keep)

    def score_images(
        self,
        paths: Sequence[os.PathLike[str] | str],
        left: npt.NDArray[np.integer[Any]],
        right: npt.NDArray[np.integer[Any]],
        workers: int | None = None,
        errors: dict[int, str] | None = None,
    ) -> ScoreArray:
        """Score pairs of image files; each is read once.

        Args:
            paths: Image files.
            left: integer[N], positions in `paths`.
            right: integer[N], positions in `paths`.
            workers: Threads that read images; None for one per core.
            errors: Is filled with what is wrong with images, by position; their pairs score NaN.

        Returns:
            float32[N] in the order of the pairs.

        Raises:
            BadImage: An image cannot be used, and `errors` is None; the message names it.
            BadData: `left` and `right` are no positions in `paths`, or differ in length.
        """
        from facepairs.support.parallel import thread_map
        from facepairs.verification.scoring import check_positions, score_photos

        left, right = check_positions(left, len(paths)), check_positions(right, len(paths))
        if len(left) != len(right):
            raise BadData(f"{len(left)} left images and {len(right)} right ones make no pairs")
        named = [(os.fspath(path), path) for path in paths]
        read = partial(thread_map, workers=workers)
        scores, found = score_photos(self.reader(), named, left, right, read, errors is None)
        if errors is not None:
            errors.update({n: str(one.error) for n, one in found.items() if one.error})
        return scores


def _name_of(source: object, name: str | None) -> str | None:
    """Return what messages call an image: a path, and `name` for other sources."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else name


def is_one_image(images: Any) -> bool:
    """Tell one image from several; a path or an array [H, W, 3] can be iterated over as well."""
    is_file = isinstance(images, str | bytes | os.PathLike) or hasattr(images, "read")
    several = getattr(images, "ndim", 1) in (1, 4)  # a column of paths, or an array of images
    return is_file or not isinstance(images, Iterable) or not several
