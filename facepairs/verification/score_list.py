"""A CSV of pairs in, a CSV of scores out.

The file is read twice: for the pairs, and to write its rows with their scores. Memory holds about
1 KB for each distinct photo and some bytes for each row. `ListScoring` prepares the work; whoever
does it, threads here or other machines, the output has the same bytes.
"""

import csv
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from facepairs.bundles.measured import EQUAL_PRIORS, check_prior
from facepairs.bundles.rates import OperatingPoint
from facepairs.data.pairs import person_name
from facepairs.errors import BadData
from facepairs.faces.photo_cache import PhotoCache, photo_cache
from facepairs.support import console
from facepairs.support.checksum import file_stamp
from facepairs.support.parallel import batches, thread_map
from facepairs.verification.loading import model_name
from facepairs.verification.pairs_file import (
    SAME_CONTENT,
    SIDES,
    ListedPair,
    PairsFile,
    printable,
)
from facepairs.verification.photos import PhotoFolder, PhotoReader, SeenPhoto
from facepairs.verification.provenance import provenance_of, scores_file
from facepairs.verification.scorer import ScoreArray
from facepairs.verification.scoring import Done, Indices, PairScores, PairScoring
from facepairs.verification.verifier import Verifier

CHUNK_ROWS = 1024
FACE_COLUMNS = tuple(f"{side}_{cell}" for side in SIDES for cell in ("box", "faces", "hints"))
RESULT_COLUMNS = ("score", "probability", "same", *FACE_COLUMNS, "error")
NO_PHOTO = SeenPhoto("")


@dataclass
class PairsReport:
    """Counts of a run over a pairs file.

    Attributes:
        pairs: Rows of the file.
        failed: Rows without a score.
        images: Distinct images.
        images_failed: Images that cannot be used.
        several_faces: Images with several faces, of which the most prominent was used.
        hints: Images by kind of hint, see `faces.hints`.
        same_content: Pairs of a photo and itself, or a copy: that these match says nothing.
        pairs_with_known_people: Scored pairs with people on whom the model was trained or
            calibrated, as the folders of the photos name them.
        same: Pairs that were accepted; None without a threshold.
        seconds: Duration of the run.
        first_error: What is wrong with the first row without a score.
    """

    pairs: int
    images: int
    images_failed: int
    several_faces: int
    hints: dict[str, int]
    same: int | None
    failed: int = 0
    same_content: int = 0
    pairs_with_known_people: int = 0
    seconds: float = 0.0
    first_error: str = ""


def score_list(
    verifier: Verifier,
    pairs: Path,
    out: Path,
    point: OperatingPoint,
    root: Path | None = None,
    prior: float = EQUAL_PRIORS,
) -> PairsReport:
    """Score every pair of a CSV file into another CSV file, and write where the scores come from.

    What is found in photos is kept in the user's cache of photos: after an interruption the same
    call goes on. A pair network computes its scores anew.

    Args:
        verifier: Scores the pairs; open it with one thread, as the work is spread over all cores.
        pairs: CSV file with the columns left,right[,genuine][,fold].
        out: CSV file to write: the pairs in their order with score, probability, same (1 or 0),
            box, number of faces and hints of each side, and error, which is empty or what is wrong
            with the line or its images. OUT.json has the provenance.
        point: The threshold.
        root: Folder that the paths count from, None for the folder of `pairs`.
        prior: The prior of the probabilities.

    Raises:
        BadConfig: The prior is outside (0, 1).
        BadData: The pairs file cannot be used as a whole, or `out` cannot be written.
    """
    job = ListScoring(
        verifier, pairs, out, point, local_photos(pairs, root), prior, cache=photo_cache()
    )
    return job.finish(thread_map(job.scoring.work, job.scoring.items()))


def local_photos(pairs: Path | str, root: Path | None) -> PhotoFolder:
    """Return the folder that the paths in `pairs` count from; raises BadData if it is none."""
    root = Path(pairs).parent if root is None else root
    if not root.is_dir():
        raise BadData(f"{root}: not a folder; give the one that the paths in {pairs} count from")
    return PhotoFolder(root)


