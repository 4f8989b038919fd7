"""Score pairs of an index, and tell which strangers look alike: the one way to measured scores."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.bundles.error_profile import ErrorProfile
from facepairs.bundles.model import Model
from facepairs.data.groups import PeopleGroups
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import distinct_impostors
from facepairs.errors import BadImage
from facepairs.evaluation.fitting import calibrate
from facepairs.evaluation.lookalikes import LookAlikes, find_lookalikes
from facepairs.evaluation.metrics.arrays import Bools, Ints
from facepairs.evaluation.scores import ScoreTable
from facepairs.photos.face_sample import FaceSample
from facepairs.photos.photo import read_image_file
from facepairs.photos.subject_faces import MOST_PROMINENT, SubjectFaces
from facepairs.support import console
from facepairs.support.words import counted
from facepairs.verification.scoring import score_samples
from facepairs.verification.verifier import Verifier

CHUNK = 4096  # pairs compared at a time
IMPOSTORS = 30_000  # a tenth of them look alike, which suffices for an FMR of .001
MOST_IMPOSTORS = 300_000  # of many people, as large galleries need rarer errors


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


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Pairs of an index with their scores.

    Attributes:
        index: The photos.
        pairs: N pairs whose photos can be used.
        score: float64[N].
        alike: Strangers who look alike; None where that is not known.
        heap: The embeddings that grouping is measured with; None for a network that has none.
        families: The people's families; None if all are unrelated.
        failures: What is wrong with photos that cannot be used, by number.
    """

    index: FaceIndex
    pairs: PairList
    score: npt.NDArray[np.float64]
    alike: LookAlikes | None
    heap: FaceHeap | None = None
    families: PeopleGroups | None = None
    failures: Mapping[int, BadImage] = field(default_factory=dict)

    def without_photos(self, unusable: Collection[int]) -> "ScoredPairs":
        """Return them without the pairs that show some photos, by number."""
        keep = self.pairs.show_none_of(unusable)
        alike = self.alike and self.alike.where(keep)
        return replace(self, pairs=self.pairs.where(keep), score=self.score[keep], alike=alike)

    def table(self) -> ScoreTable:
        """Return them with the names of their photos."""
        pairs, names = self.pairs, list(self.index.names())
        left, right = ([names[i] for i in side.tolist()] for side in (pairs.left, pairs.right))
        return ScoreTable(left, right, pairs.genuine, pairs.fold, self.score, self.alike)

    def calibrate(self, measured_on: str) -> ErrorProfile:
        """Fit a verifier's probability and thresholds to them; see `fitting.calibrate`."""
        return calibrate(
            self.pairs.genuine,
            self.score,
            lookalike=self.alike,
            people=self.people,
            families=self.relatives,
            measured_on=measured_on,
        )

    @property
    def people(self) -> tuple[Ints, Ints]:
        """The people on the left and on the right, int64[N] each."""
        person = self.index.person_of.astype(np.int64)
        return person[self.pairs.left], person[self.pairs.right]

    @property
    def relatives(self) -> tuple[Ints, Ints] | None:
        """The families of the people on the left and on the right; None where none are known."""
        if self.families is None:
            return None
        left, right = ([self.index.people[int(p)] for p in side] for side in self.people)
        return self.families.numbers(left, right)

    @property
    def names(self) -> list[str]:
        """The names of the people in the pairs."""
        return [self.index.people[int(p)] for p in np.unique(np.concatenate(self.people))]


