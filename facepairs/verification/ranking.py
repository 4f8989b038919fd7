"""`verify PHOTO --against FOLDER`: one photo against all those below a folder, best first."""

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.bundles.thresholds import OperatingPoint
from facepairs.errors import BadData, BadImage
from facepairs.support.atomic import atomic_file
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.verification.bulk import score_files
from facepairs.verification.pairs_file import printable
from facepairs.verification.verifier import Verdict, Verifier

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff")
COLUMNS = ("left", "right", "score", "probability", "same", "error")
IMAGES_AT_ONCE = 4096  # whose embeddings are in memory at the same time


@dataclass(frozen=True, eq=False)
class Ranking:
    """The photos of a folder by their similarity to one photo, best first.

    Attributes:
        photo: The photo that the others are compared with.
        names: Paths below the folder, with `/`.
        verdicts: One for each name.
        failed: (name, error) of photos that could not be used, by name.
    """

    photo: Path
    names: list[str]
    verdicts: list[Verdict]
    failed: list[tuple[str, str]]

    def to_json(self, top: int) -> dict[str, Any]:
        """Return a plain dict: the `top` best matches, and everything that failed."""
        best = list(zip(self.names, self.verdicts, strict=True))[:top]
        return {
            "photo": str(self.photo),
            "compared": len(self.names),
            "matches": [
                {
                    "path": name,
                    "score": verdict.score,
                    "probability": verdict.probability,
                    "same": verdict.same,
                }
                for name, verdict in best
            ],
            "failed": [{"path": name, "error": error} for name, error in self.failed],
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
            for name, verdict in zip(self.names, self.verdicts, strict=True):
                same = None if verdict.same is None else int(verdict.same)
                writer.writerow(
                    (photo, printable(name), verdict.score, verdict.probability, same, "")
                )
            for name, error in self.failed:
                writer.writerow((photo, printable(name), "", "", "", printable(error)))


def rank_folder(
    verifier: Verifier,
    photo: Path,
    folder: Path,
    point: OperatingPoint,
    progress: ProgressCallback = ignore_progress,
    framing: bool = True,
) -> Ranking:
    """Compare a photo with every other image below a folder.

    Files count by their suffix; hidden ones are skipped and links to folders are not followed.

    Args:
        verifier: Scores the photos; open it with one thread, as the work is spread over all cores.
        photo: The photo to compare the others with.
        folder: Searched in full depth.
        point: The threshold.
        progress: Counts images.
        framing: Find and frame the largest face of each photo, as `Verifier.verify` does.

    Returns:
        The images by falling score, equal scores by name.

    Raises:
        BadImage: The photo cannot be used.
        BadData: The folder cannot be read, or has no other images.
    """
    verifier.crop(photo, framing=framing)  # refuses an unusable photo before all others are read
    names = sorted(_find_images(folder, photo))
    if not names:
        raise BadData(f"{folder}: no other image below it ({', '.join(SUFFIXES)})")
    scored: list[tuple[float, str]] = []
    failed: list[tuple[str, str]] = []
    for start in range(0, len(names), IMAGES_AT_ONCE):
        some = names[start : start + IMAGES_AT_ONCE]
        errors: dict[int, str] = {}
        scores = score_files(
            verifier,
            [photo, *(folder / name for name in some)],
            np.zeros(len(some), np.int64),
            np.arange(1, len(some) + 1),
            framing=framing,
            progress=lambda done, _, start=start: progress(  # type: ignore[misc]
                min(start + done, len(names)), len(names)
            ),
            errors=errors,
        )
        if 0 in errors:
            raise BadImage(errors[0])
        for number, (score, name) in enumerate(zip(scores.tolist(), some, strict=True), 1):
            if number in errors:
                failed.append((name, errors[number]))
            else:
                scored.append((score, name))
    scored.sort(key=lambda item: (-item[0], item[1]))
    verdicts = [verifier.verdict(score, point.threshold) for score, _ in scored]
    return Ranking(photo, [name for _, name in scored], verdicts, failed)


def _find_images(folder: Path, photo: Path) -> Iterator[str]:
    """Yield the paths below a folder of files with an image's suffix, except the photo itself."""

    def refuse(error: OSError) -> None:
        if error.filename == os.fspath(folder):
            raise BadData(f"{folder}: {error.strerror}; give a folder of photos") from None

    own = os.path.realpath(photo)
    for place, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.startswith(".") or not name.lower().endswith(SUFFIXES):
                continue
            path = Path(place, name)
            if os.path.realpath(path) != own:
                yield path.relative_to(folder).as_posix()
