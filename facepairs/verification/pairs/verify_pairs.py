"""`score`: a CSV of pairs in, a CSV of scores out, in memory that does not grow with rows.

The file is read three times: for the images it names, for the pairs to compute, and to write its
rows with their scores. `pairs_run` prepares it; whoever does the work of the run, threads here or
other machines, the output has the same bytes. Memory holds some chunks of rows, and a byte per
image that tells whether it is done (per pair for a pair network). The distinct names and the
computed values are on disk.
"""

import csv
import hashlib
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.bundles.calibration import EQUAL_PRIORS, check_prior
from facepairs.bundles.rates import OperatingPoint
from facepairs.data.pairs import person_name
from facepairs.errors import BadData
from facepairs.faces.align import FaceCells
from facepairs.faces.detector import DETECTOR
from facepairs.support.atomic import scratch_folder
from facepairs.support.checksum import file_sha256
from facepairs.support.parallel import batches, thread_map
from facepairs.support.places import is_stream
from facepairs.support.progress import ProgressCallback, ProgressFactory, ignore_phases
from facepairs.verification.loading import Model, model_name
from facepairs.verification.pairs.bulk import (
    BulkScorer,
    Computed,
    CropReader,
    LocalPhotos,
    PairRows,
    PhotoFolder,
)
from facepairs.verification.pairs.pairs_file import (
    SAME_CONTENT,
    SIDES,
    ListedPair,
    PairsFile,
    printable,
)
from facepairs.verification.pairs.partial_results import PartialResults
from facepairs.verification.provenance import Provenance, provenance_of, scores_file
from facepairs.verification.scorer import ScoreArray
from facepairs.verification.verifier import Verifier

CHUNK_ROWS = 1024
FACE_COLUMNS = tuple(f"{side}_{cell}" for side in SIDES for cell in FaceCells._fields)
RESULT_COLUMNS = ("score", "probability", "same", *FACE_COLUMNS, "error")


