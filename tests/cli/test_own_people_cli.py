"""`train --init` and `calibrate` on the command line, and the packaged bundle."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from command_line import command, facepairs, in_process

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.default import FOLDER

SMALL = """
model = "MODEL"
epochs = 2
pairs_per_epoch = 96
batch_size = 16
calibration_pairs = 100
calibration_share = 0.25
test_share = 0.25
"""
GENTLE = SMALL.replace("test_share = 0.25", "test_share = 0.0")


@pytest.fixture(
    scope="module", params=["difference", pytest.param("siamese", marks=pytest.mark.slow)]
)
def settings(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("settings")
    for name, text in (("small.toml", SMALL), ("gentle.toml", GENTLE)):
        (folder / name).write_text(text.replace("MODEL", request.param))
    return folder


@pytest.fixture(scope="module")
def start(faces, settings, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "start"
    in_process("train", faces, "--out", out, "--config", settings / "small.toml", check=0)
    return out / "bundle"


@pytest.fixture(scope="module")
def tuned(many_faces, start, settings, tmp_path_factory):
    """A run that starts from `start`, on other people."""
    out = tmp_path_factory.mktemp("runs") / "tuned"
    in_process(
        "train", many_faces, "--init", start, "--out", out, "--config", settings / "gentle.toml",
        "--json", check=0,
    )  # fmt: skip
    return out


def weights(run):
    with np.load(run / "checkpoint.npz") as archive:
        return [archive[name].tobytes() for name in sorted(archive.files) if name != "state"]


def test_a_tuned_bundle_knows_both_groups_and_its_origin(start, tuned, faces, many_faces):
    old, new = Bundle.open(start), Bundle.open(tuned / "bundle")
    new.check_all()
    names = [folder.name for folder in faces.iterdir()]
    others = [folder.name for folder in many_faces.iterdir()]
    known = old.knows(names)
    assert (new.trained_on(names)[known]).all()
    assert not new.knows(names)[~known & ~np.isin(names, others)].any()
    assert new.raw["training"]["init"]["created"] == old.created
    assert str(start) not in (tuned / "bundle" / "manifest.json").read_text()
    assert new.read("network.onnx") != old.read("network.onnx")
    assert "started from" in facepairs("info", tuned / "bundle", check=0).stdout


def test_a_stopped_tuning_ends_at_the_same_weights(start, tuned, many_faces, settings, tmp_path):
    out = tmp_path / "stopped"
    training = subprocess.Popen(
        command("train", many_faces, "--init", start,
                "--out", out, "--config", settings / "gentle.toml"),
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert training.stderr is not None
    for line in training.stderr:
        if line.startswith("epoch 1/2"):
            training.send_signal(signal.SIGINT)
            break
    messages = training.stderr.read()
    training.stderr.close()
    assert training.wait(timeout=120) == 130, messages
    in_process("train", many_faces, "--out", out, "--resume", check=0)
    assert weights(out) == weights(tuned)
    one, other = (Bundle.open(run / "bundle") for run in (out, tuned))
    assert one.identity_counts == other.identity_counts
    assert one.training.init == other.training.init


def test_init_refuses_another_model_in_one_line(start, faces, tmp_path):
    done = in_process(
        "train", faces, "--init", start, "--model", "pixels", "--out", tmp_path / "run", check=2
    )
    assert len(done.stderr.strip().splitlines()) == 1
    assert "model is 'pixels'" in done.stderr
    assert not (tmp_path / "run").exists()


def test_calibrate_writes_a_bundle_that_verifies(start, many_faces, tmp_path):
    out = tmp_path / "mine"
    done = in_process("calibrate", start, many_faces, "--out", out, "--json", check=0)
    summary = json.loads(done.stdout)
    assert summary["people"] == 48
    assert (summary["genuine_pairs"], summary["people_left_out"]) == (144, 0)
    old, new = Bundle.open(start), Bundle.open(out)
    assert new.read("network.onnx") == old.read("network.onnx")
    assert new.threshold == summary["threshold"] != old.threshold
    photos = sorted(next(many_faces.iterdir()).iterdir())
    scores = [
        json.loads(in_process("verify", *photos[:2], "--bundle", bundle, "--json").stdout)["score"]
        for bundle in (start, out)
    ]
    assert scores[0] == scores[1]
    shown = in_process("calibrate", start, many_faces, "--out", out, check=0).stdout
    assert "144 genuine" in shown
    assert "before" in shown
    done = in_process("evaluate", out, many_faces, check=2)
    assert "trained or calibrated on all 48 people there" in done.stderr


def test_calibrate_names_what_is_missing(start, many_faces, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    for person in sorted(many_faces.iterdir())[:5]:
        (few / person.name).symlink_to(person)
    done = in_process("calibrate", start, few, "--out", tmp_path / "mine", "--json", check=2)
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "not_enough"
    assert "20 genuine pairs of 6 people or more are needed" in error["message"]
    assert "15 of 5 people" in error["message"]
    assert not (tmp_path / "mine").exists()
    assert in_process("calibrate", start, few, check=2).stderr.count("\n") == 1


def test_calibrate_warns_of_few_people(start, many_faces, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    for person in sorted(many_faces.iterdir())[:7]:
        (few / person.name).symlink_to(person)
    done = in_process("calibrate", start, few, "--out", tmp_path / "mine", check=0)
    assert "warning: 7 people only: thresholds and errors of so few are rough" in done.stderr


def test_calibrate_never_loads_tensorflow(start, many_faces, tmp_path):
    code = (
        "import sys; from facepairs.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('HEAVY', sorted({'tensorflow', 'keras'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "calibrate", start, many_faces, "--out", tmp_path / "mine"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
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
