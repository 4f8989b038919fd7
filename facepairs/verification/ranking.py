"""`verify PHOTO --against FOLDER`: one photo against all those below a folder, best first."""

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from facepairs.bundles.rates import OperatingPoint, gallery_point
from facepairs.data.index import READABLE, walk
from facepairs.errors import BadData
from facepairs.support.atomic import atomic_file
from facepairs.support.parallel import thread_map
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.verification.false_matches import ExpectedMatches, expected_json, expected_matches
from facepairs.verification.pairs_file import printable
from facepairs.verification.scoring import PairScoring
from facepairs.verification.verdict import Verdict
from facepairs.verification.verifier import Verifier

COLUMNS = ("left", "right", "score", "match", "same_content", "error")


class Match(NamedTuple):
    """A photo that was compared.

    Attributes:
        rank: Its place, from 1.
        path: Below the folder.
        score: Higher is more alike.
        match: score >= threshold; None without a threshold, and for a copy of the photo, of which
            a match would say nothing.
        same_content: Whether its file is a copy of the photo.
    """

    rank: int
    path: str
    score: float
    match: bool | None
    same_content: bool


class Failure(NamedTuple):
    """A photo that could not be used."""

    path: str
    error: str


@dataclass(frozen=True, eq=False)
class Ranking:
    """The photos of a folder by their similarity to one photo.

    There are no probabilities: the best of many is no single comparison.

    Attributes:
        photo: The photo that the others are compared with.
        compared: Best first, equal scores by path.
        failed: Photos that could not be used, by path.
        point: The threshold.
    """

    photo: Path
    compared: list[Match]
    failed: list[Failure]
    point: OperatingPoint

    @property
    def matches(self) -> int | None:
        """How many photos match, copies of the photo left out; None without a threshold."""
        if self.point.threshold is None:
            return None
        return sum(bool(one.match) for one in self.compared)

    @property
    def copies(self) -> int:
        """How many photos have the content of the photo itself."""
        return sum(one.same_content for one in self.compared)

    @property
    def expected(self) -> ExpectedMatches | None:
        """How many strangers would match by chance; None where the errors are not known."""
        return expected_matches(self.point, len(self.compared) - self.copies)

    def to_json(self, top: int) -> dict[str, Any]:
        """Return a plain dict: the `top` best photos, counts, and everything that failed."""
        return {
            "photo": str(self.photo),
            "compared": len(self.compared),
            "matches": self.matches,
            "same_content": self.copies,
            **expected_json(self.expected),
            "operating_point": self.point.to_json(),
            "photos": [match._asdict() for match in self.compared[:top]],
            "failed": [failure._asdict() for failure in self.failed],
        }

    def write(self, out: Path) -> None:
        """Write CSV left,right,score,match,same_content,error, whole or not at all.

        `left` is the photo, `right` a path below the folder; best first, failures last.

        Raises:
            BadData: `out` cannot be written.
        """
        photo = printable(str(self.photo))
        with atomic_file(out) as handle:
            writer = csv.writer(handle)
            writer.writerow(COLUMNS)
            for one in self.compared:
                match = None if one.match is None else int(one.match)
                cells = (one.score, match, int(one.same_content), "")
                writer.writerow((photo, printable(one.path), *cells))
            for path, error in self.failed:
                writer.writerow((photo, printable(path), "", "", "", printable(error)))


def rank_folder(
    verifier: Verifier,
    photo: Path,
    folder: Path,
    point: OperatingPoint | None = None,
    progress: ProgressCallback = ignore_progress,
) -> Ranking:
    """Compare a photo with every other image below a folder.

    Files count by their suffix; links are followed, and leftovers of systems skipped.

    Args:
        verifier: Scores the photos; open it with one thread, as the work is spread over all cores.
        photo: The photo to compare the others with.
        folder: Searched in full depth.
        point: The threshold; None for the model's default, raised until at most one stranger is
            expected to match among all photos, see `gallery_point`.
        progress: Counts images.

    Returns:
        The images by falling score.

    Raises:
        BadImage: The photo cannot be used.
        BadData: The folder cannot be read, or has no other images.
    """
    names = sorted(_find_images(folder, photo))
    if not names:
        raise BadData(f"{folder}: no other image below it ({', '.join(READABLE)})")
    reader, model = verifier.reader(), verifier.bundle
    first = reader.see(str(photo), photo)
    if first.error:  # an unusable one is refused at once
        raise first.error
    named = [(str(path), path) for path in (photo, *(folder / name for name in names))]
    others = np.arange(1, len(named))
    scoring = PairScoring(reader, named, np.zeros_like(others), others)
    found = scoring.collect(
        thread_map(scoring.work, scoring.items()),
        lambda done, _: progress(min(done, len(names)), len(names)),
    )
    seen = [found.photos[number] for number in others.tolist()]
    failed = [
        Failure(name, str(one.error)) for name, one in zip(names, seen, strict=True) if one.error
    ]
    scored = [
        (name, score, one.digest == first.digest)
        for name, one, score in zip(names, seen, found.scores.tolist(), strict=True)
        if not one.error
    ]
    scored.sort(key=lambda one: (-one[1], one[0]))
    point = point or gallery_point(model, verifier.operating_point(), len(scored) or 1)
    compared = [
        Match(rank, name, score, None if copy else Verdict.of(model, score, point).same, copy)
        for rank, (name, score, copy) in enumerate(scored, 1)
    ]
    return Ranking(photo, compared, failed, point)


def _find_images(folder: Path, photo: Path) -> Iterator[str]:
    """Yield the paths below a folder of files with an image's suffix, except the photo itself."""

    def refuse(error: OSError) -> None:
        if error.filename == os.fspath(folder):
            raise BadData(f"{folder}: {error.strerror}; give a folder of photos") from None

    own = os.path.realpath(photo)
    for place, files in walk(folder, refuse):
        for name in files:
            path = place / name
            if name.lower().endswith(READABLE) and os.path.realpath(path) != own:
                yield path.relative_to(folder).as_posix()