@dataclass(frozen=True)
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
    """

    pairs: int
    failed: int
    images: int
    images_failed: int
    several_faces: int
    hints: dict[str, int]
    same_content: int
    pairs_with_known_people: int
    same: int | None
    seconds: float


def verify_pairs(
    verifier: Verifier,
    pairs: Path,
    out: Path,
    point: OperatingPoint,
    root: Path | None = None,
    resume: bool = False,
    progress: ProgressFactory = ignore_phases,
    prior: float = EQUAL_PRIORS,
) -> PairsReport:
    """Score every pair of a CSV file into another CSV file, and write where the scores come from.

    Args:
        verifier: Scores the pairs; open it with one thread, as the work is spread over all cores.
        pairs: CSV file with the columns left,right[,genuine][,fold].
        out: CSV file to write: the pairs in their order with score, probability, same (1 or 0),
            box, number of faces and hints of each side, and error, which is empty or what is wrong
            with the line or its images. OUT.json has the provenance. Interrupted work stays in
            OUT.partial, unless it is standard output or a device.
        point: The threshold.
        root: Folder that the paths count from, None for the folder of `pairs`.
        resume: Continue interrupted work; images that failed are tried again.
        progress: Displays the phases of the work.
        prior: The prior of the probabilities.

    Raises:
        BadConfig: The prior is outside (0, 1).
        BadData: The pairs file cannot be used as a whole, or `out` cannot be written.
        BadRun: OUT.partial is in use or belongs to other work.
    """
    photos = local_photos(pairs, root)
    with pairs_run(verifier, pairs, out, point, photos, resume, prior) as run:
        return run.finish(thread_map(run.scorer.work, run.items()), progress)


def local_photos(pairs: Path | str, root: Path | None) -> LocalPhotos:
    """Return the folder that the paths in `pairs` count from; raises BadData if it is none."""
    root = Path(pairs).parent if root is None else root
    if not root.is_dir():
        raise BadData(f"{root}: not a folder; give the one that the paths in {pairs} count from")
    return LocalPhotos(root)


@dataclass
class PairsRun:
    """A run over a pairs file: do `scorer.work` on each of `items()`, in order, then `finish`.

    Attributes:
        file: The pairs.
        out: CSV file to write.
        results: The images by number, and what was computed.
        scorer: Knows the work.
        point: The threshold.
        prior: The prior of the probabilities.
        origin: Where the scores come from.
        rows: How many pairs there are.
        started: When the run began.
    """

    file: PairsFile
    out: Path
    results: PartialResults
    scorer: BulkScorer
    point: OperatingPoint
    prior: float
    origin: Provenance
    rows: int
    started: float

    def items(self) -> Iterator[Any]:
        """Yield the work that is not done yet."""
        chunks = _read_chunks(self.file, self.results, self.rows)
        return self.scorer.items(pair_rows for _, pair_rows in chunks)

    def finish(self, work_done: Iterable[Computed], progress: ProgressFactory) -> PairsReport:
        """Collect the results of all items and write the scores.

        Raises:
            BadData: The pairs file has changed, or `out` cannot be written.
        """
        model, results = self.scorer.reader.verifier.bundle, self.results
        phase = "reading images" if model.kind == "embedding" else "comparing images"
        self.scorer.collect(work_done, progress(phase))
        writer = _ScoreWriter(
            self.file, results, self.scorer, model, self.point.threshold, self.prior
        )
        writer.write(self.out, self.origin, self.rows, progress("writing scores"))
        return PairsReport(
            pairs=self.rows,
            failed=writer.failed,
            images=results.image_count,
            images_failed=results.failed_images,
            several_faces=results.several_faces,
            hints=results.hint_counts(),
            same_content=writer.same_content,
            pairs_with_known_people=writer.pairs_with_known_people,
            same=None if self.point.threshold is None else writer.same,
            seconds=time.monotonic() - self.started,
        )


@contextmanager
def pairs_run(
    verifier: Verifier,
    pairs: Path,
    out: Path,
    point: OperatingPoint,
    photos: PhotoFolder,
    resume: bool,
    prior: float,
) -> Iterator[PairsRun]:
    """Prepare a run, and hold the lock of its partial results.

    Args:
        verifier, pairs, out, point, resume, prior: As for `verify_pairs`.
        photos: The photos that `pairs` names.

    Raises:
        FacepairsError: What `verify_pairs` raises.
    """
    started = time.monotonic()
    check_prior(prior)
    model = verifier.bundle
    origin = provenance_of(model, model_name(model), str(pairs), point, prior=prior, decisions=True)
    file = PairsFile(pairs)
    fingerprint = _fingerprint(verifier, file, str(photos))
    embeds = model.kind == "embedding"
    # Beside standard output or a device nothing can be kept.
    scratch = scratch_folder("facepairs-pairs") if is_stream(out) else nullcontext(out.parent)
    with scratch as place, PartialResults(place / out.name, fingerprint, resume) as results:
        rows = _number_images(file, results, photos, embeds)
        results.set_row_count(results.image_count if embeds else rows)
        reader = CropReader(verifier, photos, details=True)
        scorer = BulkScorer(
            reader, results.image_name, results, results.add_errors, results.add_faces
        )
        yield PairsRun(file, out, results, scorer, point, prior, origin, rows, started)


def _number_images(
    file: PairsFile, results: PartialResults, photos: PhotoFolder, embeds: bool
) -> int:
    """Number the distinct images in their order; return the number of rows."""
    count = 0
    for rows in batches(file.rows(), CHUNK_ROWS):
        names = (name for row in rows if not row.error for name in (row.left, row.right))
        stamps = {name: photos.stamp(name) for name in names}
        results.add_images(stamps, embeds)
        count += len(rows)
    if not count:
        raise BadData(f"{file.path}: no pairs below the header")
    return count


def _read_chunks(
    file: PairsFile, results: PartialResults, total: int
) -> Iterator[tuple[list[ListedPair], PairRows]]:
    """Yield the rows of the file with the numbers of their images; raise BadData if it changed."""
    changed = BadData(f"{file.path}: changed while it was read; run it again")
    start = 0
    for rows in batches(file.rows(), CHUNK_ROWS):
        try:
            sides = [
                [-1, -1] if row.error else list(map(results.image_number, (row.left, row.right)))
                for row in rows
            ]
        except KeyError:
            raise changed from None
        left, right = np.array(sides).T
        yield rows, PairRows(np.arange(start, start + len(rows)), left, right)
        start += len(rows)
        if start > total:
            raise changed
    if start != total:
        raise changed


def _fingerprint(verifier: Verifier, file: PairsFile, place: str) -> str:
    """Return a SHA-256 (hex) over all that the scores depend on, except the images' content."""
    model = verifier.bundle
    own = model.framing, model.threshold, model.thresholds, model.calibration
    identity = f"{model.embedder_sha256} {own}"
    detector = DETECTOR if model.aligned else ""
    parts = ["pairs-3", file_sha256(file.path), place, identity, detector]
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogateescape")).hexdigest()


