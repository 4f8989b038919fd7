"""`verify --pairs`: a CSV of pairs in, a CSV of scores out, in memory that does not grow with rows.

The file is read twice: for the images it names, then for its rows, which are scored and written as
they come. Memory holds one chunk of rows, and a byte an image for whether it is done (for each pair
where the network takes pairs); the distinct names lie on disk, and so do embeddings, beside the
output until it is whole.
"""

import csv
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.beam.places import Place
from facepairs.bundles.bundle import Bundle
from facepairs.bundles.calibration import Calibration
from facepairs.bundles.thresholds import OperatingPoint
from facepairs.errors import BadData
from facepairs.support.checksum import summed_file
from facepairs.support.parallel import Run, batches, in_order
from facepairs.verification.image_table import ImageTable
from facepairs.verification.bulk import ByEmbedding, ByPair, Chunk, Numbers, PairScorer, Photos
from facepairs.verification.pairs_file import SIDES, PairsFile, Row, printable
from facepairs.verification.partial_results import Partial
from facepairs.verification.scorer import ScoreArray
from facepairs.verification.verifier import Verifier

CHUNK_ROWS = 1024
RESULTS = ("score", "probability", "same", "error")
Ticker = Callable[[str], Callable[[int, int], None]]


@dataclass(frozen=True)
class BatchReport:
    """What a run over a pairs file came to; `same` counts pairs accepted, None where nobody can."""

    pairs: int
    failed: int
    images: int
    images_failed: int
    same: int | None
    seconds: float


def no_ticker(label: str) -> Callable[[int, int], None]:
    """Show no progress."""
    return lambda done, total: None


def verify_pairs(
    verifier: Verifier,
    pairs: Path,
    out: Path,
    point: OperatingPoint,
    root: Place | None = None,
    resume: bool = False,
    ticker: Ticker = no_ticker,
    framing: bool = True,
    run: Run = in_order,
) -> BatchReport:
    """Score every pair of a CSV file left,right[,genuine][,fold] into the CSV file `out`.

    Paths count from `root`, by default the folder of the CSV file. `out` gets the pairs in their
    order with score, probability, same (1 or 0) and error, the latter empty or what is wrong with
    the line or its images; a pair that failed has no score. `evaluate` reads it where the pairs
    have `genuine`. The largest face of a photo counts, framed as in `Verifier.verify`; without
    `framing` the photo itself is the frame. Each image is read once; `run` says where the work is
    done: by default in threads over all cores, so give a verifier of one thread. Interrupted work
    stays in OUT.partial, from where `resume` goes on; images that had failed are tried again.

    Raises BadData for a pairs file that cannot be used as a whole and for an `out` that cannot be
    written, BadRun for a partial output that is not this work's.
    """
    started = time.monotonic()
    file = PairsFile(pairs)
    root = pairs.parent if root is None else root
    if isinstance(root, Path) and not root.is_dir():
        raise BadData(f"{root}: not a folder; give the one that the paths in {pairs} count from")
    images, rows = _images(file)
    if not rows:
        raise BadData(f"{pairs}: no pairs below the header")
    photos = Photos(verifier, root, images, framing)
    embeds = verifier.bundle.kind == "embedding"
    fingerprint = _fingerprint(photos, file)
    with Partial(out, fingerprint, len(photos) if embeds else rows, resume) as partial:
        scorer: PairScorer = (ByEmbedding if embeds else ByPair)(photos, images, partial, run)
        scorer.prepare(_chunks(file, images), ticker("reading images"))
        writer = _Writer(file, images, scorer, point, verifier.bundle.calibration)
        writer.write(out, rows, ticker("scoring pairs"))
    return BatchReport(
        pairs=rows,
        failed=writer.failed,
        images=len(images),
        images_failed=images.failed,
        same=None if point.threshold is None else writer.same,
        seconds=time.monotonic() - started,
    )


