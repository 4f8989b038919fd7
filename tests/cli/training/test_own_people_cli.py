"""A stopped `train --init`, `calibrate` on the command line, and the packaged bundle."""

import json
import subprocess
import sys

import pytest
from processes import ctrl_c
from processes.checkpoints import saved_arrays
from processes.command_line import facepairs, in_process

from facepairs.bundles.bundle import FOLDER, Bundle

pytestmark = pytest.mark.usefixtures("few_draws", "few_validation_pairs")


@pytest.fixture(scope="module")
def gentle(short_settings, tmp_path_factory):
    """The same settings, with everybody trained on or calibrated with."""
    path = tmp_path_factory.mktemp("settings") / "gentle.toml"
    text = short_settings.read_text()
    path.write_text(text.replace("test_share = 0.25", "test_share = 0.0"))
    return path


@pytest.fixture(scope="module")
def start(short_run):
    return short_run.bundle


@pytest.fixture(scope="module")
def tuned(many_faces, start, gentle, tmp_path_factory):
    """A run that starts from `start`, on other people."""
    out = tmp_path_factory.mktemp("runs") / "tuned"
    in_process(
        "train", many_faces, "--init", start, "--out", out, "--config", gentle, "--json",
        check=0,
    )  # fmt: skip
    return out


@pytest.mark.slow
def test_a_stopped_tuning_ends_at_the_same_weights(
    start, tuned, many_faces, gentle, tmp_path, monkeypatch
):
    out = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        ctrl_c.press_after(patch, 5)
        words = ("train", many_faces, "--init", start, "--out", out, "--config", gentle)
        assert "--resume" in in_process(*words, check=130).stderr
    in_process("train", many_faces, "--out", out, "--resume", check=0)
    assert saved_arrays(out) == saved_arrays(tuned)
    one, other = (Bundle.open(run / "bundle") for run in (out, tuned))
    assert one.identities == other.identities
    assert one.training.init == other.training.init


def test_init_refuses_another_model_in_one_line(start, faces, tmp_path):
    done = in_process(
        "train",
        faces,
        "--init",
        start,
        "--model",
        "siamese-conv",
        "--out",
        tmp_path / "run",
        check=2,
    )
    assert len(done.stderr.strip().splitlines()) == 1
    assert "model is 'siamese-conv'" in done.stderr
    assert not (tmp_path / "run").exists()


def some_of(many_faces, folder, people):
    """Make a folder with some of the people."""
    folder.mkdir()
    for person in sorted(many_faces.iterdir())[:people]:
        (folder / person.name).symlink_to(person)
    return folder


def test_calibrate_writes_a_bundle_that_verifies(run, many_faces, tmp_path):
    out, mine = tmp_path / "mine", some_of(many_faces, tmp_path / "photos", 12)
    done = in_process("calibrate", run.bundle, mine, "--out", out, "--json", check=0)
    summary = json.loads(done.stdout)
    assert summary["people"] == 12
    assert (summary["genuine_pairs"], summary["people_left_out"]) == (36, 0)
    old, new = Bundle.open(run.bundle), Bundle.open(out)
    assert new.read("network.onnx") == old.read("network.onnx")
    assert new.threshold == summary["threshold"] != old.threshold
    photos = sorted(next(many_faces.iterdir()).iterdir())
    scores = [
        json.loads(in_process("verify", *photos[:2], "--bundle", bundle, "--json").stdout)["score"]
        for bundle in (run.bundle, out)
    ]
    assert scores[0] == scores[1]
    shown = in_process("calibrate", run.bundle, mine, "--out", out, check=0).stdout
    assert "36 genuine" in shown
    assert "before" in shown
    done = in_process("evaluate", out, mine, check=2)
    assert "0 of 12 people are unknown" in done.stderr


def test_calibrate_names_what_is_missing(run, many_faces, tmp_path):
    few = some_of(many_faces, tmp_path / "few", 5)
    done = in_process("calibrate", run.bundle, few, "--out", tmp_path / "mine", "--json", check=2)
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "not_enough"
    assert "20 genuine pairs of 6 people or more are needed" in error["message"]
    assert "15 of 5 people" in error["message"]
    assert not (tmp_path / "mine").exists()
    assert in_process("calibrate", run.bundle, few, check=2).stderr.count("\n") == 1


def test_calibrate_warns_of_few_people(run, many_faces, tmp_path):
    few = some_of(many_faces, tmp_path / "few", 7)
    done = in_process("calibrate", run.bundle, few, "--out", tmp_path / "mine", check=0)
    assert "warning: 7 people only: thresholds and errors of so few are rough" in done.stderr


def test_calibrate_never_loads_tensorflow(make_bundle, faces, tmp_path):
    code = (
        "import sys; from facepairs.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('HEAVY', sorted({'tensorflow', 'keras'} & set(sys.modules)), file=sys.stderr)"
    )
    bundle = make_bundle("pair", alignment="landmarks-5").folder
    done = subprocess.run(
        [sys.executable, "-c", code, "calibrate", bundle, faces, "--out", tmp_path / "mine"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.endswith("HEAVY []\n")


@pytest.mark.skipif(FOLDER.exists(), reason="this package brings a default model")
@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "a.jpg", "b.jpg"],
        ["info", "default"],
        ["evaluate", "default", "{faces}"],
        ["calibrate", "default", "{faces}", "--out", "mine"],
        ["train", "{faces}", "--init", "default"],
    ],
)
def test_without_a_packaged_bundle_the_error_explains_how_to_train_one(arguments, faces):
    done = facepairs(*(word.format(faces=faces) for word in arguments), check=2)
    assert "comes without a default model; train one on your photos" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
