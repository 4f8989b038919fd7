"""`facepairs evaluate` with reports and comparisons."""

import json
from pathlib import Path

import pytest
from processes.command_line import Result, in_process
from tiny.scores import draw_photos, invented, write_method

from facepairs.evaluation.error_rates import ThresholdFrom
from facepairs.evaluation.report.tables import SOURCES
from facepairs.evaluation.scores import write_scores


def evaluate(*arguments: object, check: int = 0) -> Result:
    return in_process("evaluate", *arguments, check=check)


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("world")
    draw_photos(root / "photos")
    write_method(root / "run" / "fisher", invented())
    write_scores(root / "scores.csv", invented(seed=2, folds=0))
    return root


def test_one_method_s_folder_gives_its_figures_and_a_report(world, tmp_path):
    page = tmp_path / "report.html"
    where = (world / "run" / "fisher", world / "photos")
    done = evaluate(*where, "--report", page, "--json")
    (summary,) = json.loads(done.stdout)["models"]
    assert summary["threshold_source"] == "own_networks"
    html = page.read_text()
    assert html.count("<img") > 10
    assert "written: " not in done.stderr
    assert "facepairs evaluate" in html


def test_a_report_without_pictures(world, tmp_path):
    page = tmp_path / "report.html"
    done = evaluate(world / "scores.csv", world / "photos", "--report", page, "--no-images")
    assert f"written: {page}\n" in done.stderr
    html = page.read_text()
    assert "data:image/jpeg" not in html


def test_pairs_without_a_score_and_folds_that_are_missing_are_told(world, tmp_path):
    header, first, *rows = (world / "scores.csv").read_text().splitlines()
    cells = dict(zip(header.split(","), first.split(","), strict=True)) | {"score": ""}
    lines = [f"{header},error", f"{','.join(cells.values())},no face", *(f"{row}," for row in rows)]
    scores = tmp_path / "scores.csv"
    scores.write_text("\n".join(lines) + "\n")
    done = evaluate(scores)
    assert f"warning: {scores}: left out: 1 pair without a score or a label\n" in done.stderr
    part = tmp_path / "fisher"
    write_method(part, invented())
    result = json.loads((part / "result.json").read_text())
    for folds, told in ((5, True), (4, False)):
        (part / "result.json").write_text(json.dumps({**result, "folds_in_all": folds}))
        warning = f"warning: {part}: 4 of 5 folds are done; View 2 needs all\n"
        assert (warning in evaluate(part).stderr) == told


def test_several_are_compared_in_a_table(world):
    pairs, blank, title, *lines = evaluate(world / "run", world / "scores.csv").stdout.splitlines()
    assert (pairs.split()[0], blank) == ("Pairs", "")
    assert title.startswith("Verifiers. ")
    assert SOURCES[ThresholdFrom.OTHER_FOLDS] in title  # both decide by one rule
    assert lines[0].startswith("verifier")
    assert [line.split()[0] for line in lines[1:3]] == ["fisher", world.name]
    assert "balanced accuracy" in lines[5]


def test_a_bundle_beside_a_scores_file_of_its_own(world, make_bundle, tmp_path):
    """A verifier's scores, written and compared with itself: no difference whatever."""
    scores, bundle = tmp_path / "own.csv", make_bundle("embedding").folder
    header, *rows = (world / "scores.csv").read_text(encoding="utf-8").splitlines()
    once = {tuple(row.split(",")[:2]): row for row in rows}  # no pair twice in a list of pairs
    listed = tmp_path / "pairs.csv"
    listed.write_text("\n".join([header, *once.values()]) + "\n", encoding="utf-8")
    pairs = ("--pairs", listed)
    evaluate(bundle, world / "photos", *pairs, "--out", scores)
    done = evaluate(bundle, scores, world / "photos", *pairs, "--json")
    compared = json.loads(done.stdout)
    (two,) = compared["comparison"]["differences"]
    assert two["auc"]["difference"] == 0
    assert compared["models"][0]["auc"] == compared["models"][1]["auc"]
