"""A CSV of pairs in, a CSV of scores out.

Memory holds about 2 KB for each distinct photo, of a pair network also its crop, and some bytes for
each row.
"""

import csv
import sys
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from facepairs.bundles.error_profile import EQUAL_PRIORS, Calibration
from facepairs.bundles.rates import OperatingPoint
from facepairs.bundles.scorer import BATCH_CROPS, ScoreArray
from facepairs.data.index import find_file
from facepairs.data.pairs import csv_rows, parse_fold, parse_genuine, person_name
from facepairs.errors import BadData
from facepairs.photos.face_sample import FaceSample
from facepairs.photos.photo import read_image_file
from facepairs.support.parallel import batches, thread_map, unbatched
from facepairs.support.results import Result
from facepairs.support.words import printable
from facepairs.verification.provenance import provenance_of, scores_file, with_photos
from facepairs.verification.verdict import are_copies, with_hint_of_copies, with_hint_of_others
from facepairs.verification.verifier import CHUNK_PAIRS, READING, Indices, Verifier, score_samples

SIDES = ("left", "right")
COPIED = ("genuine", "fold")  # columns that are copied to the output
FACE_COLUMNS = tuple(f"{side}_{cell}" for side in SIDES for cell in ("box", "faces", "hints"))
RESULT_COLUMNS = ("score", "probability", "same", *FACE_COLUMNS, "error")
COPY = "copy"


class PairsReport(Result, frozen=True, kw_only=True):
    """Counts of a run over a list of pairs.

    Attributes:
        pairs: Rows of the file.
        failed: Rows without a score.
        images: Distinct images.
        images_failed: Images that cannot be used.
        several_faces: Images with several faces, of which the most prominent was used.
        same_content: Pairs of a photo and itself, or a copy: that these match says nothing.
        pairs_with_known_people: Scored pairs with people on whom the model was trained or
            calibrated, as the folders of the photos name them.
        same: Pairs that were accepted; None without a threshold.
        first_error: What is wrong with the first row without a score; "" if nothing is.
        point: The threshold. In JSON it is called `operating_point`.
        prior: The prior of the probabilities.
        model: The model's place, such as `default`.
        out: The file that was written.
    """

    pairs: int
    failed: int
    images: int
    images_failed: int
    several_faces: int
    same_content: int
    pairs_with_known_people: int
    same: int | None
    first_error: str
    point: OperatingPoint = msgspec.field(name="operating_point")
    prior: float
    model: str
    out: str


class ListedPairs(NamedTuple):
    """The pairs of a list.

    Attributes:
        path: The list.
        photos: The names of the distinct photos, in the order of the list.
        left: int32[N], the number of each pair's first photo.
        right: int32[N], that of the other one.
        copied: The cells of those of the columns COPIED that the list has.
    """

    path: Path
    photos: list[str]
    left: Indices
    right: Indices
    copied: dict[str, list[str]]


def score_list(
    verifier: Verifier,
    pairs: Path,
    out: Path,
    point: OperatingPoint,
    root: Path | None = None,
    prior: float = EQUAL_PRIORS,
) -> PairsReport:
    """Score every pair of a CSV file into another CSV file, and record the origin of the scores.

    The photo cache lets the same call continue after an interruption. A pair network computes its
    scores again.

    Args:
        verifier: Scores the pairs; open it with one thread, as the work is spread over all cores.
        pairs: CSV file with the columns left,right[,genuine][,fold].
        out: CSV file to write: the pairs in their order with score, probability, same (1 or 0),
            box, number of faces and hints of each side, and error, which is empty or the problem
            of the images. OUT.json has the provenance.
        point: The threshold.
        root: The folder of the photos; None for that of `pairs`.
        prior: The prior of the probabilities.

    Raises:
        BadData: The folder is missing, a row of the list is wrong, or `out` cannot be written.
    """
    folder = folder_of_photos(pairs, root)
    listed = read_list(pairs)
    reader = replace(verifier.reader(), open=partial(read_listed, folder))
    photos = [(str(Path(folder, name)), name) for name in listed.photos]
    read = thread_map(reader.read, batches(photos, BATCH_CROPS))
    return write_scores(verifier, listed, read, out, point, prior)


def read_listed(root: Path, name: str) -> bytes:
    """Return the content of a photo below a folder, by its name in a list; may raise OSError."""
    return read_image_file(find_file(root, name))


def folder_of_photos(pairs: Path, root: Path | None) -> Path:
    """Return the folder of the photos that `pairs` lists; raise BadData if it is missing."""
    folder = pairs.parent if root is None else root
    if not folder.is_dir():
        raise BadData(f"{folder}: not a folder; give the folder of the photos that {pairs} lists")
    return folder


