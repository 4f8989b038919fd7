"""The report as one HTML file, with the worst pairs: nothing is loaded, all text is escaped."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from facepairs.data.pairs import person_name
from facepairs.evaluation.evaluate import Evaluation
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.metrics.arrays import Bools
from facepairs.evaluation.report.table import interval, share
from facepairs.evaluation.report.tables import (
    accuracy_label,
    accuracy_note,
    error_rates,
)
from facepairs.photos.crop import CropSpec
from facepairs.photos.face_sample import FaceRef
from facepairs.photos.photo_cache import photo_cache
from facepairs.photos.reader import PhotoReader
from facepairs.support.atomic import atomic_file
from facepairs.support.html import data_url, render_template

TEMPLATES = Path(__file__).parent
SHOWN = 8  # wrong pairs of each kind, for every verifier
WHOLE = CropSpec(frame_px=144, crop_px=144)  # a face's frame, or the centre square of a photo
QUALITY = 80
KINDS = {
    "false_accepts": ("Strangers accepted", "Different people, accepted as one person"),
    "false_rejects": ("Genuine pairs missed", "One person, rejected as two people"),
}


class Headline(NamedTuple):
    """A large figure at the top of the page; `notes` stand below it, a line each."""

    label: str
    text: str
    notes: list[str]
    value: float


def write_page(evaluation: Evaluation, page: Path, pictures: bool = True) -> None:
    """Write the report of an evaluation.

    Args:
        evaluation: The measurements.
        page: The HTML file.
        pictures: Whether photos of wrong pairs go into the page.

    Raises:
        BadData: It cannot be written.
    """
    text = render_page(evaluation, pictures)
    with atomic_file(page) as handle:
        handle.write(text)


def render_page(evaluation: Evaluation, pictures: bool = True) -> str:
    """Return the page's HTML; the arguments are those of `write_page`."""
    found, tables = evaluation.measurements, {table.key: table for table in evaluation.tables()}
    record = evaluation.record
    photos = Path(record.data) if record.data and pictures else None
    place = Path(evaluation.summary.about.pairs).name  # a protocol, or a file
    if record.data and record.protocol == "heldout":
        place = Path(record.data).resolve().name
    return render_template(
        TEMPLATES,
        "page.html",
        "page.js",
        evaluation=evaluation,
        title=f"{', '.join(measured.summary.about.name for measured in found)} on {place}",
        style=(TEMPLATES / "page.css").read_text(encoding="utf-8"),
        several=len(found) > 1,
        headlines=_headlines(found[0]) if len(found) == 1 else [],
        created=record.created,
        people=found[0].summary.people,
        tables=tables,
        figures=evaluation.figures(),
        worst=[worst_pairs(measured, photos) for measured in found],
    )


def _headlines(one: Measurement) -> list[Headline]:
    """Return the accuracy and the errors of a verifier."""
    summary, point = one.summary, one.summary.default_point
    label, accuracy = accuracy_label(summary).lower(), summary.balanced_accuracy
    first = [accuracy_note(summary), summary.point.label]
    cards = [Headline(label, share(accuracy), first, accuracy.value)]
    for name, rate in error_rates(point.errors).items():
        if rate is not None:
            notes = [f"95 % interval {interval(rate)}", f"as verify decides ({point.label})"]
            cards.append(Headline(name, share(rate), notes, rate.value))
    return cards


class Side(NamedTuple):
    """A photo of a wrong pair: its name, person and file, and its picture if there is one."""

    name: str
    person: str
    file: str
    picture: str | None


class WrongPair(NamedTuple):
    """A pair that was decided wrongly: its figures in words, and both photos."""

    text: str
    sides: list[Side]


def worst_pairs(
    one: Measurement, photos: Path | None
) -> list[tuple[str, str, str, list[WrongPair]]]:
    """Return the pairs that `verify` decides most wrongly; none where photos have no names.

    Args:
        one: The measurement.
        photos: The folder of photos; None for no pictures.

    Returns:
        Key, title, explanation and pairs of each kind.
    """
    accepted, genuine = one.by_default.accepted, one.pairs.genuine
    wrong = {"false_accepts": accepted & ~genuine, "false_rejects": ~accepted & genuine}
    return [
        (kind, title, f"{note} (threshold: {one.by_default.point.label})", found)
        for kind, (title, note) in KINDS.items()
        if one.pairs.has_names and (found := _worst(one, wrong[kind], photos))
    ]


def _worst(one: Measurement, wrong: Bools, photos: Path | None) -> list[WrongPair]:
    """Return the wrong pairs that are farthest from their threshold."""
    scores, threshold, places = one.pairs, one.by_default.by_pair, np.flatnonzero(wrong)
    distance = np.abs(scores.score - threshold)[places]
    pairs = []
    for k in places[np.argsort(-distance, kind="stable")][:SHOWN].tolist():
        text = f"score {scores.score[k]:.3f}, threshold {threshold[k]:.3f}"
        if one.probability is not None:
            text += f", probability {one.probability[k]:.3f}"
        if scores.fold[k]:
            text += f", fold {scores.fold[k]}"
        names = (scores.left[k], scores.right[k])
        pairs.append(WrongPair(text, [_side(name, photos, one) for name in names]))
    return pairs


def _side(name: str, photos: Path | None, one: Measurement) -> Side:
    path = None if photos is None else find_photo(photos, name)
    picture = (
        None if path is None else photo_url(path, one.summary.about.aligned, one.faces.get(name, 1))
    )
    return Side(name, person_name(name), name.replace("\\", "/").rpartition("/")[2], picture)


def find_photo(data: Path, name: str) -> Path | None:
    """Return the file of a name in the scores, or None where there is none below the folder.

    A name that leads out of the folder has none: a scores file from elsewhere must not bring other
    files of this machine into a report.
    """
    try:
        root = data.resolve()
        path = root / name.replace("\\", "/")
        inside = root in path.parents and ".." not in path.parts
        return path if inside and path.resolve().is_file() else None
    except (OSError, ValueError):
        return None


def photo_url(path: Path, aligned: bool, face: int = 1) -> str | None:
    """Return a photo, or a face of it, as a `data:` URL of a small JPEG; None if it is not read.

    Encoded again from its pixels alone, so metadata such as the place of the photo is left out.
    """
    reader = PhotoReader(aligned, WHOLE, cache=photo_cache())
    (sample,) = reader.read([(str(path), FaceRef(path, face))])
    if sample.crop is None:
        return None
    return data_url(sample.crop, "JPEG", quality=QUALITY, optimize=True)