@dataclass
class _ScoreWriter:
    """Writes the output chunk by chunk, and counts."""

    file: PairsFile
    results: PartialResults
    scorer: BulkScorer
    model: Model
    threshold: float | None
    prior: float
    failed: int = 0
    same: int = 0
    same_content: int = 0
    pairs_with_known_people: int = 0

    def write(self, out: Path, origin: Provenance, total: int, progress: ProgressCallback) -> None:
        """Write all rows; raise BadData if the pairs file changed or `out` cannot be written."""
        done = 0
        with scores_file(out, origin) as handle:
            writer = csv.writer(handle)
            writer.writerow((*SIDES, *self.file.kept, *RESULT_COLUMNS))
            for rows, numbers in _read_chunks(self.file, self.results, total):
                writer.writerows(self._output_rows(rows, numbers))
                done += len(rows)
                progress(done, total)

    def _output_rows(self, rows: list[ListedPair], numbers: PairRows) -> Iterator[Iterable[object]]:
        scores = self.scorer.scores(numbers)
        self.pairs_with_known_people += self._known_pairs(rows, scores)
        results = self._result_cells(scores)
        images = np.unique([numbers.left, numbers.right]).tolist()
        faces = {image: self.results.image_face(image) for image in images}
        for number, row in enumerate(rows):
            error, result = row.error, next(results)
            sides = int(numbers.left[number]), int(numbers.right[number])
            if not error and np.isnan(scores[number]):
                error = "; ".join(filter(None, map(self.results.image_error, dict.fromkeys(sides))))
            self.failed += bool(error)
            names = map(printable, (row.left, row.right, *row.kept))
            cells = [faces[image] for image in sides]
            if not error and self._is_copy(*sides):
                self.same_content += 1
                hints = (f"{cell.hints} {SAME_CONTENT}".strip() for cell in cells)
                cells = [cell._replace(hints=one) for cell, one in zip(cells, hints, strict=True)]
            found = chain.from_iterable(cells)
            yield chain(names, ("", "", "") if error else result, found, (printable(error),))

    def _known_pairs(self, rows: list[ListedPair], scores: ScoreArray) -> int:
        """Count the scored pairs with people on whom the model was trained or calibrated."""
        scored = [row for row, score in zip(rows, scores, strict=True) if not np.isnan(score)]
        people = [{person_name(row.left), person_name(row.right)} for row in scored]
        names = list(set().union(*people))
        known = {name for name, knows in zip(names, self.model.knows(names), strict=True) if knows}
        return sum(not known.isdisjoint(pair) for pair in people)

    def _is_copy(self, left: int, right: int) -> bool:
        """Tell whether two images have the same content."""
        names = (self.results.image_name(image) for image in (left, right))
        return left == right or self.scorer.reader.photos.same_content(*names)

    def _result_cells(self, scores: ScoreArray) -> Iterator[tuple[object, object, object]]:
        """Return score, probability and same of each row; unknown ones are empty."""
        values = scores.astype(np.float64)
        probability: Iterable[object] = [""] * len(values)
        same: Iterable[object] = probability
        if self.model.calibration is not None:
            probability = self.model.calibration.probability(values, self.prior).tolist()
        if self.threshold is not None:
            accepted = values >= self.threshold
            self.same += int(accepted.sum())
            same = accepted.astype(np.int8).tolist()
        return zip(values.tolist(), probability, same, strict=True)