class ListScoring:
    """Scoring a list: do `scoring.work` on each of `scoring.items()`, then `finish`.

    Args:
        verifier, pairs, out, point, prior: As for `score_list`.
        photos: The photos that `pairs` names.
        cache: Where photos are looked up and stored; None for nowhere.

    Raises:
        FacepairsError: What `score_list` raises.
    """

    def __init__(
        self,
        verifier: Verifier,
        pairs: Path,
        out: Path,
        point: OperatingPoint,
        photos: PhotoFolder,
        prior: float,
        cache: PhotoCache | None = None,
    ) -> None:
        self._started = time.monotonic()
        check_prior(prior)
        self._model, self._out, self._point, self._prior = verifier.bundle, out, point, prior
        self._origin = provenance_of(
            self._model, model_name(self._model), str(pairs), point, prior=prior
        )
        self._file, self._stamp = PairsFile(pairs), file_stamp(pairs)
        names, left, right = number_photos(self._file)
        reader = PhotoReader(self._model, verifier.scorer, cache, open=photos.read)
        named = [(photos.title(name), name) for name in names]
        self.scoring = PairScoring(reader, named, left, right)

    def finish(self, work_done: Iterable[Done]) -> PairsReport:
        """Collect the results of the work and write the scores.

        Raises:
            BadData: The pairs file has changed, or `out` cannot be written.
        """
        found = self.scoring.collect(work_done)
        report = self._count(found)
        progress, done = console.progress("writing scores"), 0
        with scores_file(self._out, self._origin) as handle:
            writer = csv.writer(handle)
            writer.writerow((*SIDES, *self._file.kept, *RESULT_COLUMNS))
            for rows in batches(self._file.rows(), CHUNK_ROWS):
                if file_stamp(self._file.path) != self._stamp:
                    raise BadData(f"{self._file.path}: changed while it was read; run it again")
                writer.writerows(self._output_rows(rows, done, found, report))
                done += len(rows)
                progress(done, report.pairs)
        report.seconds = time.monotonic() - self._started
        return report

    def _count(self, found: PairScores) -> PairsReport:
        records = [one.record for one in found.photos.values() if one.record and not one.error]
        hints = Counter(hint.kind for record in records for hint in record.hints)
        return PairsReport(
            pairs=len(self.scoring.left),
            images=len(self.scoring.photos),
            images_failed=sum(one.error is not None for one in found.photos.values()),
            several_faces=sum(len(record.faces or ()) > 1 for record in records),
            hints=dict(sorted(hints.items())),
            same=None if self._point.threshold is None else 0,
        )

    def _output_rows(
        self, rows: list[ListedPair], start: int, found: PairScores, report: PairsReport
    ) -> Iterator[Iterable[object]]:
        part = slice(start, start + len(rows))
        scores = found.scores[part]
        report.pairs_with_known_people += self._known_pairs(rows, scores)
        results = self._result_cells(scores, report)
        pairs = zip(
            self.scoring.left[part].tolist(), self.scoring.right[part].tolist(), strict=True
        )
        for row, pair, result in zip(rows, pairs, results, strict=True):
            left, right = (found.photos.get(number, NO_PHOTO) for number in pair)
            problems = dict.fromkeys(str(one.error) for one in (left, right) if one.error)
            error = row.error or "; ".join(problems)
            report.failed += bool(error)
            report.first_error = report.first_error or error
            copies = not error and left.digest == right.digest
            report.same_content += copies
            more = [SAME_CONTENT] if copies else []
            cells = [face_cells(one, more) for one in (left, right)]
            names = map(printable, (row.left, row.right, *row.kept))
            values = ("", "", "") if error else result
            yield chain(names, values, chain.from_iterable(cells), (printable(error),))

    def _known_pairs(self, rows: list[ListedPair], scores: ScoreArray) -> int:
        """Count the scored pairs with people on whom the model was trained or calibrated."""
        scored = [row for row, score in zip(rows, scores, strict=True) if not np.isnan(score)]
        people = [{person_name(row.left), person_name(row.right)} for row in scored]
        names = list(set().union(*people))
        known = {name for name, knows in zip(names, self._model.knows(names), strict=True) if knows}
        return sum(not known.isdisjoint(pair) for pair in people)

    def _result_cells(
        self, scores: ScoreArray, report: PairsReport
    ) -> Iterator[tuple[object, object, object]]:
        """Return score, probability and same of each row; unknown ones are empty."""
        values, curve = scores.astype(np.float64), self._model.calibration
        probability: Iterable[object] = [""] * len(values)
        same: Iterable[object] = probability
        if curve is not None:
            probability = curve.probability(values, self._prior).tolist()
        if self._point.threshold is not None and report.same is not None:
            accepted = values >= self._point.threshold
            report.same += int(accepted.sum())
            same = accepted.astype(np.int8).tolist()
        return zip(values.tolist(), probability, same, strict=True)


def face_cells(photo: SeenPhoto, more_hints: list[str]) -> tuple[str, str, str]:
    """Return a photo's box "left top side", number of faces, and kinds of hints."""
    record = photo.record
    if record is None or photo.error:
        return "", "", ""
    hints = [*(hint.kind for hint in record.hints), *more_hints]
    faces = "" if record.faces is None else str(len(record.faces))
    return " ".join(map(str, photo.box or ())), faces, " ".join(hints)


def number_photos(file: PairsFile) -> tuple[list[str], Indices, Indices]:
    """Number the distinct photos of a list in their order.

    Returns:
        Their names, and for each row the numbers of its photos, int32[N] each: -1 where the row is
        malformed.

    Raises:
        BadData: The list is empty, or cannot be read.
    """
    numbers: dict[str, int] = {}
    left, right = array("i"), array("i")
    for row in file.rows():
        for side, name in ((left, row.left), (right, row.right)):
            side.append(-1 if row.error else numbers.setdefault(name, len(numbers)))
    if not left:
        raise BadData(f"{file.path}: no pairs below the header")
    return list(numbers), np.array(left, np.int32), np.array(right, np.int32)
