"""The report as one HTML file: nothing is loaded, all text is escaped."""

import base64
import hashlib
import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from facepairs.bundles.error_table import ExpectedErrors, MeasuredRate
from facepairs.bundles.operating_point import OperatingPoint
from facepairs.evaluation.report.cells import Value, interval, percent
from facepairs.evaluation.report.data import ModelData, ReportData, point_label
from facepairs.evaluation.report.photos import PhotoFinder, photo_url
from facepairs.evaluation.report.plots.model import model_plots
from facepairs.evaluation.report.plots.shared import shared_plots
from facepairs.evaluation.report.plots.style import Plot, inline_svg
from facepairs.evaluation.report.summary_tables import (
    accuracy_label,
    accuracy_note,
    accuracy_text,
)
from facepairs.evaluation.report.tables import (
    ALIKE,
    GENUINE,
    STRANGERS,
    comparison_tables,
    data_table,
    history_table,
    model_tables,
)

TEMPLATES = Path(__file__).with_name("templates")
SHOWN_OF_ONE, SHOWN_OF_SEVERAL = 8, 4  # wrong pairs of each kind, for every verifier
KINDS = {
    "false_accepts": ("Strangers accepted", "Different people, accepted as one person"),
    "false_rejects": ("Genuine pairs missed", "One person, rejected as two people"),
}


class Headline(NamedTuple):
    """A large figure at the top of the page; `notes` stand below it, a line each."""

    label: str
    text: str
    notes: list[str]
    value: Value


def render_page(report: ReportData, photos: PhotoFinder | None) -> str:
    """Return the page's HTML; without `photos` it has no pictures."""
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
    plots = {plot.key: plot for plot in shared_plots(report)}
    return environment.get_template("page.html").render(
        report=report,
        title=f"{_joined([model.name for model in report.models])} on {report.dataset}",
        style=(TEMPLATES / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_digest=digest,
        render_plot=_render_plot,
        several=len(report.models) > 1,
        headlines=_headlines(report),
        words=_sentence(report.models[0]),
        origins=_origins(report.models),
        plots=plots,
        comparison=comparison_tables(report),
        models=list(_models(report, photos)),
        data=data_table(report),
        history=history_table(report),
    )


def _origins(models: list[ModelData]) -> str:
    """Return where the scores come from; of several verifiers, whose are of unknown origin."""
    if len(models) == 1:
        return f"Scores {models[0].provenance}"
    unknown = [model.name for model in models if model.summary.scored_by is None]
    return f"Scores of unknown origin: {_joined(unknown)}" if unknown else ""


def _joined(names: list[str]) -> str:
    """Return names as "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _render_plot(plot: Plot) -> str:
    """Return the plot as SVG; matplotlib escapes the text in it, and the label is escaped here."""
    return inline_svg(plot.figure, plot.key, html.escape(f"{plot.title}. {plot.caption}"))


def _headlines(report: ReportData) -> list[Headline]:
    """Return the figures of a single verifier, or the accuracy of each of several."""
    if len(report.models) > 1:
        return [
            _accuracy(model, f"{model.name}: ", [f"{_decides(model)}: {_in_words(model)}"])
            for model in report.models
        ]
    (model,) = report.models
    point = model.default_point
    rates = [
        (STRANGERS, point.fmr, point.fmr_interval),
        (ALIKE, point.lookalike_fmr, point.lookalike_fmr_interval),
        (GENUINE, point.fnmr, point.fnmr_interval),
    ]
    decided = [_decides(model)] if model.default_point is not model.points[0] else []
    balanced = [point_label(model.points[0])] if decided else []
    return [
        _accuracy(model, "", balanced),
        *(
            Headline(
                label, percent(value), [f"95 % interval {interval(bounds).text}", *decided], value
            )
            for label, value, bounds in rates
            if value is not None and bounds is not None
        ),
    ]


def _accuracy(model: ModelData, prefix: str, notes: list[str]) -> Headline:
    summary = model.summary
    label = prefix + accuracy_label(summary).lower()
    text, notes = accuracy_text(summary), [accuracy_note(summary), *notes]
    return Headline(label, text, notes, summary.balanced_accuracy)


def _decides(model: ModelData) -> str:
    """Return the name of the default operating point, as one that `verify` decides with."""
    label = point_label(model.default_point)
    return f"as verify decides ({label})" if model.default_point.is_default else label


def _sentence(model: ModelData) -> str:
    """Return the name of the default operating point and its errors in words."""
    text = f"{_decides(model)}: {_in_words(model)}."
    return text[0].upper() + text[1:]


def _in_words(model: ModelData) -> str:
    """Return the errors of the default operating point in words."""
    point, alike = model.default_point, None
    if point.lookalike_fmr is not None and point.lookalike_fmr_interval is not None:
        alike = MeasuredRate(point.lookalike_fmr, *point.lookalike_fmr_interval)
    errors = ExpectedErrors(
        fmr=MeasuredRate(point.fmr, *point.fmr_interval),
        lookalike_fmr=alike,
        fnmr=MeasuredRate(point.fnmr, *point.fnmr_interval),
    )
    return OperatingPoint(point.threshold, errors=errors).describe()


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
            "note": f"{note} (threshold: {point_label(model.points[0])})",
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
        "picture": None if path is None else photo_url(path, aligned),
    }
