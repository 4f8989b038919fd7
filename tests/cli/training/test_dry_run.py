"""`train --dry-run` says who would be trained on and what it costs, and writes nothing."""

import json

import pytest
from processes.command_line import in_process


def test_a_plan_has_the_people_of_the_training_and_about_its_cost(run, faces, settings, tmp_path):
    words = ("train", faces, "--out", tmp_path / "run", "--config", settings, "--minutes", 0.01)
    plan = json.loads(in_process(*words, "--dry-run", "--json", check=0).stdout)
    assert plan["people"] == run.report["people"]
    assert plan["training_photos"] == 4 * run.report["people"]["training"]
    assert (plan["epochs"], plan["photos"], plan["store"]) == (
        1,
        96,
        "memory",
    )  # one is always trained
    assert plan["genuine_pairs"] == plan["training_photos"] * 3 / 2
    assert plan["features_mb"] > plan["store_mb"] > 0
    parts = ("preparation_minutes", "epoch_minutes", "ending_minutes")
    preparation, epoch, ending = (plan[part] for part in parts)
    assert min(preparation, epoch, ending) > 0
    assert plan["minutes"] == pytest.approx(preparation + epoch + ending)
    assert not list(tmp_path.iterdir())


def test_a_plan_is_printed_in_words(faces):
    lines = in_process(
        "train", faces, "--model", "pixels", "--dry-run", check=0
    ).stdout.splitlines()
    words = dict(line.split(maxsplit=1) for line in lines)
    assert list(words) == ["people", "photos", "pairs", "training", "memory", "time"]
    assert "to train on" in words["people"]
    assert "96, " in words["photos"]
    assert words["training"] == "pixels needs no epochs"
    assert "features 0 MB" in words["memory"]
    assert words["time"].startswith("about ")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--resume", "--out", "{run}"], "--dry-run plans a new training; leave out --resume"),
        (["--out", "{run}"], "holds a run already"),
        (["--batch-size", "1"], "--batch-size is 1"),
    ],
)
def test_what_training_refuses_is_refused(run, many_faces, more, why):
    words = [word.format(run=run.folder) for word in more]
    assert why in in_process("train", many_faces, "--dry-run", *words, check=2).stderr
