"""`verify PHOTO --against FOLDER`: one photo against all those below a folder, best first."""

import csv
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.bundles.thresholds import OperatingPoint
from facepairs.errors import BadData
from facepairs.support.atomic import atomic_file
from facepairs.support.parallel import batches, in_order
from facepairs.verification.bulk import Photos, Readable
from facepairs.verification.pairs_file import printable
from facepairs.verification.scorer import BATCH_CROPS, ScoreArray
from facepairs.verification.verifier import Verdict, Verifier

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff")
COLUMNS = ("left", "right", "score", "probability", "same", "error")


@dataclass(frozen=True, eq=False)
class Ranking:
    """How alike the photos of a folder are to one photo, best first.

    `names` are paths below the folder with `/`, `verdicts` go with them; `failed` are (name, error)
    of photos that could not be used, by name.
    """

    photo: Path
    names: list[str]
    verdicts: list[Verdict]
    failed: list[tuple[str, str]]

    def to_json(self, top: int) -> dict[str, Any]:
        """Give a plain dict: the `top` best matches, and everything that failed."""
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

        `left` is the photo, `right` a path below the folder; best first, failures last. Raises
        BadData where `out` cannot be written.
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


def verify_against(
    verifier: Verifier,
    photo: Path,
    folder: Path,
    point: OperatingPoint,
    progress: Callable[[int, int], None] | None = None,
    framing: bool = True,
) -> Ranking:
    """Compare a photo with every image below a folder, however deep, but not with itself.

    Files count by their suffix; hidden ones are passed over and links to folders not followed.
    Images are read in threads over all cores, so give a verifier of one thread; `progress(done,
    total)` counts them. Equal scores come by name. Faces are framed as in `Verifier.verify`, the
    largest of each image, or not at all without `framing`. Raises BadImage where the photo cannot
    be used, BadData for a folder without images.
    """
    probe = verifier.crop(photo, framing=framing)[None]
    names = sorted(_images(folder, photo))
    if not names:
        raise BadData(f"{folder}: no other image below it ({', '.join(SUFFIXES)})")
    score = _scorer(verifier, probe)

    photos = Photos(verifier, folder, names, framing)

    def work(some: list[int]) -> tuple[Readable, ScoreArray]:
        found = photos.read(some)
        return found, score(found.crops)

    scored: list[tuple[float, str]] = []
    failed: list[tuple[str, str]] = []
    for found, scores in in_order(work, batches(range(len(names)), BATCH_CROPS)):
        readable = (names[image] for image in found.images)
        scored += zip(scores.tolist(), readable, strict=True)
        failed += [(names[image], error) for image, error in found.errors.items()]
        if progress:
            progress(len(scored) + len(failed), len(names))
    scored.sort(key=lambda item: (-item[0], item[1]))
    verdicts = [verifier.verdict(value, point.threshold) for value, _ in scored]
    return Ranking(photo, [name for _, name in scored], verdicts, failed)


def _scorer(
    verifier: Verifier, probe: npt.NDArray[np.uint8]
) -> Callable[[npt.NDArray[np.uint8]], ScoreArray]:
    """Give a function from crops to their scores against the probe, which is embedded once."""
    scorer = verifier.scorer
    if verifier.bundle.kind != "embedding":
        return lambda crops: scorer.score_pairs(np.repeat(probe, len(crops), axis=0), crops)
    row = scorer.embed(probe)
    return lambda crops: scorer.compare(
        np.repeat(row, len(crops), axis=0), scorer.embed(crops).reshape(len(crops), row.shape[1])
    )


def _images(folder: Path, photo: Path) -> Iterator[str]:
    """Yield the paths below a folder of the files that look like images, the photo itself not."""

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
