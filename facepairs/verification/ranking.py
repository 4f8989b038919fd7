"""`search`: the faces of a folder's photos by their similarity to one face, best first."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from facepairs.bundles.error_profile import gallery_point
from facepairs.bundles.rates import OperatingPoint
from facepairs.data.index import READABLE, photos_below
from facepairs.errors import BadData
from facepairs.photos.photo_record import PhotoRecord
from facepairs.support import console
from facepairs.support.parallel import thread_map
from facepairs.verification.scoring import score_faces
from facepairs.verification.verifier import Verifier


class Match(NamedTuple):
    """A photo that was searched, with its most similar face.

    Attributes:
        rank: Its place, from 1.
        path: Below the folder.
        score: Higher is more alike.
        match: score >= threshold; None without a threshold.
        box: The square around the face: left, top and side in pixels; None where the model takes
            whole images.
        faces: How many faces of the photo were compared.
    """

    rank: int
    path: str
    score: float
    match: bool | None
    box: list[int] | None
    faces: int

    def describe_face(self) -> str:
        """Return where the face is, if there are others."""
        return "{0},{1} {2}x{2}".format(*self.box) if self.box and self.faces > 1 else ""


class Failure(NamedTuple):
    """A photo that could not be used."""

    path: str
    error: str


@dataclass(frozen=True, eq=False)
class Ranking:
    """The photos of a folder by their similarity to the most prominent face of one photo.

    There are no probabilities: the best of many is no single comparison.

    Attributes:
        photo: The photo that the others are compared with.
        compared: Best first, equal scores by path.
        failed: Photos that could not be used, by path.
        point: The threshold.
        record: What the photo shows.
    """

    photo: Path
    compared: list[Match]
    failed: list[Failure]
    point: OperatingPoint
    record: PhotoRecord

    @property
    def matches(self) -> int | None:
        """How many photos match; None without a threshold."""
        if self.point.threshold is None:
            return None
        return sum(bool(one.match) for one in self.compared)

    @property
    def faces(self) -> int:
        """How many faces were compared."""
        return sum(one.faces for one in self.compared)

    @property
    def expected(self) -> tuple[float, float, float] | None:
        """How many strangers would match by chance, and the ends of the interval of 95 %.

        None where the errors are not known.
        """
        rate = self.point.errors.fmr
        if rate is None:
            return None
        return self.faces * rate.value, self.faces * rate.interval[0], self.faces * rate.interval[1]

    def describe_expected(self) -> str:
        """Return in words: `about 0.6 expected among 622 faces, at most 1.5`."""
        if self.expected is None:
            return self.point.describe()
        number, _, high = map(_rounded, self.expected)
        return (
            f"about {number} expected among {self.faces:,} faces, at most {high}; more where "
            "people look alike"
        )

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict: counts, all photos, and everything that failed."""
        return {
            "photo": str(self.photo),
            "compared": len(self.compared),
            "faces": self.faces,
            "matches": self.matches,
            "expected_false_matches": self.expected and self.expected[0],
            "expected_false_matches_interval": self.expected and list(self.expected[1:]),
            "operating_point": self.point.to_json(),
            "photos": [match._asdict() for match in self.compared],
            "failed": [failure._asdict() for failure in self.failed],
        }


def rank_folder(
    verifier: Verifier,
    photo: Path,
    folder: Path,
    point: OperatingPoint | None = None,
) -> Ranking:
    """Compare the most prominent face of a photo with the faces found in all others of a folder.

    Files count by their suffix; links are followed, and leftovers of systems skipped.

    Args:
        verifier: Scores the faces; open it with one thread, as the work is spread over all cores.
        photo: The photo to compare the others with.
        folder: Searched in full depth.
        point: The threshold; None for the model's default, raised until at most one stranger is
            expected to match among all faces, see `gallery_point`.

    Returns:
        The photos by falling score of their most similar face.

    Raises:
        BadImage: The photo cannot be used.
        BadData: The folder cannot be read, or has no other images.
    """
    reader, scorer = verifier.reader(), verifier.scorer
    (own,) = reader.read([(str(photo), photo)])
    if own.error:
        raise own.error
    itself = os.path.realpath(photo)
    names = sorted(n for n in photos_below(folder) if os.path.realpath(folder / n) != itself)
    if not names:
        raise BadData(f"{folder}: has no other images ({', '.join(READABLE)})")

    def best_of(name: str) -> Match | Failure:
        path = folder / name
        faces = reader.read([(str(path), path)], every=True)
        if faces[0].error:
            return Failure(name, str(faces[0].error))
        scores = score_faces(scorer, [own] * len(faces), faces)
        best = int(scores.argmax())
        return Match(0, name, float(scores[best]), None, faces[best].box, len(faces))

    found: list[Match] = []
    failed: list[Failure] = []
    progress = console.progress("searching photos")
    for done, one in enumerate(thread_map(best_of, names), 1):
        if isinstance(one, Failure):
            failed.append(one)
        else:
            found.append(one)
        progress(done, len(names))
    found.sort(key=lambda one: (-one.score, one.path))
    if point is None:
        faces = sum(one.faces for one in found)
        point = gallery_point(verifier.model.profile, verifier.operating_point(), faces or 1)
    threshold = point.threshold
    compared = [
        one._replace(rank=rank, match=None if threshold is None else one.score >= threshold)
        for rank, one in enumerate(found, 1)
    ]
    return Ranking(photo, compared, failed, point, own.to_record())


def _rounded(number: float) -> str:
    """Return a number with two significant digits, without an exponent."""
    return f"{number:,.0f}" if number >= 10 else f"{float(f'{number:.2g}'):g}"
