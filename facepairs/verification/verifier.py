"""`Verifier`: compare the faces of two photos, score many pairs, and embed many photos."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import length_hint
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from facepairs.bundles.error_profile import (
    EQUAL_PRIORS,
    check_prior,
    operating_point,
    point_for_faces,
)
from facepairs.bundles.model import Model, open_model
from facepairs.bundles.rates import OperatingPoint
from facepairs.bundles.scorer import BATCH_CROPS, ScoreArray, Scorer, open_scorer
from facepairs.errors import BadData
from facepairs.photos.face_sample import FaceRef, FaceSample, choose_face
from facepairs.photos.photo import ImageSource
from facepairs.photos.reader import PhotoReader
from facepairs.support.parallel import batches, thread_map, unbatched
from facepairs.verification.verdict import Verdict, with_hint_of_copies, with_hint_of_others

if TYPE_CHECKING:
    from facepairs.data.index import FaceIndex
    from facepairs.photos.photo_record import PhotoRecord
    from facepairs.photos.subject_faces import SubjectFaces


CHUNK_PAIRS = 512  # scored at a time
READING = "reading photos"  # the phase that progress shows

Indices = npt.NDArray[np.integer[Any]]


def score_samples(
    scorer: Scorer, samples: Mapping[int, FaceSample], left: Indices, right: Indices
) -> ScoreArray:
    """Score pairs of faces.

    Args:
        scorer: The network.
        samples: The face of each photo, by its number, as `PhotoReader.read` returned it.
        left: integer[N], numbers of photos.
        right: integer[N], the same.

    Returns:
        float32[N], NaN where a photo cannot be used.
    """
    bad = [number for number, sample in samples.items() if sample.error]
    usable = np.flatnonzero(~(np.isin(left, bad) | np.isin(right, bad)))

    def score(rows: Indices) -> ScoreArray:
        sides = ([samples[number] for number in side[rows].tolist()] for side in (left, right))
        return score_faces(scorer, *sides)

    scores = np.full(len(left), np.nan, np.float32)
    chunks = (usable[at : at + CHUNK_PAIRS] for at in range(0, len(usable), CHUNK_PAIRS))
    scores[usable] = np.concatenate([np.zeros(0, np.float32), *thread_map(score, chunks)])
    return scores


def score_faces(
    scorer: Scorer, left: Sequence[FaceSample], right: Sequence[FaceSample]
) -> ScoreArray:
    """Score faces that `PhotoReader.read` returned with others, pair by pair: float32[N]."""
    rows = (
        np.stack([face.embedding for face in side])  # type: ignore[misc]
        for side in (left, right)
    )
    return scorer.compare(*rows)


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
    ) -> list[FaceSample]:
        """Find and align the faces of an image, the most prominent first.

        Args:
            source: A path, bytes, an open binary file, a Pillow image or an array.
            name: The name of the image in messages.
            every: Without it, only the most prominent face is aligned, which takes less time.

        Returns:
            At least one face, numbered from 1; small faces of a large photo come last. A model of
            whole images gives one, of the whole image.

        Raises:
            BadImage: The image cannot be read.
            NoFace: No face is found.
            TooSmallFace: The faces have too few pixels.
        """
        reader = PhotoReader(self.model.aligned, self.model.framing)
        return reader.detect(name or _name_of(source, "image"), source, every)

    def detect_face(
        self, source: ImageSource, number: int = 1, name: str | None = None
    ) -> FaceSample:
        """Find and align one face of an image.

        Args:
            source: As for `detect`; a `FaceRef` brings its own number.
            number: The number of the face, from 1 for the most prominent.
            name: The name of the image in messages.

        Raises:
            BadImage: As `detect` does.
            BadConfig: No face has this number.
        """
        number = source.number if isinstance(source, FaceRef) else number
        return choose_face(self.detect(source, name, every=number != 1), number)

    def verify(
        self,
        a: ImageSource,
        b: ImageSource,
        threshold: float | None = None,
        max_fmr: float | None = None,
        prior: float = EQUAL_PRIORS,
        faces: tuple[int | None, int | None] = (None, None),
        names: tuple[str, str] = ("first image", "second image"),
    ) -> Verdict:
        """Compare a face of each of two photos; their order does not matter.

        The model's default operating point decides, unless `threshold` or `max_fmr` chooses
        another. `Verdict.point` has the errors to expect there.

        Args:
            a: A path, bytes, an open binary file, a Pillow image or an array.
            b: The other photo.
            threshold: Accept from this score on.
            max_fmr: Use the model's threshold for this false match rate, 0 to 1.
            prior: Share of genuine pairs among those that you compare, in (0, 1). It changes the
                probability, not the threshold.
            faces: The numbers of the faces, from 1 for the most prominent, in the order of
                `detect`. None takes the most prominent one; if the photo shows others, its face
                gets the hint `several-faces`.
            names: The names of the photos in messages; a path is called by itself.

        Returns:
            The verdict; `left` and `right` have the hints on both photos.

        Raises:
            BadImage: A photo cannot be read.
            NoFace: A photo shows no face.
            TooSmallFace: A photo's face has too few pixels.
            BadConfig: The threshold is not a score of this model, the model has none for `max_fmr`,
                both are given, the prior is outside (0, 1), or a photo shows fewer faces.
        """
        point = self.operating_point(threshold, max_fmr)
        check_prior(prior)
        left, right = (
            with_hint_of_others(
                self.detect_face(source, number or 1, _name_of(source, name)), number
            )
            for source, number, name in ((a, faces[0], names[0]), (b, faces[1], names[1]))
        )
        return self.verify_faces(*with_hint_of_copies(left, right), point, prior)

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
        left: FaceSample,
        right: FaceSample,
        point: OperatingPoint | None = None,
        prior: float = EQUAL_PRIORS,
    ) -> Verdict:
        """Compare two faces.

        Args:
            left: A face from `detect` or `read`.
            right: The other face.
            point: The threshold; None for the model's default.
            prior: As for `verify`.

        Raises:
            BadConfig: The prior is outside (0, 1).
            BadImage: A face from `read` has an error.
        """
        point = point or self.operating_point()
        check_prior(prior)
        rows = self.represent([left, right])
        score = float(self.scorer.compare(rows[:1], rows[1:])[0])
        faces = [side.face for side in (left, right) if side.face]
        if faces:  # with the errors of faces of this size, and turned this far
            side_px = min(face.side_px for face in faces)
            yaw = max(abs(face.yaw) for face in faces)
            point = point_for_faces(self.model.profile, point, side_px, yaw)
        return Verdict.of(self.model, score, point, prior, (left, right))

    def represent(self, faces: Sequence[FaceSample]) -> npt.NDArray[Any]:
        """Return what the network compares of faces from `detect` or `read`; nothing is stored.

        Returns:
            The embeddings, float32[N, D]; of a network of pairs the crops, uint8[N, side, side, 3].

        Raises:
            BadImage: A face from `read` has an error.
        """
        for face in faces:
            if face.error:
                raise face.error
        reader = PhotoReader(self.model.aligned, self.model.framing, self.scorer)
        return np.stack([face.embedding for face in reader.embed(faces)])  # type: ignore[misc]

    def compare(self, left: ScoreArray, right: ScoreArray) -> ScoreArray:
        """Score embeddings row by row, the same in either order.

        Args:
            left: float32[N, D], from `embed`.
            right: float32[N, D].

        Returns:
            float32[N].

        Raises:
            BadData: They are not two such arrays of equally many rows.
        """
        left, right = (np.asarray(side, np.float32) for side in (left, right))
        if left.ndim != 2 or left.shape != right.shape or left.shape[1] != self.scorer.width:
            raise BadData(
                f"embeddings of shape {list(left.shape)} and {list(right.shape)} cannot be paired; "
                f"give two arrays [N, {self.scorer.width}] of equally many rows"
            )
        return self.scorer.compare(left, right)

    def embed(self, images: Iterable[ImageSource | FaceRef | FaceSample]) -> ScoreArray:
        """Embed images; arguments as for `read`.

        Returns:
            float32[N, D] in the order of the images. A bundle's rows have length 1 in L2, and the
            score of two images is the dot product of their rows.

        Raises:
            BadImage: An image cannot be read, or shows no face; the message names it.
            BadData: `images` is one image.
            BadBundle: The network scores pairs and has no embeddings.
        """
        width, rows = self.scorer.width, []
        for sample in self._read(images):
            if sample.error:
                raise sample.error
            rows.append(sample.embedding)
        return np.array(rows, np.float32).reshape(len(rows), width)

    def read(self, images: Iterable[ImageSource | FaceRef | FaceSample]) -> list[FaceSample]:
        """Find the faces of images and embed them.

        What is found in files given by their paths is kept, see `photo_cache`.

        Args:
            images: Paths, bytes, open binary files, Pillow images, arrays or faces from `detect`;
                an array uint8[N, height, width, 3] works too.

        Returns:
            The most prominent face of each image, or the one that a `FaceRef` names, with its
            embedding; a network of pairs has the crop in its place. `error` says why an image
            cannot be used. One without a name is called by its place: `image 1` is the first.

        Raises:
            BadData: `images` is one image.
        """
        return list(self._read(images))

    def _read(self, images: Iterable[ImageSource | FaceRef | FaceSample]) -> Iterator[FaceSample]:
        if is_one_image(images):
            raise BadData("images is a single image; give a list: [image]")
        named = (
            (_name_of(source, f"image {number}"), source) for number, source in enumerate(images, 1)
        )
        read = thread_map(self.reader().read, batches(named, BATCH_CROPS))
        return unbatched(read, READING, length_hint(images))

    def reader(self, keep: bool = True, all_hints: bool = False) -> PhotoReader:
        """Return a reader of photos for this model, with the user's cache of photos.

        Args:
            keep: Whether what is found is stored in the cache.
            all_hints: Look for hints of the faces behind the first, too.
        """
        from facepairs.photos.photo_cache import photo_cache  # two photos alone need no SQLite

        model, cache = self.model, photo_cache()
        return PhotoReader(model.aligned, model.framing, self.scorer, cache, keep, all_hints)


def subject_faces(
    index: "FaceIndex",
    images: Sequence[int],
    records: "Mapping[int, PhotoRecord] | None" = None,
    keep: bool = True,
) -> "SubjectFaces":
    """Choose, in photos with several faces, that of the person whose folder it is in.

    Args:
        index: The photos.
        images: Numbers of the photos that are used.
        records: What is known of some of them; the others are inspected.
        keep: Whether what is found is stored in the cache of photos.
    """
    from facepairs.photos.subject_faces import MOST_PROMINENT, choose_subjects, count_faces

    faces = count_faces(index, images, records or {}, keep)
    if not (faces > 1).any():
        return MOST_PROMINENT
    verifier = Verifier.load(threads=1)
    least = verifier.model.profile.balanced_threshold
    assert least is not None
    return choose_subjects(verifier.reader(keep), index, faces, least)


def _name_of(source: object, name: str) -> str:
    """Return the name of an image in messages: a path, and `name` for other sources."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else name


def is_one_image(images: Any) -> bool:
    """Tell one image from several; a path or an array [H, W, 3] can be iterated over as well."""
    is_file = isinstance(images, str | bytes | os.PathLike) or hasattr(images, "read")
    several = getattr(images, "ndim", 1) in (1, 4)  # a column of paths, or an array of images
    return is_file or not isinstance(images, Iterable) or not several