def score_pairs(
    verifier: Verifier, index: FaceIndex, pairs: PairList, faces: SubjectFaces = MOST_PROMINENT
) -> ScoredPairs:
    """Score pairs; with an embedding network, also tell who look alike.

    Args:
        verifier: The verifier that scores them.
        index: The photos.
        pairs: The pairs.
        faces: Which face of each photo is used.
    """
    images, person = pairs.images(), index.person_of.astype(np.int64)
    if not verifier.model.network.embeds:
        samples = read_images(verifier, index, images, faces)
        found = dict(zip(images.tolist(), samples, strict=True))
        failures = {image: sample.error for image, sample in found.items() if sample.error}
        pairs = pairs.where(pairs.show_none_of(failures))
        score = score_samples(verifier.scorer, found, pairs.left, pairs.right)
        return ScoredPairs(index, pairs, score.astype(np.float64), None, failures=failures)
    rows, failures = embed_images(verifier, index, images, faces)
    embeddings = np.full((len(index), rows.shape[1]), np.nan, np.float32)
    embeddings[images] = rows
    pairs = pairs.where(pairs.show_none_of(failures))
    parts = [
        verifier.compare(embeddings[chunk.left], embeddings[chunk.right])
        for chunk in (pairs.where(slice(at, at + CHUNK)) for at in range(0, len(pairs), CHUNK))
    ]
    scores = np.concatenate([np.zeros(0, np.float32), *parts]).astype(np.float64)
    alike = find_lookalikes(embeddings, person, pairs)
    known: Bools = np.asarray(np.isfinite(embeddings).all(axis=1))
    heap = FaceHeap(embeddings[known], person[known], verifier.model.profile.cohort)
    return ScoredPairs(index, pairs, scores, alike, heap, failures=failures)


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
    rows = np.full((len(images), verifier.scorer.width), np.nan, np.float32)
    failures: dict[int, BadImage] = {}
    for place, sample in enumerate(samples):
        if sample.error:
            failures[int(images[place])] = sample.error
        elif sample.embedding is not None:
            rows[place] = sample.embedding
    return rows, failures


def read_images(
    verifier: Verifier, index: FaceIndex, images: npt.NDArray[np.integer], faces: SubjectFaces
) -> list[FaceSample]:
    """Return the face of each of some photos of an index; arguments as for `embed_images`."""
    return verifier.read([faces.face_of(index, image) for image in images.tolist()])


def add_impostors_for(
    models: Sequence[Model], index: FaceIndex, pairs: PairList, count: int | None = None
) -> PairList:
    """Add impostor pairs as `add_impostors` does, unless a network has to score each of them."""
    if all(model.network.embeds for model in models):
        return add_impostors(index, pairs, count=count)
    return pairs


def add_impostors(
    index: FaceIndex, pairs: PairList, seed: int = 0, count: int | None = None
) -> PairList:
    """Return the genuine pairs of `pairs` and many impostor pairs of the photos in it.

    With an embedding network they cost next to nothing, and rare errors need many of them.

    Args:
        index: The photos.
        pairs: Pairs of at least two people.
        seed: From 0 to 2**63 - 1.
        count: How many, or fewer where fewer exist; None for one of every two people, but from
            30,000 to 300,000.
    """
    images = pairs.images()  # in the order of people, as the index has them
    first = np.append(np.unique(index.person_of[images], return_index=True)[1], len(images)).astype(
        np.int64
    )
    people = len(first) - 1
    if count is None:
        count = min(max(IMPOSTORS, people * (people - 1) // 2), MOST_IMPOSTORS)
    drawn = distinct_impostors(first, np.arange(people), count, seed)
    genuine = pairs.where(pairs.genuine)
    return PairList.of(
        np.concatenate([genuine.left, images[drawn.left]]),
        np.concatenate([genuine.right, images[drawn.right]]),
        np.repeat([True, False], [len(genuine), len(drawn)]),
    )


def leave_out_copies(index: FaceIndex, pairs: PairList) -> PairList:
    """Return the pairs without those of a file and its copy, of which a message tells.

    They are no two photos of one person, and no strangers either.
    """
    left, right = pairs.left, pairs.right
    copies = index.sizes[left] == index.sizes[right]
    images = np.unique(np.concatenate([left[copies], right[copies]])).tolist()
    content = {image: _content(index, image) for image in images}
    copies[copies] = [
        content[one] == content[other]
        for one, other in zip(left[copies].tolist(), right[copies].tolist(), strict=True)
    ]
    if copies.any():
        first = int(np.flatnonzero(copies)[0])
        names = [index.name(int(side[first])) for side in (pairs.left, pairs.right)]
        console.log(
            f"warning: left out: {counted(int(copies.sum()), 'pair')} of identical files, such as "
            f"{' and '.join(names)}"
        )
    return pairs.where(~copies)


def _content(index: FaceIndex, image: int) -> str:
    """Return a key that copies of a photo share: the SHA-256 of its file."""
    try:
        return hashlib.sha256(read_image_file(index.path(image))).hexdigest()
    except OSError:  # whoever reads the photos says what is wrong
        return index.name(image)


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
