"""`Identification`: the person of a gallery that a photo shows, or none."""

from collections.abc import Iterable

import msgspec
import numpy as np

from facepairs.bundles.rates import OperatingPoint, Rate
from facepairs.bundles.scorer import ScoreArray
from facepairs.gallery.vectors import Vectors
from facepairs.photos.face_sample import FaceResult, FaceSample
from facepairs.support.results import Result
from facepairs.support.words import counted
from facepairs.verification.verdict import threshold_text
from facepairs.verification.verifier import Verifier

# Photos of LFW with several faces, 100 to 1,000 enrolled people, four draws: where .1 is promised,
# .048 to .078 of main faces are misidentified and .051 to .131 of unclear ones behind them;
# where .01 is, .005 to .011 and .002 to .015. Of all faces behind the main one .067 to .133 and
# .005 to .025 are, some of them correctly: clear ones show enrolled people too often to tell.
BACKGROUND = (
    "the errors were measured on main faces; faces behind them are misidentified more often, "
    "up to 2.5 times as often as promised"
)


class Candidate(msgspec.Struct, frozen=True):
    """A person of the gallery; `score` is that of the person's most similar photo."""

    rank: int
    name: str
    score: float
    match: bool | None
    photos: int


class Identification(Result, frozen=True, kw_only=True):
    """The result of `Gallery.identify`.

    Attributes:
        known: Whether the best candidate reaches the threshold; None without a threshold.
        name: The person's name; None if unknown, or without a threshold.
        candidates: The most similar people, best first.
        face: The face that was compared; of several, the most prominent.
        people: Number of people in the gallery.
        photos: Number of their photos.
        max_fpir: The false-positive identification rate that was asked for; None for a threshold.
        fpir: At most this share of strangers would be misidentified; None if not measured. It was
            measured on the main faces of photos; see BACKGROUND for others.
        impostor_pairs: Number of pairs that the errors were measured on; None without errors.
        point: The threshold, and the errors of a single comparison. In JSON it is called
            `operating_point`.
        model: The model's place, such as `default`.
        description: The result in rows of text; only if it was asked for.
    """

    known: bool | None
    name: str | None
    candidates: tuple[Candidate, ...]
    face: FaceResult
    people: int
    photos: int
    max_fpir: float | None
    fpir: Rate | None
    impostor_pairs: int | None
    point: OperatingPoint = msgspec.field(name="operating_point")
    model: str
    description: list[tuple[str, str]] | msgspec.UnsetType = msgspec.UNSET

    @property
    def words(self) -> str:
        """The name, `unknown`, or `none: no threshold`."""
        return "none: no threshold" if self.known is None else self.name or "unknown"

    def describe_errors(self) -> str:
        """Return in words how often a stranger would be misidentified."""
        if self.fpir is None:
            return "unknown: this model brings no measured errors"
        shares = (self.fpir.value, self.fpir.interval[1])
        rate, high = (f"{float(f'{100 * share:.2g}'):g}" for share in shares)
        return (
            f"at most {rate} in 100 strangers would be misidentified, interval to {high} "
            f"({self.impostor_pairs or 0:,} pairs: {self.point.errors.measured_on})"
        )

    def rows(self) -> list[tuple[str, str]]:
        """Return who it is, and the errors to expect, in rows of text."""
        return [("person", self.words), *self.error_rows(), ("photo", self.face.description)]

    def error_rows(self) -> list[tuple[str, str]]:
        """Return the errors to expect, the same for all faces of a photo, in rows of text."""
        size = f"{counted(self.people, 'person', 'people')}, {counted(self.photos, 'photo')}"
        return [
            ("errors", self.describe_errors()),
            ("threshold", threshold_text(self.point)),
            ("gallery", size),
        ]


class PhotoIdentification(Result, frozen=True, kw_only=True):
    """Who the faces of a photo show, as `facepairs gallery identify` prints it as JSON.

    Attributes:
        photo: The photo.
        gallery: The gallery.
        faces: A result for each face, the most prominent first.
    """

    photo: str
    gallery: str
    faces: list[Identification]


def _misidentified(point: OperatingPoint, photos: int) -> Rate | None:
    """Return at most which share of strangers is misidentified among so many enrolled photos."""
    rate = point.errors.fmr
    if rate is None:
        return None
    value, low, high = (min(1.0, photos * x) for x in (rate.value, *rate.interval))
    return Rate(value, (low, high))


def identify_among(
    vectors: Vectors,
    verifier: Verifier,
    faces: list[FaceSample],
    point: OperatingPoint,
    max_fpir: float | None,
    top: int,
) -> list[Identification]:
    """Identify faces among people.

    Args:
        vectors: Of a gallery that is not empty.
        verifier: Embeds the faces.
        faces: From `Verifier.detect`.
        point: The threshold.
        max_fpir: As in `Identification`.
        top: Number of candidates to return.
    """
    errors, found = verifier.model.profile.errors, []
    for face, row in zip(faces, verifier.represent(faces), strict=True):
        candidates = _best_candidates(vectors, vectors.best(row), point, top)
        found.append(
            Identification(
                known=candidates[0].match,
                name=candidates[0].name if candidates[0].match else None,
                candidates=candidates,
                face=face.to_result(),
                people=len(vectors.people),
                photos=len(vectors),
                max_fpir=max_fpir,
                fpir=_misidentified(point, len(vectors)),
                impostor_pairs=errors.impostor_pairs if errors else None,
                point=point,
                model=verifier.model.place,
            )
        )
    return found


def _best_candidates(
    vectors: Vectors, scores: ScoreArray, point: OperatingPoint, top: int
) -> tuple[Candidate, ...]:
    """Return the people with the highest scores, best first."""
    people = vectors.people
    best_first: Iterable[int] = np.argsort(-scores, kind="stable")[: max(1, top)].tolist()
    return tuple(
        Candidate(
            rank=rank,
            name=people[number],
            score=float(scores[number]),
            match=None if point.threshold is None else float(scores[number]) >= point.threshold,
            photos=vectors.photos_of(number),
        )
        for rank, number in enumerate(best_first, 1)
    )
