"""A report is computed again from its scores: the same, or what differs."""

import json
import re

import numpy as np
import pytest
from processes.command_line import in_process
from tiny.scores import draw_photos, invented, photo, write_method

from facepairs.errors import BadData
from facepairs.evaluation.evaluate import evaluate
from facepairs.evaluation.replay import replay
from facepairs.evaluation.scores import write_scores
from facepairs.support.results import json_text
from facepairs.verification.provenance import read_provenance


@pytest.fixture
def world(tmp_path):
    draw_photos(tmp_path / "photos")
    write_scores(tmp_path / "one.csv", invented(seed=2, folds=0))
    write_scores(tmp_path / "two.csv", invented(seed=3, folds=0, apart=1.0))
    write_method(tmp_path / "fisher", invented())
    rows = [f"Person_{number:02},{'ab'[number % 2]}" for number in range(20)]
    (tmp_path / "groups.csv").write_text("\n".join(["person,group", *rows, ""]))
    return tmp_path


def report_of(world, *sources, **others):
    path = world / "report.json"
    path.write_text(json_text(evaluate([world / name for name in sources], **others).result))
    return path


def test_reports_of_scores_are_the_same_again(world):
    cameras = [
        f"{photo(k, n)},{'door' if k % 3 else 'car'}\n" for k in range(20) for n in range(1, 7)
    ]
    (world / "factors.csv").write_text("photo,camera\n" + "".join(cameras))
    families = [f"Person_{number:02},{number // 2}\n" for number in range(6)]
    (world / "families.csv").write_text("person,family\n" + "".join(families))
    given = {name: world / f"{name}.csv" for name in ("groups", "families", "factors")}
    assert replay(report_of(world, "one.csv", **given)).same
    groups = {"groups": world / "groups.csv", "families": None}
    for sources in (["one.csv"], ["one.csv", "two.csv"], ["fisher"]):
        found = replay(report_of(world, *sources, **groups))
        assert found.same, found.differences
        assert found.figures > 100
        assert found.scores == [str(world / name) for name in sources]
        assert found.not_in_scores == []


def test_the_scores_of_a_verifier_are_enough(world, make_bundle):
    scores, report = world / "own.csv", world / "report.json"
    bundle = make_bundle("embedding").folder
    done = in_process("evaluate", bundle, world / "photos", "--out", scores, "--json")
    report.write_text(done.stdout)
    assert len(json.loads(done.stdout)["models"][0]["operating_points"]) > 1
    again = in_process("evaluate", "--replay", report)
    assert again.stdout.startswith("the same")
    moved = world / "elsewhere"
    moved.mkdir()
    for path in (scores, scores.with_name("own.csv.json"), report):
        path.rename(moved / path.name)
    values = json.loads(in_process("evaluate", "--replay", moved / "report.json", "--json").stdout)
    assert values["same"]
    assert values["scores"] == [str(moved / "own.csv")]
    (about,) = (model["about"] for model in json.loads(done.stdout)["models"])
    record = json.loads(done.stdout)["record"]
    assert record["photos_sha256"] == read_provenance(moved / "own.csv").photos_sha256
    assert len(record["photos_sha256"]) == 64
    digest = json.loads((bundle / "manifest.json").read_text())["manifest_sha256"]
    assert about["manifest_sha256"] == digest
    assert evaluate(moved / "own.csv").summary.about.manifest_sha256 == digest


def test_files_beside_the_report_come_first_unless_they_have_changed(world, monkeypatch):
    report = report_of(world, "one.csv")
    moved = world / "elsewhere"
    moved.mkdir()
    report = report.rename(moved / "report.json")
    (moved / "one.csv").write_bytes((world / "one.csv").read_bytes())
    monkeypatch.chdir(moved)
    for _ in range(2):
        assert replay("report.json").scores == [str(moved / "one.csv")]
        (world / "one.csv").write_text("genuine,score\n")  # no longer asked for
    (moved / "one.csv").rename(world / "one.csv")
    (moved / "one.csv").write_text("genuine,score\n")
    assert replay("report.json").scores == [str(world / "one.csv")]


def test_replay_takes_no_other_arguments(world):
    report = report_of(world, "one.csv")
    for words in (["one.csv"], ["--groups", "g.csv"], ["--no-images"], ["--out", "s.csv"]):
        error = in_process("evaluate", *words, "--replay", report, check=2).stderr
        assert "works alone, or with --json" in error
        assert error.count("\n") == 1


def test_changed_figures_are_named(world):
    report = report_of(world, "one.csv")
    values = json.loads(report.read_text())
    values["models"][0]["auc"]["value"] -= 0.01
    values["models"][0]["people"] = 21
    report.write_text(json.dumps(values))
    done = in_process("evaluate", "--replay", report, "--json", check=1)
    found = json.loads(done.stdout)
    assert not found["same"]
    assert {one["figure"] for one in found["differences"]} == {
        "models.0.auc.value",
        "models.0.people",
    }
    (gap,) = (one for one in found["differences"] if one["figure"] == "models.0.people")
    assert (gap["reported"], gap["again"]) == (21, 20)
    assert in_process("evaluate", "--replay", report, check=1).stdout.startswith("differs")


def test_what_cannot_be_computed_again_is_refused(world):
    report = report_of(world, "one.csv", groups=world / "groups.csv")
    (world / "groups.csv").write_text("person,group\nPerson_00,a\n")
    with pytest.raises(BadData, match=r"groups\.csv: has changed"):
        replay(report)
    report = report_of(world, "one.csv")
    write_scores(world / "one.csv", invented(seed=5, folds=0))
    with pytest.raises(BadData, match=r"one\.csv: has changed"):
        replay(report)
    (world / "one.csv").unlink()
    with pytest.raises(BadData, match="is missing"):
        replay(report)
    values = json.loads(report.read_text())
    for scores in ([None], []):
        values["record"]["scores"] = scores
        report.write_text(json.dumps(values))
        with pytest.raises(BadData, match=re.escape(str(report))):
            replay(report)
    for text in ("", "[]", '{"models": []}', "{}"):
        report.write_text(text)
        with pytest.raises(BadData, match=re.escape(str(report))):
            replay(report)


def test_the_record_says_how_the_test_was_made(world):
    found = evaluate([world / "one.csv"], groups=world / "groups.csv")
    record = found.with_command("facepairs evaluate one.csv").record
    assert (record.scores, record.photos) == ([str(world / "one.csv")], 120)
    assert set(record.sha256) == {str(world / "one.csv"), str(world / "groups.csv")}
    assert record.command == "facepairs evaluate one.csv"
    assert (record.groups, record.families) == (str(world / "groups.csv"), None)
    assert (record.data, record.protocol, found.record.command) == (None, None, "")
    statement = found.tables()[0]
    assert statement.key == "statement"
    texts = {row[0].text: row[1] for row in statement.rows}
    fmr = found.summary.default_point.errors.fmr
    assert texts["Strangers accepted (FMR)"].interval == fmr.interval
    assert set("_") == set(texts["Signature"].text)
    assert np.isclose(texts["Genuine pairs missed (FNMR)"].value, 1 - 0.88, atol=0.1)
