"""The whole workflow on the command line: train, evaluate, verify, resume, refuse."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ctrl_c
from processes.checkpoints import saved_arrays
from processes.command_line import command, in_process

from facepairs.bundles.bundle import Bundle

pytestmark = pytest.mark.usefixtures("few_draws", "few_validation_pairs")


def test_training_leaves_a_whole_run_folder(run):
    out, report, messages = run
    assert {p.name for p in out.iterdir()} == {
        "bundle", "checkpoints", "config.toml", "history.json", "log.txt", "result.json",
        "tensorboard",
    }  # fmt: skip
    assert report["epochs"] == 2
    assert report["bundle"] == str(out / "bundle")
    assert sum(report["people"].values()) == 24
    assert "epoch 2/2" in messages
    history = json.loads((out / "history.json").read_text())
    assert [row["epoch"] for row in history] == [1, 2]
    assert all(0 <= row["val_auc"] <= 1 and row["pairs_per_s"] > 0 for row in history)
    names = "MODEL_CARD.md identities.json manifest.json measured.json model.keras network.onnx"
    assert {p.name for p in (out / "bundle").iterdir()} == set(names.split())


def test_evaluation_is_on_people_the_bundle_does_not_know(run, faces, tmp_path):
    scores = tmp_path / "scores.csv"
    done = in_process("evaluate", run.bundle, faces, "--out", scores, "--json", check=0)
    summary = json.loads(done.stdout)
    for key in ("accuracy", "operating_points", "auc", "eer", "tar_at_far", "genuine_pairs",
                "impostor_pairs", "schema"):  # fmt: skip
        assert key in summary
    assert summary["people"] == run.report["people"]["test"]
    assert summary["pairs_with_known_people"] == 0
    assert summary["genuine_pairs"] == 6 * summary["people"]
    alone = json.loads(in_process("evaluate", scores, "--json", check=0).stdout)
    assert alone["auc"]["value"] == pytest.approx(summary["auc"]["value"])


def test_pairs_with_known_people_are_counted(run, faces, tmp_path):
    people = sorted(p.name for p in faces.iterdir())
    rows = [f"{p}/{p}_0001.jpg,{p}/{p}_0002.jpg,1" for p in people]
    rows += [f"{p}/{p}_0001.jpg,{q}/{q}_0001.jpg,0" for p, q in itertools.pairwise(people)]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("\n".join(["left,right,genuine", *rows]) + "\n", encoding="utf-8")
    done = in_process("evaluate", run.bundle, faces, "--pairs", pairs, "--json", check=0)
    assert "the figures are too good" in done.stderr
    assert json.loads(done.stdout)["pairs_with_known_people"] > 0


def test_verification_never_loads_tensorflow(run, faces):
    code = (
        "import json, sys; from facepairs.cli.main import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    code = None\n"
        "    try: main(words)\n"
        "    except SystemExit as ended: code = ended.code\n"
        "    assert code in (0, 1), words\n"
        "heavy = {'tensorflow', 'keras', 'sklearn', 'rich', 'matplotlib'} & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy), file=sys.stderr)"
    )
    one, other = sorted(sorted(faces.iterdir())[0].iterdir())[:2]
    lines = [
        ["--help"],
        ["train", "--help"],
        ["verify", str(one), str(other), "--bundle", str(run.bundle)],
        ["info", str(run.bundle)],
    ]
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(lines)], capture_output=True, text=True, check=True
    )
    assert done.stderr.endswith("HEAVY []\n")


def check_stopped(out: Path, messages: str) -> None:
    assert "--resume" in messages
    assert not (out / "bundle").exists()
    assert not (out / "run.lock").exists()


@pytest.mark.slow
def test_ctrl_c_saves_and_resume_ends_as_the_same_seed_does_from_another_store(
    short_run, short_settings, faces, tmp_path, monkeypatch
):
    out = tmp_path / "stopped"
    words = ("train", faces, "--out", out, "--config", short_settings, "--store", "files")
    with monkeypatch.context() as patch:
        ctrl_c.press_after(patch, 5)  # in the second epoch
        check_stopped(out, in_process(*words, check=130).stderr)
    resumed = in_process("train", faces, "--out", out, "--resume", "--json", check=0)
    assert json.loads(resumed.stdout)["threshold"] == Bundle.open(short_run.bundle).threshold
    assert saved_arrays(out) == saved_arrays(short_run.folder)
    assert (out / "bundle" / "manifest.json").is_file()


@pytest.mark.slow
def test_ctrl_c_stops_the_process_of_a_training(difference_run, faces, tmp_path):
    out, settings = tmp_path / "stopped", difference_run.folder / "config.toml"
    training = subprocess.Popen(
        command("train", faces, "--out", out, "--config", settings),
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert training.stderr is not None
    for line in training.stderr:
        if line.startswith("epoch 1/2"):
            training.send_signal(signal.SIGINT)
            break
    messages = training.stderr.read()
    training.stderr.close()
    assert training.wait(timeout=240) == 130, messages
    check_stopped(out, messages)


def test_a_finished_run_is_not_overwritten(run, faces, settings):
    done = in_process("train", faces, "--out", run.folder, "--config", settings, check=2)
    assert "--resume" in done.stderr


@pytest.fixture
def spoiled(many_faces, tmp_path):
    """A folder of faces with a photo that is cut, one that is text, and an empty one."""
    root = tmp_path / "spoiled"
    for person in sorted(many_faces.iterdir())[:30]:
        shutil.copytree(person, root / person.name)
    photos = [min(person.iterdir()) for person in sorted(root.iterdir())[:3]]
    photos[0].write_bytes(photos[0].read_bytes()[:2000])
    photos[1].write_text("this is text\n")
    photos[2].write_bytes(b"")
    return root, photos


def test_data_check_lists_every_problem_and_training_refuses(spoiled, settings, tmp_path):
    root, photos = spoiled
    done = in_process("data", "check", root, "--no-labels", "--json", check=1)
    named = {path for found in json.loads(done.stdout)["findings"] for path in found["paths"]}
    assert named == {str(photo.relative_to(root)) for photo in photos}
    assert in_process("data", "check", root, "--no-labels", check=1).stdout.count("error") >= 3
    out = tmp_path / "run"
    done = in_process("train", root, "--out", out, "--config", settings, check=2)
    assert done.stderr.count("\n") == 1
    assert str(photos[0]) in done.stderr
    assert "facepairs data check" in done.stderr
    assert not (out / "config.toml").exists()


@pytest.mark.slow
def test_training_leaves_bad_photos_out_on_request(spoiled, settings, tmp_path):
    words = ("--out", tmp_path / "run", "--config", settings, "--skip-bad")
    done = in_process("train", spoiled[0], *words, check=0)
    assert "3 unusable files skipped" in done.stderr
