"""The report's page, its tables and figures, made from invented scores and photos."""

import base64
import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from PIL import Image
from tiny.scores import draw_photos, invented, write_method

from facepairs.bundles.error_profile import Calibration
from facepairs.bundles.rates import OperatingPoint
from facepairs.evaluation.evaluate import Evaluation, evaluate
from facepairs.evaluation.lookalikes import LookAlikes
from facepairs.evaluation.page.page import render_page, worst_pairs
from facepairs.evaluation.scores import ScoredPairs, write_scores
from facepairs.verification.provenance import Provenance

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
def world(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("world")
    draw_photos(root / "photos")
    write_method(root / "run" / "fisher", invented())
    write_method(root / "run" / "pixels", invented(seed=1, apart=0.8))
    write_scores(root / "scores.csv", invented(seed=2, folds=0))
    return root


@pytest.fixture(scope="module")
def single(world) -> tuple[Evaluation, str]:
    found = evaluate([str(world / "run" / "fisher"), str(world / "photos")])
    return found, render_page(found.with_command("facepairs evaluate 'a b'"))


@pytest.fixture(scope="module")
def several(world) -> tuple[Evaluation, str]:
    found = evaluate([str(world / "run"), str(world / "scores.csv"), str(world / "photos")])
    return found, render_page(found.with_command("facepairs evaluate"), pictures=False)


def test_the_page_parses_and_loads_nothing(single, several):
    for _, html in (single, several):
        reader = read(html)
        assert not re.search(r"https?:|//[a-z]", html.split("<script>")[0])
        ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
        assert len(ids) == len(set(ids))
        assert not {"link", "iframe", "object", "base", "form"} & {tag for tag, _ in reader.tags}
        for _, attributes in reader.tags:
            assert not any(name.startswith("on") for name in attributes)
            for name in ("src", "href", "xlink:href"):
                assert (attributes.get(name) or "#").startswith(("#", "data:image/"))
        targets = {a["href"][1:] for tag, a in reader.tags if tag == "a"}
        assert targets <= set(ids)


def test_every_figure_and_table_is_on_the_page(single, several):
    for (found, html), title in ((single, "fisher on "), (several, "fisher, pixels, ")):
        figures = set(found.figures())
        assert {"roc", "det", "scores-1", "reliability-1"} <= figures
        assert set(re.findall(r'<figure id="figure-([^"]+)"', html)) == figures
        tables = {table.key for table in found.tables()}
        assert {"points-1", "figures-1", "folds-1", "history"} <= tables
        assert set(re.findall(r' id="table-([^"]+)"', html)) == tables - {"pairs"}
        assert f"<h1>{title}" in html
        assert html.count("data:image/svg+xml") == len(figures)
    assert 'id="table-differences"' in several[1]
    for text, (one, more) in {"<h2>Details</h2>": (1, 0), 'href="#comparison"': (0, 1)}.items():
        assert (single[1].count(text), several[1].count(text)) == (one, more)


def test_numbers_on_the_page_are_those_of_the_summary(single, several):
    found, html = single
    (summary,) = found.result.to_json()["models"]
    reader = read(html)
    cards = [
        a["data-value"] for _, a in reader.tags if a.get("class", "") in ("card first", "card")
    ]
    accuracy, errors = summary["accuracy"], summary["operating_points"][0]["errors"]
    shown = [accuracy["value"], errors["fmr"]["value"], errors["fnmr"]["value"]]
    assert [float(card) for card in cards] == shown
    values = {a["data-value"] for tag, a in reader.tags if tag == "td"}
    others = (summary["ece"], summary["auc"]["value"], summary["eer"]["value"])
    for value in (*shown, *others, summary["lfw_accuracy"]["value"]):
        assert str(value) in values
    text = "".join(reader.text)
    assert f"{100 * accuracy['value']:.2f} % ± {100 * accuracy['standard_error']:.2f}" in text
    assert "facepairs evaluate 'a b'" in text
    two = several[0].result.to_json()["comparison"]["differences"][0]
    values = {a["data-value"] for tag, a in read(several[1]).tags if tag == "td"}
    assert {str(two[name]["difference"]) for name in ("balanced_accuracy", "auc")} <= values


def test_worst_errors_are_shown_with_photos_and_scores(single):
    found, html = single
    one = found.measurements[0]
    accepted, threshold = one.by_default.accepted, one.by_default.by_pair
    margins = np.where(accepted & ~one.pairs.genuine, one.pairs.score - threshold, 0)
    worst = int(margins.argmax())
    images = [a for tag, a in read(html).tags if tag == "img"]
    pictures = [a for a in images if a["src"].startswith("data:image/jpeg")]
    assert len(pictures) == 2 * 2 * 8
    assert pictures[0]["alt"] == one.pairs.left[worst]
    data = base64.b64decode(pictures[0]["src"].partition(",")[2])
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        assert (image.format, image.size) == ("JPEG", (144, 144))
        assert not image.getexif()
    assert f"{one.pairs.score[worst]:.3f}" in html


def called(one, name):
    """Return the figures of a measurement under another name."""
    about = msgspec.structs.replace(one.summary.about, name=name)
    return msgspec.structs.replace(one.summary, about=about)


def test_names_are_escaped_everywhere(world):
    found = evaluate([str(world / "scores.csv")])
    (one,) = found.measurements
    scores = one.pairs
    evil = [f"{EVIL}/{EVIL}.png"] * len(scores)
    named = ScoredPairs(evil, evil, scores.genuine, scores.fold, scores.score)
    changed = replace(one, pairs=named, summary=called(one, EVIL), warnings=[EVIL])
    second = replace(changed, summary=called(one, "_second"))
    hostile = replace(found, measurements=(changed, second))
    html = render_page(hostile.with_command(EVIL))
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
    found = evaluate([str(nameless)])
    html = render_page(found)
    assert found.summary.true_folds == []
    assert "need the photos' names" in "".join(read(html).text)
    assert 'id="table-folds-1"' not in html


def test_few_and_perfect_scores_make_a_report(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("genuine,score\n1,3\n1,4\n0,1\n0,2\n")
    html = render_page(evaluate([str(path)]))
    assert "not enough pairs" in html
    path.write_text("genuine,score\n1,3\n1,3\n0,3\n0,3\n")
    perfect = evaluate([str(path)])
    assert "reliability-1" not in set(perfect.figures())
    read(render_page(perfect))


@pytest.fixture(scope="module")
def grouped(tmp_path_factory) -> tuple[Evaluation, Reader]:
    """Return a report with look-alikes and groups; people from 10 on are hard, group c is small."""
    root = tmp_path_factory.mktemp("grouped")
    scores = invented(4000, folds=0)
    hard = np.array([int(name[7:9]) >= 10 for name in scores.left])
    scores = replace(
        scores,
        score=scores.score + np.where(hard & ~scores.genuine, 1.0, 0.0),
        alike=LookAlikes.of(hard & ~scores.genuine),
    )
    write_scores(root / "scores.csv", scores)
    names = [f"Person_{k:02},{'ab'[k // 10]}" for k in range(20)]
    (root / "groups.csv").write_text("\n".join(["person,group", *names, "Person_19,c"]))
    found = evaluate([str(root / "scores.csv")], groups=root / "groups.csv")
    return found, read(render_page(found))


def test_the_largest_difference_of_groups_is_on_the_first_page_and_in_csv(grouped):
    found, _ = grouped
    tables = {table.key: table for table in found.tables()}
    (row, *_) = csv.DictReader(io.StringIO(tables["ratios-1"].to_csv()))
    ratio = found.summary.group_differences.fmr.worst_to_best
    names = ("worst to best", "worst to best low", "worst to best high")
    assert [float(row[name]) for name in names] == [ratio.value, *ratio.interval]
    facts = {row[0].text: row[1] for row in tables["statement"].rows}
    text = facts["Largest difference of groups, FMR"].text
    assert text.startswith(f"b to a: {ratio.value:.2f} (")
    assert text.endswith("larger than chance")
    fmr = found.summary.default_point.errors.fmr
    assert facts["Strangers accepted (FMR)"].text.endswith(f"; {fmr.count:,} of {fmr.of:,}")
    assert facts["This test shows"].text == f"FMR of at most {100 * fmr.interval[1]:.3g} %"


def test_groups_are_listed_worst_first_with_warnings(grouped):
    found, reader = grouped
    tables = {table.key: table for table in found.tables()}
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
    assert "table-groups-1" in ids


def test_a_page_says_what_a_verdict_costs_and_whose_the_scores_are(grouped):
    found, reader = grouped
    text = " ".join("".join(reader.text).split())
    assert "scores.csv on scores.csv" not in text
    assert "of unknown origin" in text
    errors = found.summary.default_point.errors
    cards = [
        a["data-value"] for _, a in reader.tags if a.get("class", "") in ("card first", "card")
    ]
    assert [float(card) for card in cards][1:] == [
        rate.value for rate in (errors.fmr, errors.lookalike_fmr, errors.fnmr)
    ]


def test_only_view2_is_called_view2(tmp_path):
    write_method(tmp_path / "fisher", invented(6000, folds=10))
    html = render_page(evaluate([str(tmp_path / "fisher")]))
    assert "fisher on LFW View 2" in html
    write_scores(tmp_path / "scores.csv", invented(6000, folds=10))  # other data in ten folds
    html = render_page(evaluate([str(tmp_path / "scores.csv")]))
    assert f"<h1>{tmp_path.name} on scores.csv</h1>" in html


def test_the_worst_pairs_are_those_that_verify_decides_wrongly(tmp_path):
    left = ["Ann/1.jpg", "Ann/1.jpg", "Bob/1.jpg", "Cyd/1.jpg"]
    right = ["Ann/2.jpg", "Bob/1.jpg", "Cyd/1.jpg", "Cyd/2.jpg"]
    genuine, score = np.array([True, False, False, True]), np.array([0.5, 0.4, 0.0, 1.0])
    scores = ScoredPairs(left, right, genuine, np.zeros(4, np.int16), score)
    origin = Provenance(
        model="mine",
        pairs="drawn",
        operating_point=OperatingPoint(0.6, "fmr-0.01", 0.01),
        calibration=Calibration(10.0, -3.0),
    )
    write_scores(tmp_path / "s.csv", replace(scores, origin=origin))
    (one,) = evaluate(tmp_path / "s.csv").measurements
    kinds = {kind: pairs for kind, _, _, pairs in worst_pairs(one, None)}
    assert list(kinds) == ["false_rejects"]
    assert [side.file for side in kinds["false_rejects"][0].sides] == ["1.jpg", "2.jpg"]
    assert one.by_default.accepted.tolist() == [False, False, False, True]
