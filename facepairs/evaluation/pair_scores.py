"""Score the pairs of an index and find strangers who look alike: where every measurement begins."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.error_profile import ErrorProfile
from facepairs.bundles.scorer import ScoreArray
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.errors import BadImage
from facepairs.evaluation.drift import sample_figures
from facepairs.evaluation.fitting import calibrate
from facepairs.evaluation.lookalikes import LookAlikes, find_lookalikes
from facepairs.evaluation.metrics.arrays import Bools, Ints
from facepairs.evaluation.scores import ScoredPairs, failed_pairs
from facepairs.photos.face_sample import FaceSample
from facepairs.photos.subject_faces import MOST_PROMINENT, SubjectFaces
from facepairs.support.words import counted
from facepairs.verification.verifier import Verifier, score_samples

CHUNK = 4096  # pairs compared at a time


class FaceHeap(NamedTuple):
    """Faces to be grouped.

    Attributes:
        embeddings: float32[N, D], which can be compared.
        person: int64[N], whom each shows.
        cohort: float32[K, D], of people who are not among these; see `grouping.linkage`.
    """

    embeddings: npt.NDArray[np.float32]
    person: Ints
    cohort: npt.NDArray[np.float32] | None = None


class PhotoScores(NamedTuple):
    """Pairs of photos that were scored.

    Attributes:
        pairs: The N pairs whose photos can be used.
        heap: The embeddings that grouping is measured with; None for a network that has none.
        people: The names of the people in these pairs, as the folders have them.
        failures: What is wrong with photos that cannot be used, by number.
        samples: The faces of all photos of the pairs, by number.
    """

    pairs: ScoredPairs
    heap: FaceHeap | None
    people: list[str]
    failures: Mapping[int, BadImage]
    samples: Mapping[int, FaceSample]

    def calibrate(self, verifier: Verifier, measured_on: str) -> ErrorProfile:
        """Fit the verifier's probability and thresholds to the pairs; see `fitting.calibrate`.

        What the photos look like is measured, too, for `drift`.
        """
        profile = calibrate(
            self.pairs.genuine,
            self.pairs.score,
            self.pairs.sample,
            lookalike=self.pairs.alike,
            measured_on=measured_on,
        )
        assert profile.errors is not None
        sample = sample_figures(verifier, self.samples.values())
        errors = msgspec.structs.replace(profile.errors, sample=sample)
        return msgspec.structs.replace(profile, errors=errors)


def score_pairs(
    verifier: Verifier, index: FaceIndex, pairs: PairList, faces: SubjectFaces = MOST_PROMINENT
) -> PhotoScores:
    """Score pairs; with an embedding network, also tell who look alike.

    Args:
        verifier: The verifier that scores them.
        index: The photos.
        pairs: The pairs.
        faces: Which face of each photo is used.
    """
    images, person = pairs.images(), index.person_of.astype(np.int64)
    samples = read_images(verifier, index, images, faces)
    found = dict(zip(images.tolist(), samples, strict=True))
    failures = {image: sample.error for image, sample in found.items() if sample.error}
    of_pair = pairs.show_none_of(failures)
    usable, unusable = pairs.where(of_pair), pairs.where(~of_pair)
    heap = alike = None
    if verifier.model.network.embeds:
        width = verifier.scorer.width
        embeddings = np.full((len(index), width), np.nan, np.float32)
        embeddings[images] = _rows_of(samples, width)
        chunks = (usable.where(slice(at, at + CHUNK)) for at in range(0, len(usable), CHUNK))
        parts = [verifier.compare(embeddings[one.left], embeddings[one.right]) for one in chunks]
        score = np.concatenate([np.zeros(0, np.float32), *parts])
        known: Bools = np.asarray(np.isfinite(embeddings).all(axis=1))
        heap = FaceHeap(embeddings[known], person[known], verifier.model.profile.cohort)
        alike = find_lookalikes(embeddings, person, usable)
    else:
        score = score_samples(verifier.scorer, found, usable.left, usable.right)
    people = [index.people[int(p)] for p in np.unique(person[usable.images()])]
    scored = _named(index, usable, unusable, score, alike)
    return PhotoScores(scored, heap, people, failures, found)


def _named(
    index: FaceIndex,
    usable: PairList,
    unusable: PairList,
    score: ScoreArray,
    alike: LookAlikes | None,
) -> ScoredPairs:
    """Return scored pairs and those that cannot be scored, with the names of their photos."""
    names = list(index.names())

    def named(side: npt.NDArray[np.int32]) -> list[str]:
        return [names[image] for image in side.tolist()]

    labels = unusable.genuine.tolist(), unusable.fold.tolist()
    return ScoredPairs(
        named(usable.left),
        named(usable.right),
        usable.genuine,
        usable.fold,
        score.astype(np.float64),
        alike,
        failed=failed_pairs(
            [*zip(named(unusable.left), named(unusable.right), *labels, strict=True)]
        ),
    )


def embed_images(
    verifier: Verifier,
    index: FaceIndex,
    images: npt.NDArray[np.integer],
    faces: SubjectFaces = MOST_PROMINENT,
) -> tuple[npt.NDArray[np.float32], dict[int, BadImage]]:
    """Embed photos of an index.

    Args:
        verifier: With an embedding network.
        index: The photos.
        images: int[M], their numbers.
        faces: Which face of each photo is used.

    Returns:
        float32[M, D] in the order of `images`, NaN for photos that cannot be used; and what is
        wrong with those, by number.
    """
    samples = read_images(verifier, index, images, faces)
    found = zip(images.tolist(), samples, strict=True)
    failures = {image: sample.error for image, sample in found if sample.error}
    return _rows_of(samples, verifier.scorer.width), failures


def _rows_of(samples: Sequence[FaceSample], width: int) -> npt.NDArray[np.float32]:
    """Return the embeddings of faces, float32[N, D], NaN where there is none."""
    nothing = np.full(width, np.nan, np.float32)
    rows = [nothing if face.embedding is None else face.embedding for face in samples]
    return np.array(rows, np.float32).reshape(len(rows), width)


def read_images(
    verifier: Verifier, index: FaceIndex, images: npt.NDArray[np.integer], faces: SubjectFaces
) -> list[FaceSample]:
    """Return the face of each of some photos of an index; arguments as for `embed_images`."""
    return verifier.read([faces.face_of(index, image) for image in images.tolist()])


def refuse_unusable(failures: Mapping[int, BadImage], skip_bad: bool) -> None:
    """Raise BadImage for the first photo that cannot be used, unless such photos are left out.

    Args:
        failures: What is wrong with photos, by number.
        skip_bad: Whether they are left out.
    """
    if failures and not skip_bad:
        raise BadImage(
            f"{describe_unusable(failures)}; facepairs data check lists all such photos; replace "
            "them or leave them out",
            "skip_bad",
        )


def describe_unusable(failures: Mapping[int, BadImage]) -> str:
    """Describe the first photo that cannot be used, and count the others.

    Args:
        failures: The error of each unusable photo, by number; at least one.
    """
    first, others = failures[min(failures)], len(failures) - 1
    return f"{first} (and {counted(others, 'more photo')})" if others else str(first)
