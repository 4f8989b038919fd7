"""The report as one HTML file: nothing is loaded, all text is escaped."""

import base64
import hashlib
import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from facepairs.bundles.error_table import MeasuredRate
from facepairs.evaluation.report.cells import Value, interval, percent
from facepairs.evaluation.report.data import ModelData, ReportData
from facepairs.evaluation.report.facts import data_table, history_table, published_table
from facepairs.evaluation.report.photos import PhotoFinder, data_uri
from facepairs.evaluation.report.plots.model import model_plots
from facepairs.evaluation.report.plots.shared import shared_plots
from facepairs.evaluation.report.plots.style import Plot, inline_svg
from facepairs.evaluation.report.summary_tables import accuracy_note, accuracy_text
from facepairs.evaluation.report.tables import comparison_tables, model_tables

HERE = Path(__file__).parent
SHOWN_OF_ONE, SHOWN_OF_SEVERAL = 8, 4  # wrong pairs of each kind, for every verifier
KINDS = {
    "false_accepts": ("Strangers accepted", "Different people, accepted as one person"),
    "false_rejects": ("Genuine pairs missed", "One person, rejected as two people"),
}


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
    plots = {plot.key: plot for plot in shared_plots(report)}
    return environment.get_template("page.html").render(
        report=report,
        title=f"{_joined([model.name for model in report.models])} on {report.dataset}",
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_digest=digest,
        render_plot=_render_plot,
        several=len(report.models) > 1,
        headlines=_headlines(report),
        plots=plots,
        comparison=comparison_tables(report),
        models=list(_models(report, photos)),
        published=published_table() if report.is_view2 else None,
        data=data_table(report),
        history=history_table(report),
    )


def _joined(names: list[str]) -> str:
    """Return names as "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _render_plot(plot: Plot) -> str:
    """Return the plot as SVG; matplotlib escapes the text in it, and the label is escaped here."""
    return inline_svg(plot.figure, plot.key, html.escape(f"{plot.title}. {plot.caption}"))


def _headlines(report: ReportData) -> list[Headline]:
    """Return the figures of a single verifier, or the accuracy of each of several."""
    if len(report.models) > 1:
        return [_accuracy(model, f"{model.name}: accuracy") for model in report.models]
    (model,) = report.models
    point = model.default_point
    cards = [
        _accuracy(model, "accuracy"),
        _rate("strangers accepted (FMR)", point.fmr),
        _rate("look-alikes accepted", point.lookalike_fmr),
        _rate("genuine pairs missed (FNMR)", point.fnmr),
    ]
    return [card for card in cards if card is not None]


def _accuracy(model: ModelData, label: str) -> Headline:
    summary = model.summary
    return Headline(label, accuracy_text(summary), accuracy_note(summary), summary.accuracy)


def _rate(label: str, measured: MeasuredRate | None) -> Headline | None:
    if measured is None:
        return None
    note = f"95 % interval {interval(measured.interval).text}"
    return Headline(label, percent(measured.rate), note, measured.rate)


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
            "note": note,
            "kind": kind,
            "pairs": [
                (pair, [_side(name, photos, aligned) for name in (pair.left, pair.right)])
                for pair in model.worst[kind][:most]
            ],
        }
        for kind, (title, note) in KINDS.items()
    ]


def _side(name: str, photos: PhotoFinder | None, aligned: bool) -> dict[str, Any]:
    """Return a photo's name, its parts, between which it may wrap, and its picture if any."""
    path = None if photos is None else photos.found.get(name)
    return {
        "name": name,
        "label": name.replace("\\", "/").rpartition("/")[2].split("_"),
        "picture": None if path is None else data_uri(path, aligned),
    }
