"""The report as one HTML file: nothing is loaded, all text is escaped."""

import base64
import hashlib
import html
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from facepairs.evaluation.evaluate import Evaluation
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.metrics.arrays import Bools
from facepairs.evaluation.report.photos import find_photos, photo_url
from facepairs.evaluation.report.style import Figure, inline_svg
from facepairs.evaluation.report.table import cells, interval, percent
from facepairs.evaluation.report.tables import provenance_text
from facepairs.evaluation.report.verifier_tables import (
    ALIKE,
    GENUINE,
    STRANGERS,
    accuracy_label,
    accuracy_note,
    accuracy_text,
    point_label,
)
from facepairs.support.atomic import atomic_file

TEMPLATES = Path(__file__).parent
SHOWN_OF_ONE, SHOWN_OF_SEVERAL = 8, 4  # wrong pairs of each kind, for every verifier
VIEW2_FOLDS = 10


class Headline(NamedTuple):
    """A large figure at the top of the page; `notes` stand below it, a line each."""

    label: str
    text: str
    notes: list[str]
    value: float


def write_page(evaluation: Evaluation, page: Path, command: str, pictures: bool = True) -> None:
    """Write the report of an evaluation.

    Args:
        evaluation: The measurements.
        page: The HTML file.
        command: The command line, which the report quotes.
        pictures: Whether photos of wrong pairs go into the page.

    Raises:
        BadData: It cannot be written, or the folder of photos has none of those in the scores.
    """
    text = render_page(evaluation, command, pictures)
    with atomic_file(page) as handle:
        handle.write(text)


def render_page(evaluation: Evaluation, command: str, pictures: bool = True) -> str:
    """Return the page's HTML; the arguments are those of `write_page`."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    found = evaluation.measurements
    photos = find_photos(evaluation.data, found[0].scores) if pictures else None
    several = len(found) > 1
    most = SHOWN_OF_SEVERAL if several else SHOWN_OF_ONE
    tables = {table.key: table for table in evaluation.tables()}
    history = tables["history"]
    tables["history"] = replace(history, rows=[*cells([("Command", command)]), *history.rows])
    return environment.get_template("page.html").render(
        evaluation=evaluation,
        title=f"{_joined([one.name for one in found])} on {_dataset(evaluation)}",
        style=(TEMPLATES / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_digest=digest,
        render_figure=_render_figure,
        several=several,
        headlines=_headlines(found),
        words=_sentence(found[0]),
        origins=_origins(found),
        created=history.rows[0][1].text,
        people=found[0].summary.people,
        tables=tables,
        figures={figure.key: figure for figure in evaluation.figures()},
        worst=[_worst_of_both_kinds(one, photos, most) for one in found],
    )


def _dataset(evaluation: Evaluation) -> str:
    """Return a name of what was measured on: a protocol, a folder of photos or a file of scores."""
    selection, first = evaluation.selection, evaluation.measurements[0]
    protocol = first.provenance and first.provenance.protocol
    if protocol == "view2" and len(np.unique(first.scores.fold)) == VIEW2_FOLDS:
        return "LFW, View 2"
    if selection is not None and selection.protocol == "view1":
        return "LFW, View 1"
    if selection is None or evaluation.data is None:
        return Path(first.source).name
    folder = evaluation.data.resolve().name
    return f"{folder}, {selection.source if selection.protocol else Path(selection.source).name}"


def _origins(found: tuple[Measurement, ...]) -> str:
    """Return where the scores come from; of several verifiers, whose are of unknown origin."""
    if len(found) == 1:
        return f"Scores {provenance_text(found[0])}"
    unknown = [one.name for one in found if one.summary.scored_by is None]
    return f"Scores of unknown origin: {_joined(unknown)}" if unknown else ""


def _joined(names: list[str]) -> str:
    """Return names as "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _render_figure(figure: Figure) -> str:
    """Return a figure as SVG; matplotlib escapes the text in it, and the label is escaped here."""
    label = html.escape(f"{figure.title}. {figure.caption}")
    return inline_svg(figure.figure, figure.key, label)


