"""`train`, `evaluate` and `calibrate` as a notebook calls them, on drawn faces."""

import json

import pytest
from processes.command_line import in_process

import facepairs
from facepairs.bundles.bundle import Bundle
from facepairs.config import load_config
from facepairs.errors import BadConfig, BadData, BadRun


def test_a_run_has_its_history_settings_and_verifier(difference_run, faces):
    run, losses, lines = difference_run
    assert not run.interrupted
    assert [row["loss"] for row in run.history] == losses
    assert len(losses) == 2
    assert run.config.align == "landmarks"  # not given
    assert run.bundle == run.out / "bundle"
    told = json.loads((run.out / "result.json").read_text())
    decides, plain = told.pop("operating_point"), json.loads(json.dumps(run.to_json()))
    assert plain | told == plain
    assert decides["threshold"] == run.verifier().operating_point().threshold
    photos = sorted(faces.glob("*/*.jpg"))
    assert -1e6 < run.verifier().verify(photos[0], photos[1]).score < 1e6
    told = [" ".join(line.split()[:2]) for line in lines]
    assert told == [
        "store: memory", "warning: too", "too few", "epoch 1/2", "epoch 2/2", "exporting epoch"
    ]  # fmt: skip
    bundle = Bundle.open(run.bundle)
    facts = {
        "seed": 0, "people": run.people["training"], "images": 4 * run.people["training"],
        "pairs": 640, "epochs": 2, "epoch": run.epoch, "seconds": run.seconds,
        "val_auc": run.val_auc, "val_people": 0,
    }  # fmt: skip
    assert bundle.raw["training"] | facts == bundle.raw["training"]
    assert bundle.raw["network"]["parity_with_keras"] < 1e-4
    errors = bundle.profile.errors
    calibrating = run.people["calibration"]
    assert errors.measured_on == f"{calibrating} people held out of training"
    assert (errors.people, errors.genuine_pairs) == (calibrating, 6 * calibrating)
    assert run.people | {"test": 6, "validation": 0} == run.people
    assert sum(run.people.values()) == 24


def test_a_run_resumes_with_its_settings_given_again(difference_run, difference_settings, faces):
    run, lines = difference_run.run, []
    given = load_config(difference_settings)
    for config in (None, given):
        with facepairs.showing(log=lines.append):
            again = facepairs.train(faces, run.out, config, resume=True)
        assert again == run
        assert "is finished after 2 epochs" in lines.pop()
    with pytest.raises(BadConfig) as caught:
        facepairs.train(faces, run.out, given.replace(seed=4), resume=True)
    assert caught.value.arguments == ("seed",)
    with pytest.raises(BadRun):
        facepairs.train(faces, run.out, given)
    with pytest.raises(BadConfig) as caught:
        facepairs.train(faces, resume=True)
    assert caught.value.arguments == ("out",)


def test_a_folder_that_cannot_be_read_leaves_no_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadData):
        facepairs.train("none")
    assert list(tmp_path.iterdir()) == []


def test_an_evaluation_is_a_summary_scores_figures_and_html(difference_run, faces, tmp_path):
    scores = tmp_path / "scores.csv"
    found = facepairs.evaluate(difference_run.run.bundle, faces, scores_out=scores)
    pairs = found.measurements[0].pairs
    assert len(pairs) == found.summary.genuine_pairs + found.summary.impostor_pairs
    assert found.figures()["det"]._repr_svg_().startswith("<?xml")
    assert "<td>AUC</td>" in found._repr_html_()
    assert "AUC  " in str(found)
    assert len(facepairs.evaluate([scores, scores]).measurements) == 2


def test_a_calibration_returns_its_bundle(many_faces, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    for person in sorted(many_faces.iterdir())[:8]:
        (few / person.name).symlink_to(person)
    made = facepairs.calibrate("default", few, tmp_path / "mine")
    assert made.model.origin.licence.startswith("CC0-1.0")
    assert "licence            CC0-1.0" in in_process("info", tmp_path / "mine", check=0).stdout
    again = facepairs.Verifier.load(tmp_path / "mine")
    assert again.model.profile == made.model.profile
