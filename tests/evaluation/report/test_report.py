"""The report's page and folder, made from invented scores and photos."""

import base64
import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image
from tiny.scores import draw_photos, invented, write_method

from facepairs.errors import BadConfig
from facepairs.evaluation.evaluate import Evaluation, evaluate
from facepairs.evaluation.report.data import ReportData, report_data
from facepairs.evaluation.report.page import render_page
from facepairs.evaluation.report.photos import PhotoFinder
from facepairs.evaluation.report.plots.model import model_plots
from facepairs.evaluation.report.plots.shared import shared_plots
from facepairs.evaluation.report.plots.style import svg
from facepairs.evaluation.report.tables import all_tables
from facepairs.evaluation.report.write import check_places, write_reports
from facepairs.evaluation.scores import ScoreTable, read_scores, write_scores
from facepairs.evaluation.serialize import to_plain
from facepairs.evaluation.sources.origin import Origin

EVIL = "<script>alert(1)</script>$x_y$&\"'"


class Reader(HTMLParser):
    """Checks that tags close in order; keeps ids, attributes and the text of elements."""

    void: ClassVar[set[str]] = {"meta", "img", "wbr", "br", "link", "input"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def world(few_draws, tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("world")
    draw_photos(root / "photos")
    write_method(root / "run" / "siamese", invented())
    write_method(root / "run" / "pixels", invented(seed=1, apart=0.8))
    write_scores(root / "scores.csv", invented(seed=2, folds=0))
    return root


@pytest.fixture(scope="module")
def single(world) -> tuple[Evaluation, ReportData, str]:
    found = evaluate([str(world / "run" / "siamese"), str(world / "photos")])
    report = report_data(found, "facepairs evaluate 'a b'")
    photos = PhotoFinder.below(found.data, found.measurements[0].scores)
    return found, report, render_page(report, photos)


@pytest.fixture(scope="module")
def several(world) -> tuple[Evaluation, ReportData, str]:
    found = evaluate([str(world / "run"), str(world / "scores.csv"), str(world / "photos")])
    report = report_data(found, "facepairs evaluate")
    return found, report, render_page(report, None)


def test_the_page_parses_and_loads_nothing(single, several):
    for _, _, html in (single, several):
        reader = read(html)
        assert not re.search(r"https?:|//[a-z]", html.split("<script>")[0])
        ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
        assert len(ids) == len(set(ids))
        assert not {"link", "iframe", "object", "base", "form"} & {tag for tag, _ in reader.tags}
        for _, attributes in reader.tags:
            assert not any(name.startswith("on") for name in attributes)
            for name in ("src", "href", "xlink:href"):
                assert (attributes.get(name) or "#").startswith(("#", "data:image/jpeg;base64,"))
        targets = {a["href"][1:] for tag, a in reader.tags if tag == "a"}
        assert targets <= set(ids)
        used = {a["href"][1:] for tag, a in reader.tags if tag == "use"}
        used |= set(re.findall(r"url\(#([^)]+)\)", html))
        assert used <= set(ids)


def test_every_figure_and_table_is_on_the_page(single, several):
    for (_, report, html), names in (
        (single, ["siamese"]),
        (several, ["pixels", "siamese", "world"]),
    ):
        assert [model.name for model in report.models][: len(names) - 1] == names[:-1] or (
            len(names) == 1
        )
        for key in ("figure-roc", "figure-det", "figure-scores-1", "figure-reliability-1"):
            assert f'id="{key}"' in html
        for key in ("folds-1", "quality-1"):
            assert f'id="figure-{key}"' in html
            assert f'id="table-{key}"' in html
        for key in ("points-1", "figures-1", "people-1", "data", "history"):
            assert f'id="table-{key}"' in html
        title = "pixels, siamese and " if len(names) > 1 else "siamese on "
        assert f"<h1>{title}" in html
        assert (
            html.count("<svg") == html.count('role="img"') == len(re.findall("<figure id=", html))
        )
    assert 'id="table-differences"' in several[2]


def test_numbers_on_the_page_are_those_of_the_summary(single, several):
    found, report, html = single
    summary = found.to_json()
    reader = read(html)
    cards = [
        a["data-value"] for _, a in reader.tags if a.get("class", "") in ("card first", "card")
    ]
    assert [float(card) for card in cards] == [summary[key] for key in ("accuracy", "fmr", "fnmr")]
    values = {a["data-value"] for tag, a in reader.tags if tag == "td"}
    for value in (summary["accuracy"], summary["fmr"], summary["fnmr"], summary["ece"]):
        assert str(value) in values
    text = "".join(reader.text)
    assert (
        f"{100 * summary['accuracy']:.2f} % ± {100 * summary['accuracy_standard_error']:.2f}"
        in text
    )
    assert "facepairs evaluate 'a b'" in text
    assert to_plain(report.models[0].summary) == summary
    test = several[0].to_json()["comparison"]["tests"][0]
    values = {a["data-value"] for tag, a in read(several[2]).tags if tag == "td"}
    assert {str(test["p_adjusted"]), str(test["balanced_accuracy"]["difference"])} <= values
    assert str(test["auc"]["difference"]) in values


def test_worst_errors_are_shown_with_photos_and_scores(single):
    found, report, html = single
    one = found.measurements[0]
    wrong = report.models[0].worst
    margins = (one.scores.score - one.threshold)[one.accepted & ~one.scores.genuine]
    worst = wrong["false_accepts"][0]
    assert worst.score - worst.threshold == pytest.approx(margins.max())
    assert len(wrong["false_accepts"]) == 12
    pictures = [a for tag, a in read(html).tags if tag == "img"]
    assert len(pictures) == 2 * 2 * 8
    assert pictures[0]["alt"] == worst.left
    data = base64.b64decode(pictures[0]["src"].partition(",")[2])
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        assert (image.format, image.size) == ("JPEG", (144, 144))
        assert not image.getexif()
    assert f"{worst.score:.3f}" in html


def test_names_are_escaped_everywhere(world):
    found = evaluate([str(world / "scores.csv")])
    (one,) = found.measurements
    scores = one.scores
    evil = [f"{EVIL}/{EVIL}.png"] * len(scores)
    named = ScoreTable(evil, evil, scores.genuine, scores.fold, scores.score)
    changed = replace(one, scores=named, name=EVIL, origin=Origin(method=EVIL), warnings=[EVIL])
    hostile = replace(found, measurements=(changed, replace(changed, name="_second")))
    html = render_page(report_data(hostile, EVIL), None)
    reader = read(html)
    assert sum(tag == "script" for tag, _ in reader.tags) == 1
    assert EVIL in "".join(reader.text)
    assert any(EVIL in (a.get("title") or "") for _, a in reader.tags)
    assert "$x_y$" in "".join(reader.text)  # matplotlib would set it as a formula


def test_scores_without_names_or_folds_still_make_a_report(tmp_path):
    scores = invented(folds=0)
    nameless = tmp_path / "nameless.csv"
    rows = zip(scores.genuine, scores.score, strict=True)
    nameless.write_text("genuine,score\n" + "".join(f"{int(g)},{s}\n" for g, s in rows))
    report = report_data(evaluate([str(nameless)]), "")
    html = render_page(report, None)
    read(html)
    (model,) = report.models
    assert (model.people, model.worst, model.quality) == (None, None, None)
    assert model.summary.true_folds == []
    assert "need the photos' names" in "".join(read(html).text)
    assert 'id="figure-folds-1"' not in html


def test_few_and_perfect_scores_make_a_report(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("genuine,score\n1,3\n1,4\n0,1\n0,2\n")
    html = render_page(report_data(evaluate([str(path)]), ""), None)
    assert "not enough pairs" in html
    assert 'id="table-trade-offs' not in html
    path.write_text("genuine,score\n1,3\n1,3\n0,3\n0,3\n")
    report = report_data(evaluate([str(path)]), "")
    assert report.models[0].reliability is None
    read(render_page(report, None))


def test_the_folder_has_the_plots_and_the_same_numbers(single, tmp_path):
    found, data, _ = single
    out = tmp_path / "new" / "report"
    check_places(None, out)
    write_reports(found, "facepairs", None, out)
    report = json.loads((out / "report.json").read_text())
    assert [model["summary"] for model in report["models"]] == [found.to_json()]
    plots = sorted(path.stem for path in (out / "plots").glob("*.svg"))
    assert {"roc", "det", "scores-1", "folds-1"} <= set(plots)
    drawn = [*shared_plots(data), *model_plots(data.models[0], 1)]
    assert plots == sorted(plot.key for plot in drawn)
    for plot in drawn:
        if plot.key in ("roc", "scores-1"):
            assert svg(plot.figure) == (out / "plots" / f"{plot.key}.svg").read_text()
        picture = io.BytesIO()
        plot.figure.savefig(picture, facecolor="white")
        with Image.open(picture) as image:
            assert np.asarray(image.convert("L")).std() > 5
    with open(out / "tables" / "figures-1.csv", encoding="utf-8", newline="") as handle:
        rows = {row["figure"]: row for row in csv.DictReader(handle)}
    for label, key in (("AUC", "auc"), ("Accuracy", "accuracy")):
        assert float(rows[label]["value"]) == found.to_json()[key]
        bounds = [float(rows[label][f"95 % interval {end}"]) for end in ("low", "high")]
        assert bounds == found.to_json()[f"{key}_interval"]
    text = {"figure", "operating point", "what", "quality", "third", "person", "method", "source"}
    text |= {"trained on", "licence of the weights", "95 % interval"}  # or why there is none
    for path in (out / "tables").glob("*.csv"):
        with open(path, encoding="utf-8", newline="") as handle:
            for row in csv.DictReader(handle):
                cells = [] if "what" in row else [row[name] for name in row.keys() - text]
                assert all(cell == "too few pairs" or float(cell or 0) >= 0 for cell in cells), row
    back = read_scores(out / "scores" / "1-siamese.csv")
    np.testing.assert_array_equal(back.score, found.measurements[0].scores.score)


@pytest.fixture(scope="module")
def grouped(few_draws, tmp_path_factory) -> tuple[ReportData, Reader]:
    """Return a report with look-alikes and groups; people from 10 on are hard, group c is small."""
    root = tmp_path_factory.mktemp("grouped")
    scores = invented(4000, folds=0)
    hard = np.array([int(name[7:9]) >= 10 for name in scores.left])
    scores = replace(
        scores,
        score=scores.score + np.where(hard & ~scores.genuine, 1.0, 0.0),
        cluster=np.where(hard, 2, 1).astype(np.int16),
    )
    write_scores(root / "scores.csv", scores)
    names = [f"Person_{k:02},{'ab'[k // 10]}" for k in range(20)]
    (root / "groups.csv").write_text("\n".join(["person,group", *names, "Person_19,c"]))
    found = evaluate([str(root / "scores.csv")], groups=root / "groups.csv")
    report = report_data(found, "")
    return report, read(render_page(report, None))


def test_groups_and_clusters_are_listed_worst_first_with_warnings(grouped):
    report, reader = grouped
    tables = {table.key: table for table in all_tables(report)}
    assert [row[0].text for row in tables["clusters-1"].rows] == ["2", "1"]
    groups = tables["groups-1"]
    assert groups.columns[-1] == "warning"
    assert {row[0].text: row[-1].text for row in groups.rows} == {
        "b": "",
        "a": "",
        "c": "too few to judge",
    }
    rates = [row[1].value for row in groups.rows if row[1].value is not None]
    assert rates == sorted(rates, reverse=True)
    for row in groups.rows[:2]:
        assert re.fullmatch(r"\d+\.\d\d % \(\d+\.\d\d to \d+\.\d\d\)", row[1].text)
    ids = {attributes.get("id") for _, attributes in reader.tags}
    assert {"table-groups-1", "table-clusters-1", "table-trade-offs-1"} <= ids


def test_a_page_says_in_words_what_a_verdict_costs_and_whose_the_scores_are(grouped):
    report, reader = grouped
    text = " ".join("".join(reader.text).split())
    assert "scores.csv on scores.csv" not in text
    assert "Scores of unknown origin" in text
    point = report.models[0].default_point
    assert re.search(r"in \d+ strangers would pass, .* of those who look alike; .* missed\.", text)
    cards = [
        a["data-value"] for _, a in reader.tags if a.get("class", "") in ("card first", "card")
    ]
    assert [float(card) for card in cards][1:] == [point.fmr, point.lookalike_fmr, point.fnmr]


def test_only_view2_is_called_view2(tmp_path):
    write_method(tmp_path / "siamese", invented(6000, folds=10))
    html = render_page(report_data(evaluate([str(tmp_path / "siamese")]), ""), None)
    assert "siamese on LFW, View 2" in html
    write_scores(tmp_path / "scores.csv", invented(6000, folds=10))  # other data in ten folds
    report = report_data(evaluate([str(tmp_path / "scores.csv")]), "")
    assert report.dataset == "scores.csv"


def test_a_report_does_not_replace_other_files(tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"x")
    with pytest.raises(BadConfig, match="neither a report nor an empty folder"):
        check_places(None, tmp_path)
    with pytest.raises(BadConfig, match="--report"):
        check_places(tmp_path / "r.pdf", None)
