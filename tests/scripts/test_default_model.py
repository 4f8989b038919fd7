"""The script that rebuilds the packaged model, end to end on people who do not exist."""

import json

import numpy as np
import pytest
from script_runner import run_script

from facepairs.bundles.bundle import Bundle
from facepairs.config import load_config
from facepairs.data.index import FaceIndex
from facepairs.evaluation.metrics.calibration import fit_logistic
from facepairs.evaluation.metrics.summary import summarise
from facepairs.evaluation.scores import ScoreTable, write_scores
from facepairs.evaluation.serialize import to_plain
from facepairs.support.checksum import checksum_path
from facepairs.training.view2.methods import keep_settings
from facepairs.verification.verifier import Verifier

SCRIPT = "scripts/release/default_model.py"
TINY = """
model = "difference"
epochs = 1
pairs_per_epoch = 32
batch_size = 16
"""
FOLDS, PAIRS = 10, 60  # of each fold


@pytest.fixture(scope="module")
def view2(faces, tmp_path_factory):
    """A method's folder as `crossval` leaves it, and the recipe: drawn scores of ten folds."""
    folder = tmp_path_factory.mktemp("view2") / "difference"
    recipe = folder.parent / "recipe.toml"
    recipe.write_text(TINY)
    keep_settings(
        folder, "siamese", load_config(recipe), {"index": FaceIndex.scan(faces).fingerprint}
    )
    rng = np.random.default_rng(2)
    genuine = np.tile(np.arange(PAIRS) < PAIRS // 2, FOLDS)
    fold = np.repeat(np.arange(1, FOLDS + 1), PAIRS).astype(np.int16)
    score = np.clip(rng.normal(0.2 + 0.4 * genuine, 0.2), -1, 1)
    names = [f"P/{i}.jpg" for i in range(len(score))]
    write_scores(folder / "scores.csv", ScoreTable(names, names, genuine, fold, score))
    summary = summarise(genuine, score, dict.fromkeys(range(1, FOLDS + 1), 0.4), fold)
    (folder / "result.json").write_text(json.dumps(to_plain(summary)))
    return folder


@pytest.mark.timeout(900)
def test_it_trains_on_everybody_and_quotes_the_figures_of_the_folds(faces, view2, tmp_path):
    out, run = tmp_path / "default_model", tmp_path / "run"
    failures = tmp_path / "failures.md"
    failures.write_text("- Photos in profile: FNMR 40 %.\n")
    common = ("--view2", view2, "--config", view2.parent / "recipe.toml", "--run", run)
    done = run_script(SCRIPT, faces, *common, "--out", out, "--failures", failures)
    assert done.returncode == 0, done.stderr
    bundle = Bundle.open(out)
    bundle.check_all()
    names = [folder.name for folder in faces.iterdir()]
    assert bundle.trained_on(names).all()
    assert (bundle.kind, bundle.model) == ("pair", "difference")
    assert bundle.training.people == len(names)
    assert bundle.training.protocol == "everyone"
    calibration = bundle.raw["calibration"]
    assert calibration["genuine_pairs"] == calibration["impostor_pairs"] == FOLDS * PAIRS // 2
    assert "LFW View 2" in bundle.threshold_source
    columns = np.genfromtxt(view2 / "scores.csv", delimiter=",", skip_header=1, usecols=(2, 4))
    curve = fit_logistic(columns[:, 0], columns[:, 1])
    assert bundle.threshold == pytest.approx(curve.threshold)
    result = json.loads((view2 / "result.json").read_text())
    quoted = bundle.raw["results"]["view2"]
    assert quoted["accuracy"] == result["accuracy"]
    assert quoted["accuracy_standard_error"] == result["accuracy_standard_error"]
    assert [row["fold"] for row in quoted["folds"]] == list(range(1, 11))
    card = (out / "MODEL_CARD.md").read_text(encoding="utf-8")
    for text in ("for research", "profile: FNMR 40 %", f"{result['accuracy']:.4f}", "| 10 |"):
        assert text in card
    photos = sorted(faces.glob("*/*.jpg"))[:2]
    before = Verifier(bundle).verify(*photos).score
    again = run_script(SCRIPT, faces, *common, "--out", out)  # resumes the finished run
    assert again.returncode == 0, again.stderr
    assert "resuming at step 2 of 2" in again.stderr
    assert Verifier.load(out).verify(*photos).score == before
    assert "profile" not in (out / "MODEL_CARD.md").read_text(encoding="utf-8")


def edited(view2, tmp_path, **changes):
    folder = tmp_path / "view2"
    folder.mkdir()
    for path in view2.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    for name, change in changes.items():
        path = folder / name.replace("_", ".")
        path.write_text(change(path.read_text()))
        checksum_path(path).unlink(missing_ok=True)  # as after a deliberate change
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
        ({"scores_csv": lambda text: "\n".join(text.splitlines()[:200])}, "run facepairs crossval"),
        ({"config_toml": lambda text: text.replace("epochs = 1", "epochs = 7")},
         "of another recipe than epochs = 1 (measured with 7)"),
        ({"config_toml": lambda text: text.replace('index = "', 'index = "0')}, "other images"),
    ],
)  # fmt: skip
def test_figures_of_something_else_are_refused(faces, view2, tmp_path, changes, message):
    folder = edited(view2, tmp_path, **changes)
    done = run_script(
        SCRIPT, faces, "--view2", folder, "--config", view2.parent / "recipe.toml",
        "--run", tmp_path / "run", "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