def _headlines(found: tuple[Measurement, ...]) -> list[Headline]:
    """Return the figures of a single verifier, or the accuracy of each of several."""
    if len(found) > 1:
        return [
            _accuracy(one, f"{one.name}: ", [f"{_decides(one)}: {_in_words(one)}"]) for one in found
        ]
    (one,) = found
    point, first = one.summary.default_point, one.summary.point
    rates = {
        STRANGERS: point.errors.fmr,
        ALIKE: point.errors.lookalike_fmr,
        GENUINE: point.errors.fnmr,
    }
    decided = [] if point is first else [_decides(one)]
    cards = [_accuracy(one, "", [point_label(first)] if decided else [])]
    for name, rate in rates.items():
        if rate is not None:
            notes = [f"95 % interval {interval(rate.interval)}", *decided]
            cards.append(Headline(name, percent(rate.value), notes, rate.value))
    return cards


def _accuracy(one: Measurement, prefix: str, notes: list[str]) -> Headline:
    summary = one.summary
    label = prefix + accuracy_label(summary).lower()
    notes = [accuracy_note(summary), *notes]
    rate = summary.balanced_accuracy
    return Headline(label, accuracy_text(rate), notes, rate.value)


def _decides(one: Measurement) -> str:
    """Return the name of the default operating point, as one that `verify` decides with."""
    label = point_label(one.summary.default_point)
    return f"as verify decides ({label})" if one.summary.verify_point else label


def _sentence(one: Measurement) -> str:
    """Return the name of the default operating point and its errors in words."""
    text = f"{_decides(one)}: {_in_words(one)}."
    return text[0].upper() + text[1:]


def _in_words(one: Measurement) -> str:
    """Return the errors of the default operating point in words."""
    return one.summary.default_point.describe()


def _worst_of_both_kinds(
    one: Measurement, photos: dict[str, Path] | None, most: int
) -> list[dict[str, Any]]:
    """Return the pairs decided most wrongly, of each kind; none without names of photos."""
    passed = one.accepted & ~one.scores.genuine
    missed = ~one.accepted & one.scores.genuine
    at = f"(threshold: {point_label(one.summary.point)})"
    kinds = [
        ("false_accepts", "Strangers accepted", f"Different people, accepted as one person {at}"),
        ("false_rejects", "Genuine pairs missed", f"One person, rejected as two people {at}"),
    ]
    return [
        {"kind": kind, "title": title, "note": note, "pairs": _worst(one, wrong, photos, most)}
        for (kind, title, note), wrong in zip(kinds, (passed, missed), strict=True)
        if one.scores.has_names and wrong.any()
    ]


def _worst(
    one: Measurement, wrong: Bools, photos: dict[str, Path] | None, most: int
) -> list[dict[str, Any]]:
    """Return the wrong pairs that are farthest from their threshold."""
    scores, places = one.scores, np.flatnonzero(wrong)
    distance = np.abs(scores.score - one.threshold)[places]
    return [
        {
            "score": scores.score[k],
            "threshold": one.threshold[k],
            "fold": int(scores.fold[k]),
            "probability": None if one.probability is None else one.probability[k],
            "sides": [
                _side(side[k], photos, one.summary.aligned) for side in (scores.left, scores.right)
            ],
        }
        for k in places[np.argsort(-distance, kind="stable")][:most].tolist()
    ]


def _side(name: str, photos: dict[str, Path] | None, aligned: bool) -> dict[str, Any]:
    """Return a photo's name, its parts, between which it may wrap, and its picture if any."""
    path = None if photos is None else photos.get(name)
    return {
        "name": name,
        "label": name.replace("\\", "/").rpartition("/")[2].split("_"),
        "picture": None if path is None else photo_url(path, aligned),
    }
