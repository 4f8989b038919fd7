"""The report as one HTML file: everything inside, nothing loaded, all text escaped."""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from facepairs.evaluation.photos import Photos
from facepairs.evaluation.report.model_plots import model_plots
from facepairs.evaluation.report.pictures import data_uri
from facepairs.evaluation.report.shared_plots import shared_plots
from facepairs.evaluation.report.style import Plot, inline_svg
from facepairs.evaluation.report.tables import (
    accuracy_note,
    accuracy_text,
    data_table,
    model_tables,
    models_table,
    origin_table,
    published_table,
    tests_table,
)
from facepairs.support.atomic import atomic_file

HERE = Path(__file__).parent
SHOWN = (12, 6)  # wrong pairs of each kind, for one verifier and for each of several
KINDS = {"false_accepts": "Worst false accepts", "false_rejects": "Worst false rejects"}


def write_page(path: Path, numbers: Mapping[str, Any], photos: Photos | None) -> None:
    """Write the page, whole or not at all; without `photos` it has no pictures.

    Raises BadData where the place cannot be written.
    """
    text = page(numbers, photos)
    with atomic_file(path) as handle:
        handle.write(text)


def page(numbers: Mapping[str, Any], photos: Photos | None) -> str:
    """Give the page's HTML."""
    import jinja2
    from markupsafe import Markup, escape

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def drawn(plot: Plot) -> Markup:
        label = f"{plot.title}. {plot.caption}"
        return Markup(inline_svg(plot.figure, plot.key, str(escape(label))))  # noqa: S704 - matplotlib escapes its text, the label is escaped here

    script = (HERE / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    several = len(numbers["models"]) > 1
    shared = shared_plots(numbers)
    return environment.get_template("page.html").render(
        numbers=numbers,
        title=_title(numbers),
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        script_digest=digest,
        drawn=drawn,
        several=several,
        headlines=_headlines(numbers),
        curves=[plot for plot in shared if plot.key != "differences"],
        differences=[plot for plot in shared if plot.key == "differences"],
        comparison=_comparison_tables(numbers),
        models=list(_models(numbers, photos)),
        published=published_table(numbers),
        data=data_table(numbers),
        origin=origin_table(numbers),
    )


def _title(numbers: Mapping[str, Any]) -> str:
    names = [model["name"] for model in numbers["models"]]
    return " against ".join(names) if len(names) < 3 else ", ".join(names)


def _headlines(numbers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the large figures: of one verifier four, of several the accuracy of each."""
    if len(numbers["models"]) > 1:
        return [
            _accuracy_card(model["summary"], f"{model['name']}: accuracy")
            for model in numbers["models"]
        ]
    summary = numbers["models"][0]["summary"]
    low, high = summary["auc_interval"]
    return [
        _accuracy_card(summary, "accuracy"),
        {
            "label": "AUC",
            "text": f"{summary['auc']:.4f}",
            "note": f"95 % interval {low:.4f} to {high:.4f}",
            "value": summary["auc"],
        },
        {
            "label": "equal error rate",
            "text": f"{100 * summary['eer']:.2f} %",
            "note": "where false accepts and false rejects are equally frequent",
            "value": summary["eer"],
        },
        _tar_card(summary["tar_at_far"]["0.01"]),
    ]


def _accuracy_card(summary: Mapping[str, Any], label: str) -> dict[str, Any]:
    return {
        "label": label,
        "text": accuracy_text(summary),
        "note": accuracy_note(summary),
        "value": summary["accuracy"],
    }


def _tar_card(tar: Mapping[str, Any]) -> dict[str, Any]:
    label = "true accepts at 1 % false accepts"
    if tar["tar"] is None:
        return {"label": label, "text": "-", "note": tar["reason"], "value": None}
    low, high = tar["tar_interval"]
    return {
        "label": label,
        "text": f"{100 * tar['tar']:.1f} %",
        "note": f"95 % interval {100 * low:.1f} to {100 * high:.1f}",
        "value": tar["tar"],
    }


def _comparison_tables(numbers: Mapping[str, Any]) -> list[Any]:
    if not numbers["comparison"]:
        return []
    return [models_table(numbers), tests_table(numbers["comparison"])]


def _models(numbers: Mapping[str, Any], photos: Photos | None) -> Iterator[dict[str, Any]]:
    most = SHOWN[len(numbers["models"]) > 1]
    for place, model in enumerate(numbers["models"], 1):
        plots = {plot.key.split("-")[0]: plot for plot in model_plots(model, place)}
        yield {
            "key": str(place),
            "name": model["name"],
            "summary": model["summary"],
            "plots": plots,
            "tables": model_tables(model, str(place)),
            "reliability": model["reliability"],
            "quality_reason": model["quality_reason"],
            "named": model["people"] is not None,
            "worst": _worst(model, photos, most),
        }


def _worst(model: Mapping[str, Any], photos: Photos | None, most: int) -> list[dict[str, Any]]:
    """Give the worst pairs of each kind, their photos as `data:` addresses where there are any."""
    if model["worst"] is None:
        return []
    return [
        {
            "title": title,
            "kind": kind,
            "pairs": [
                {**row, "sides": [_side(row[side], photos) for side in ("left", "right")]}
                for row in model["worst"][kind][:most]
            ],
        }
        for kind, title in KINDS.items()
    ]


def _side(name: str, photos: Photos | None) -> dict[str, Any]:
    path = None if photos is None else photos.found.get(name)
    return {
        "name": name,
        "label": name.replace("\\", "/").rpartition("/")[2].split("_"),
        "picture": None if path is None else data_uri(path),
    }
