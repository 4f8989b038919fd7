"""The report as one HTML file: nothing is loaded, all text is escaped."""

import base64
import hashlib
import html
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from facepairs.evaluation.evaluate import Evaluation
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.page.worst import find_photos, worst_pairs
from facepairs.evaluation.report.style import Figure, inline_svg
from facepairs.evaluation.report.table import cell, interval, share
from facepairs.evaluation.report.tables import provenance_text
from facepairs.evaluation.report.verifier_tables import (
    accuracy_label,
    accuracy_note,
    error_rates,
)
from facepairs.support.atomic import atomic_file

TEMPLATES = Path(__file__).parent
SHOWN_OF_ONE, SHOWN_OF_SEVERAL = 8, 4  # wrong pairs of each kind, for every verifier


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
    found, tables = evaluation.measurements, {table.key: table for table in evaluation.tables()}
    photos = find_photos(evaluation.data, found[0].scores) if pictures else None
    most = SHOWN_OF_SEVERAL if len(found) > 1 else SHOWN_OF_ONE
    history = tables["history"]
    tables["history"] = replace(history, rows=[[cell("Command"), cell(command)], *history.rows])
    return environment.get_template("page.html").render(
        evaluation=evaluation,
        title=f"{_joined([one.name for one in found])} on {_dataset(evaluation)}",
        style=(TEMPLATES / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        render_figure=_render_figure,
        several=len(found) > 1,
        headlines=_headlines(found[0]) if len(found) == 1 else [],
        origins=[f"{one.name}: scores {provenance_text(one)}" for one in found],
        created=history.rows[0][1].text,
        people=found[0].summary.people,
        tables=tables,
        figures=evaluation.figures(),
        worst=[worst_pairs(one, photos, most) for one in found],
    )


def _dataset(evaluation: Evaluation) -> str:
    """Return a name of what was measured on: a folder of photos, and where its pairs come from."""
    pairs = Path(evaluation.summary.pairs).name  # a protocol, or a file
    if evaluation.data is None or evaluation.selection is None:
        return pairs
    folder = evaluation.data.resolve().name
    return folder if evaluation.selection.protocol == "heldout" else f"{folder}, {pairs}"


def _joined(names: list[str]) -> str:
    """Return names as "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _render_figure(figure: Figure) -> str:
    """Return a figure as SVG; matplotlib escapes the text in it, and the label is escaped here."""
    label = html.escape(f"{figure.title}. {figure.caption}")
    return inline_svg(figure.figure, figure.key, label)


def _headlines(one: Measurement) -> list[Headline]:
    """Return the accuracy and the errors of a verifier."""
    summary, point = one.summary, one.summary.default_point
    label, accuracy = accuracy_label(summary).lower(), summary.balanced_accuracy
    measured_at, decided = [], []
    if point is not summary.point:
        measured_at, decided = [summary.point.label], [f"as verify decides ({point.label})"]
    first = [accuracy_note(summary), *measured_at]
    return [
        Headline(label, share(accuracy), first, accuracy.value),
        *(
            Headline(name, share(rate), [f"95 % interval {interval(rate)}", *decided], rate.value)
            for name, rate in error_rates(point.errors).items()
            if rate is not None
        ),
    ]
