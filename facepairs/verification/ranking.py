"""`verify PHOTO --against FOLDER`: one photo against all those below a folder, best first."""

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from facepairs.bundles.operating_point import OperatingPoint
from facepairs.data.index import READABLE
from facepairs.errors import BadData, BadImage
from facepairs.support.atomic import atomic_file
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.verification.bulk import CropReader
from facepairs.verification.pairs_file import printable
from facepairs.verification.score_files import score_files
from facepairs.verification.verifier import Verifier

COLUMNS = ("left", "right", "score", "probability", "same", "error")


class Match(NamedTuple):
    """A photo that was compared; `path` is below the folder, the rest as in `Verdict`."""

    path: str
    score: float
    probability: float | None
    same: bool | None


class Failure(NamedTuple):
    """A photo that could not be used."""

    path: str
    error: str


@dataclass(frozen=True, eq=False)
class Ranking:
    """The photos of a folder by their similarity to one photo.

    Attributes:
        photo: The photo that the others are compared with.
        matches: Best first, equal scores by path.
        failed: Photos that could not be used, by path.
    """

    photo: Path
    matches: list[Match]
    failed: list[Failure]

    def to_json(self, top: int) -> dict[str, Any]:
        """Return a plain dict: the `top` best matches, and everything that failed."""
        return {
            "photo": str(self.photo),
            "compared": len(self.matches),
            "matches": [match._asdict() for match in self.matches[:top]],
            "failed": [failure._asdict() for failure in self.failed],
        }

    def write(self, out: Path) -> None:
        """Write CSV left,right,score,probability,same,error, whole or not at all.

        `left` is the photo, `right` a path below the folder; best first, failures last.

        Raises:
            BadData: `out` cannot be written.
        """
        photo = printable(str(self.photo))
        with atomic_file(out) as handle:
            writer = csv.writer(handle)
            writer.writerow(COLUMNS)
            for path, score, probability, same in self.matches:
                cell = None if same is None else int(same)
                writer.writerow((photo, printable(path), score, probability, cell, ""))
            for path, error in self.failed:
                writer.writerow((photo, printable(path), "", "", "", printable(error)))


def rank_folder(
    verifier: Verifier,
    photo: Path,
    folder: Path,
    point: OperatingPoint,
    progress: ProgressCallback = ignore_progress,
) -> Ranking:
    """Compare a photo with every other image below a folder.

    Files count by their suffix; hidden ones are skipped and links to folders are not followed.

    Args:
        verifier: Scores the photos; open it with one thread, as the work is spread over all cores.
        photo: The photo to compare the others with.
        folder: Searched in full depth.
        point: The threshold.
        progress: Counts images.

    Returns:
        The images by falling score.

    Raises:
        BadImage: The photo cannot be used.
        BadData: The folder cannot be read, or has no other images.
    """
    CropReader(verifier, Path())(str(photo))  # refuses an unusable photo before the others are read
    names = sorted(_find_images(folder, photo))
    if not names:
        raise BadData(f"{folder}: no other image below it ({', '.join(READABLE)})")
    errors: dict[int, str] = {}
    scores = score_files(
        verifier,
        [photo, *(folder / name for name in names)],
        np.zeros(len(names), np.int64),
        np.arange(1, len(names) + 1),
        progress=lambda done, _: progress(min(done, len(names)), len(names)),
        errors=errors,
    )
    if 0 in errors:
        raise BadImage(errors[0])
    matches: list[Match] = []
    failed: list[Failure] = []
    for number, (score, name) in enumerate(zip(scores.tolist(), names, strict=True), 1):
        if number in errors:
            failed.append(Failure(name, errors[number]))
        else:
            verdict = verifier.verdict(score, point.threshold)
            matches.append(Match(name, score, verdict.probability, verdict.same))
    matches.sort(key=lambda match: (-match.score, match.path))
    return Ranking(photo, matches, failed)


def _find_images(folder: Path, photo: Path) -> Iterator[str]:
    """Yield the paths below a folder of files with an image's suffix, except the photo itself."""

    def refuse(error: OSError) -> None:
        if error.filename == os.fspath(folder):
            raise BadData(f"{folder}: {error.strerror}; give a folder of photos") from None

    own = os.path.realpath(photo)
    for place, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.startswith(".") or not name.lower().endswith(READABLE):
                continue
            path = Path(place, name)
            if os.path.realpath(path) != own:
                yield path.relative_to(folder).as_posix()
