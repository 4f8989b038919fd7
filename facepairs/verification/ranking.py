"""`search`: the faces of a folder's photos by their similarity to one face, best first."""

import os
from pathlib import Path

import msgspec

from facepairs.bundles.error_profile import gallery_point
from facepairs.bundles.rates import OperatingPoint
from facepairs.data.index import READABLE, photos_below
from facepairs.errors import BadData
from facepairs.photos.face_sample import FaceResult
from facepairs.support import console
from facepairs.support.parallel import thread_map
from facepairs.support.results import Result
from facepairs.verification.verifier import Verifier, score_faces


class Match(msgspec.Struct, frozen=True):
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


class Failure(msgspec.Struct, frozen=True):
    """A photo that could not be used."""

    path: str
    error: str


class Ranking(Result, frozen=True, kw_only=True):
    """The photos of a folder by their similarity to the most prominent face of one photo.

    Probabilities are missing because the best of many is not a single comparison.

    Attributes:
        face: The face that is searched for.
        folder: The folder.
        photos: Those that were compared, best first, equal scores by path.
        failed: Photos that could not be used, by path.
        faces: How many faces were compared.
        matches: How many photos match; None without a threshold.
        expected_false_matches: How many strangers would match by chance; None where the errors are
            not known.
        expected_false_matches_interval: The interval of 95 %.
        point: The threshold. In JSON it is called `operating_point`.
        model: The model's place, such as `default`.
    """

    face: FaceResult
    folder: str
    photos: list[Match]
    failed: list[Failure]
    faces: int
    matches: int | None
    expected_false_matches: float | None
    expected_false_matches_interval: tuple[float, float] | None
    point: OperatingPoint = msgspec.field(name="operating_point")
    model: str

    def describe_expected(self) -> str:
        """Return in words: `about 0.6 expected among 622 faces, at most 1.5`."""
        if self.expected_false_matches is None:
            return self.point.describe()
        assert self.expected_false_matches_interval is not None
        _, high = self.expected_false_matches_interval
        return (
            f"about {_rounded(self.expected_false_matches)} expected among {self.faces:,} faces, "
            f"at most {_rounded(high)}; more where people look alike"
        )


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
    faces = sum(match.faces for match in found)
    if point is None:
        point = verifier.operating_point()
        if faces:
            point = gallery_point(verifier.model.profile, point, faces)
    threshold, rate = point.threshold, point.errors.fmr
    photos = [
        msgspec.structs.replace(
            one, rank=rank, match=None if threshold is None else one.score >= threshold
        )
        for rank, one in enumerate(found, 1)
    ]
    return Ranking(
        face=own.to_result(),
        folder=str(folder),
        photos=photos,
        failed=failed,
        faces=faces,
        matches=None if threshold is None else sum(bool(photo.match) for photo in photos),
        expected_false_matches=None if rate is None else faces * rate.value,
        expected_false_matches_interval=None
        if rate is None
        else (faces * rate.interval[0], faces * rate.interval[1]),
        point=point,
        model=verifier.model.place,
    )


def _rounded(number: float) -> str:
    """Return a number with two significant digits, without an exponent."""
    return f"{float(f'{number:.2g}'):,.15g}"
