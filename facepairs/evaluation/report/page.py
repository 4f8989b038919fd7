"""The report as one HTML file: nothing is loaded, all text is escaped."""

import base64
import hashlib
import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from facepairs.evaluation.metrics.summary import Summary
from facepairs.evaluation.report.cells import Value
from facepairs.evaluation.report.data import ModelData, ReportData
from facepairs.evaluation.report.photos import PhotoFinder, data_uri
from facepairs.evaluation.report.plots.model import model_plots
from facepairs.evaluation.report.plots.shared import shared_plots
from facepairs.evaluation.report.plots.style import Plot, inline_svg
from facepairs.evaluation.report.tables import (
    accuracy_note,
    accuracy_text,
    comparison_tables,
    data_table,
    figure_rows,
    model_tables,
    origin_table,
    published_table,
)

HERE = Path(__file__).parent
SHOWN_OF_ONE, SHOWN_OF_SEVERAL = 12, 6  # wrong pairs of each kind, for every verifier
HEADLINES = {
    "AUC": "AUC",
    "EER": "equal error rate",
    "TAR at FAR 0.01": "true accepts at 1 % false accepts",
}
KINDS = {"false_accepts": "Worst false accepts", "false_rejects": "Worst false rejects"}


class Headline(NamedTuple):
    """A large figure at the top of the page."""

    label: str
    text: str
    note: str
    value: Value


def render_page(report: ReportData, photos: PhotoFinder | None) -> str:
    """Return the page's HTML; without `photos` it has no pictures."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (HERE / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    shared = shared_plots(report)
    names = [model.name for model in report.models]
    return environment.get_template("page.html").render(
        report=report,
        title=" and ".join(names) if len(names) < 3 else ", ".join(names),
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_digest=digest,
        render_plot=_render_plot,
        several=len(names) > 1,
        headlines=_headlines(report),
        curves=[plot for plot in shared if plot.key != "differences"],
        differences=[plot for plot in shared if plot.key == "differences"],
        comparison=comparison_tables(report),
        models=list(_models(report, photos)),
        published=published_table(report),
        data=data_table(report),
        origin=origin_table(report),
    )


def _render_plot(plot: Plot) -> str:
    """Return the plot as SVG; matplotlib escapes the text in it, and the label is escaped here."""
    return inline_svg(plot.figure, plot.key, html.escape(f"{plot.title}. {plot.caption}"))


def _headlines(report: ReportData) -> list[Headline]:
    """Return four figures of a single verifier, or the accuracy of each of several."""
    if len(report.models) > 1:
        return [_accuracy(model.summary, f"{model.name}: accuracy") for model in report.models]
    summary = report.models[0].summary
    cards = [_accuracy(summary, "accuracy")]
    for label, value, bounds in figure_rows(summary):
        if label in HEADLINES:
            is_interval = bounds.text and value.value is not None
            note = f"95 % interval {bounds.text}" if is_interval else bounds.text
            cards.append(Headline(HEADLINES[label], value.text, note, value.value))
    return cards


def _accuracy(summary: Summary, label: str) -> Headline:
    return Headline(label, accuracy_text(summary), accuracy_note(summary), summary.accuracy)


def _models(report: ReportData, photos: PhotoFinder | None) -> Iterator[dict[str, Any]]:
    most = SHOWN_OF_ONE if len(report.models) == 1 else SHOWN_OF_SEVERAL
    for place, model in enumerate(report.models, 1):
        yield {
            "key": str(place),
            "data": model,
            "plots": {plot.key.split("-")[0]: plot for plot in model_plots(model, place)},
            "tables": model_tables(model, str(place)),
            "worst": _worst(model, photos, most),
        }


def _worst(model: ModelData, photos: PhotoFinder | None, most: int) -> list[dict[str, Any]]:
    """Return the worst pairs of each kind with the sides of each."""
    if model.worst is None:
        return []
    aligned = model.summary.aligned
    return [
        {
            "title": title,
            "kind": kind,
            "pairs": [
                (pair, [_side(name, photos, aligned) for name in (pair.left, pair.right)])
                for pair in model.worst[kind][:most]
            ],
        }
        for kind, title in KINDS.items()
    ]


def _side(name: str, photos: PhotoFinder | None, aligned: bool) -> dict[str, Any]:
    """Return a photo's name, its parts, between which it may wrap, and its picture if any."""
    path = None if photos is None else photos.found.get(name)
    return {
        "name": name,
        "label": name.replace("\\", "/").rpartition("/")[2].split("_"),
        "picture": None if path is None else data_uri(path, aligned),
    }