def _images(file: PairsFile) -> tuple[ImageTable, int]:
    """Number the distinct images in the order in which they come, and count the rows."""
    images, count = ImageTable(), 0
    for rows in batches(file.rows(), CHUNK_ROWS):
        images.add(name for row in rows if not row.error for name in (row.left, row.right))
        count += len(rows)
    return images, count


def _numbers(rows: list[Row], images: ImageTable) -> tuple[Numbers, Numbers]:
    """Give the numbers of the left and the right images, -1 in malformed rows; or KeyError."""
    left, right = (
        np.array([-1 if row.error else images.number(getattr(row, side)) for row in rows], np.int64)
        for side in SIDES
    )
    return left, right


def _chunks(file: PairsFile, images: ImageTable) -> Iterator[Chunk]:
    start = 0
    for rows in batches(file.rows(), CHUNK_ROWS):
        try:
            yield Chunk(start, *_numbers(rows, images))
        except KeyError:
            raise _changed(file) from None
        start += len(rows)


def _changed(file: PairsFile) -> BadData:
    return BadData(f"{file.path}: changed while it was read; run it again")


def _fingerprint(photos: Photos, file: PairsFile) -> str:
    """Give a SHA-256 (hex) over all that the scores depend on, but for the images' content."""
    model = photos.verifier.bundle
    if isinstance(model, Bundle):
        identity = json.dumps(model.raw, sort_keys=True)
    else:
        status = model.network.stat()
        identity = f"{model!r} {status.st_size} {status.st_mtime_ns}"
    root = str(photos.root.resolve() if isinstance(photos.root, Path) else photos.root)
    whole = ["pairs-1", file.sha256(), root, photos.framing, identity]
    return hashlib.sha256(json.dumps(whole).encode("utf-8", "surrogateescape")).hexdigest()


class _Writer:
    """Writes the output chunk by chunk, and counts."""

    def __init__(
        self,
        file: PairsFile,
        images: ImageTable,
        scorer: PairScorer,
        point: OperatingPoint,
        calibration: Calibration | None,
    ) -> None:
        self.failed = self.same = 0
        self._file = file
        self._images = images
        self._scorer = scorer
        self._threshold = point.threshold
        self._calibration = calibration

    def write(self, out: Path, total: int, progress: Callable[[int, int], None]) -> None:
        done = 0
        with summed_file(out) as handle:
            writer = csv.writer(handle)
            writer.writerow((*SIDES, *self._file.kept, *RESULTS))
            for rows in batches(self._file.rows(), CHUNK_ROWS):
                if done + len(rows) > total:
                    raise _changed(self._file)
                writer.writerows(self._chunk(done, rows))
                done += len(rows)
                progress(done, total)
        if done != total:
            raise _changed(self._file)

    def _chunk(self, start: int, rows: list[Row]) -> Iterator[Iterable[object]]:
        try:
            left, right = _numbers(rows, self._images)
        except KeyError:
            raise _changed(self._file) from None
        scores = self._scorer.score(start, left, right)
        errors = map(self._error, rows, left.tolist(), right.tolist())
        cells = self._cells(scores)
        for row, error, found in zip(rows, errors, cells, strict=True):
            self.failed += bool(error)
            names = map(printable, (row.left, row.right, *row.kept))
            yield chain(names, ("", "", "") if error else found, (printable(error),))

    def _error(self, row: Row, left: int, right: int) -> str:
        if row.error:
            return row.error
        told = [self._images.error(image) for image in dict.fromkeys((left, right))]
        return "; ".join(filter(None, told))

    def _cells(self, scores: ScoreArray) -> Iterator[tuple[object, object, object]]:
        """Give score, probability and same of a chunk, those that nobody can tell left empty."""
        values = scores.astype(np.float64)
        probability: Iterable[object] = [""] * len(values)
        same: Iterable[object] = probability
        if self._calibration is not None:
            probability = self._calibration.probability(values).tolist()
        if self._threshold is not None:
            accepted: npt.NDArray[np.bool_] = values >= self._threshold
            self.same += int(accepted.sum())
            same = accepted.astype(np.int8).tolist()
        return zip(values.tolist(), probability, same, strict=True)