def write_scores(
    verifier: Verifier,
    listed: ListedPairs,
    read: Iterable[list[FaceSample]],
    out: Path,
    point: OperatingPoint,
    prior: float = EQUAL_PRIORS,
) -> PairsReport:
    """Score pairs and write them, as `score_list` does, while their photos are read.

    Args:
        verifier: Scores the pairs.
        listed: The pairs.
        read: The faces of the listed photos in order, as `PhotoReader.read` returns them.
        out: CSV file to write.
        point: The threshold.
        prior: The prior of the probabilities.

    Raises:
        BadData: `out` cannot be written.
    """
    model = verifier.model
    samples = dict(enumerate(unbatched(read, READING, len(listed.photos))))
    scores = score_samples(verifier.scorer, samples, listed.left, listed.right)
    problems: list[str] = []  # of each row: what is wrong with it, COPY, or ""
    shown = {printable(listed.photos[number]): face for number, face in samples.items()}
    origin = with_photos(provenance_of(model, str(listed.path), point, prior=prior), shown)
    with scores_file(out, origin) as handle:
        writer = csv.writer(handle)
        writer.writerow((*SIDES, *listed.copied, *RESULT_COLUMNS))
        results = _result_cells(model.profile.calibration, scores, point, prior)
        writer.writerows(_output_rows(listed, samples, results, problems))
    errors = [problem for problem in problems if problem not in ("", COPY)]
    knows = model.origin.identities.knows([person_name(photo) for photo in listed.photos])
    exact = scores.astype(np.float64)  # as the rows and single verdicts compare it
    with_known = (knows[listed.left] | knows[listed.right]) & np.isfinite(scores)
    return PairsReport(
        pairs=len(scores),
        failed=len(errors),
        images=len(listed.photos),
        images_failed=sum(face.error is not None for face in samples.values()),
        several_faces=sum(
            not face.error and face.faces not in (None, 1) for face in samples.values()
        ),
        same_content=problems.count(COPY),
        pairs_with_known_people=int(with_known.sum()),
        same=None if point.threshold is None else int((exact >= point.threshold).sum()),
        first_error=errors[0] if errors else "",
        point=point,
        prior=prior,
        model=model.place,
        out=str(out),
    )


def read_list(path: Path) -> ListedPairs:
    """Read a CSV file of pairs, left,right[,genuine][,fold]; `genuine` and `fold` may be empty.

    Raises:
        BadData: A row is wrong, or there is none; the message has its line.
    """
    numbers: dict[str, int] = {}
    sides = array("i")
    copied: dict[str, list[str]] = {}
    for line, row in csv_rows(path, SIDES):
        try:
            if row.get("genuine", "").strip():
                parse_genuine(row["genuine"])
            parse_fold(row.get("fold", ""))
        except ValueError as error:
            raise BadData(f"{path}: line {line}: {error}") from None
        sides.extend(numbers.setdefault(row[side].strip(), len(numbers)) for side in SIDES)
        for name in COPIED:
            if name in row:
                copied.setdefault(name, []).append(sys.intern(row[name]))
    if not sides:
        raise BadData(f"{path}: no pairs below the header")
    left, right = np.array(sides, np.int32).reshape(-1, 2).T
    return ListedPairs(path, list(numbers), left, right, copied)


def _output_rows(
    listed: ListedPairs,
    found: dict[int, FaceSample],
    results: Iterable[tuple[object, object, object]],
    problems: list[str],
) -> Iterator[list[object]]:
    """Yield the rows of the output, and list what is wrong with each."""
    faces = {number: with_hint_of_others(sample, None) for number, sample in found.items()}
    for row, result in enumerate(results):
        numbers = int(listed.left[row]), int(listed.right[row])
        left, right = (faces[number] for number in numbers)
        error = "; ".join(dict.fromkeys(str(face.error) for face in (left, right) if face.error))
        copies = not error and are_copies(left, right)
        problems.append(COPY if copies else error)
        if copies:
            left, right = with_hint_of_copies(left, right)
        yield [
            *(printable(listed.photos[number]) for number in numbers),
            *(column[row] for column in listed.copied.values()),
            *(("", "", "") if error else result),
            *_face_cells(left),
            *_face_cells(right),
            printable(error),
        ]


def _result_cells(
    curve: Calibration | None, scores: ScoreArray, point: OperatingPoint, prior: float
) -> Iterator[tuple[object, object, object]]:
    """Yield score, probability and same of each row; unknown ones are empty."""
    for start in range(0, len(scores), CHUNK_PAIRS):
        values = scores[start : start + CHUNK_PAIRS].astype(np.float64)
        probability = None if curve is None else curve.probability(values, prior).tolist()
        for row, score in enumerate(values.tolist()):
            yield (
                score,
                "" if probability is None else probability[row],
                "" if point.threshold is None else int(score >= point.threshold),
            )


def _face_cells(sample: FaceSample) -> tuple[str, str, str]:
    """Return a photo's box "left top side", number of faces, and kinds of hints."""
    if sample.error:
        return "", "", ""
    hints = [hint.kind for hint in sample.hints]
    faces = "" if sample.faces is None else str(sample.faces)
    return " ".join(map(str, sample.box or ())), faces, " ".join(hints)
