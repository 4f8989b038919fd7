"""The script that rebuilds the packaged model, end to end on people who do not exist."""

import json

import numpy as np
import pytest
from drawn.view2 import write_lists
from processes.script_runner import run_script
from tiny.bundles import tiny_bundle

from facepairs.bundles.bundle import Bundle
from facepairs.config import load_config
from facepairs.data.index import FaceIndex
from facepairs.evaluation.metrics.summary import summarise
from facepairs.evaluation.serialize import to_plain
from facepairs.training.view2.folds import read_view2
from facepairs.training.view2.methods import keep_settings
from facepairs.verification.verifier import Verifier

SCRIPT = "scripts/release/default_model.py"
TINY = """
model = "difference"
epochs = 1
pairs_per_epoch = 32
batch_size = 16
image_size = 64
"""
FOLDS = 2


@pytest.fixture(scope="module")
def view2(faces, tmp_path_factory):
    """A method's folder as `crossval` leaves it, the recipe and the lists: tiny networks."""
    folder = tmp_path_factory.mktemp("view2") / "tiny"
    recipe, lists = folder.parent / "recipe.toml", folder.parent / "lists"
    recipe.write_text(TINY)
    lists.mkdir()
    write_lists(faces, lists, FOLDS)
    index = FaceIndex.scan(faces)
    keep_settings(folder, "siamese", load_config(recipe), {"index": index.fingerprint})
    pairs = read_view2(index, lists).pairs
    for fold in range(1, FOLDS + 1):
        tiny_bundle(folder / f"fold-{fold:02d}" / "bundle", "embedding")
    score = np.clip(np.random.default_rng(2).normal(0.2 + 0.4 * pairs.genuine, 0.2), -1, 1)
    summary = summarise(pairs.genuine, score, dict.fromkeys(range(1, FOLDS + 1), 0.4), pairs.fold)
    result = to_plain(summary) | {"accuracy": 0.75, "accuracy_standard_error": 0.02}
    (folder / "result.json").write_text(json.dumps(result))
    return folder


def arguments(view2, tmp_path):
    places = {"lists": "lists", "config": "recipe.toml"}
    given = [word for name, file in places.items() for word in (f"--{name}", view2.parent / file)]
    return [*given, "--run", tmp_path / "run", "--out", tmp_path / "out"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_trains_on_everybody_and_quotes_the_figures_of_the_folds(faces, view2, tmp_path):
    done = run_script(SCRIPT, faces, "--view2", view2, *arguments(view2, tmp_path))
    assert done.returncode == 0, done.stderr
    bundle = Bundle.open(tmp_path / "out")
    bundle.check_all()
    names = [folder.name for folder in faces.iterdir()]
    assert bundle.trained_on(names).all()
    assert (bundle.kind, bundle.model) == ("pair", "difference")
    assert bundle.training.people == len(names)
    assert bundle.training.protocol == "everyone"
    assert "LFW View 2" in bundle.threshold_source
    view = read_view2(FaceIndex.scan(faces), view2.parent / "lists")
    assert bundle.errors.genuine_pairs == view.pairs.genuine.sum()
    assert bundle.errors.impostor_pairs > 1000  # of the folds' photos, beyond those of the lists
    assert bundle.errors.people == len(names)
    assert bundle.errors.measured_on == "LFW View 2, people unseen in training"
    result = json.loads((view2 / "result.json").read_text())
    quoted = bundle.raw["results"]["view2"]
    assert quoted["accuracy"] == result["accuracy"]
    assert quoted["accuracy_standard_error"] == result["accuracy_standard_error"]
    assert [row["fold"] for row in quoted["folds"]] == [1, 2]
    card = (bundle.folder / "MODEL_CARD.md").read_text(encoding="utf-8")
    for text in ("for research", f"{result['accuracy']:.4f}", "| 2 |", "LFW View 2, people unseen"):
        assert text in card
    photos = sorted(faces.glob("*/*.jpg"))[:2]
    before = Verifier(bundle).verify(*photos).score
    again = run_script(SCRIPT, faces, "--view2", view2, *arguments(view2, tmp_path))
    assert again.returncode == 0, again.stderr
    assert Verifier.load(bundle.folder).verify(*photos).score == before


def edited(view2, tmp_path, **changes):
    folder = tmp_path / "view2"
    folder.mkdir()
    for path in view2.iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    for name, change in changes.items():
        path = folder / name.replace("_", ".")
        path.write_text(change(path.read_text()))
    return folder


def without(key):
    def change(text):
        return json.dumps({k: v for k, v in json.loads(text).items() if k != key})

    return change


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"result_json": without("accuracy_standard_error")}, "has no accuracy_standard_error"),
        ({"result_json": without("folds")}, "has no folds"),
        ({"result_json": lambda text: "{"}, "result.json: cannot be read"),
        ({"result_json": lambda text: text.replace('"fold":', '"number":')}, "folds must each"),
        ({"config_toml": lambda text: text.replace("epochs = 1", "epochs = 7")},
         "of another recipe than epochs = 1 (measured with 7)"),
        ({"config_toml": lambda text: text.replace('index = "', 'index = "0')}, "other images"),
    ],
)  # fmt: skip
def test_figures_of_something_else_are_refused(faces, view2, tmp_path, changes, message):
    folder = edited(view2, tmp_path, **changes)
    done = run_script(SCRIPT, faces, "--view2", folder, *arguments(view2, tmp_path))
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
