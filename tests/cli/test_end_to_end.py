"""The whole workflow on the command line: train, evaluate, verify, resume, refuse."""

import json
import shutil
from pathlib import Path

import pytest
from processes import ctrl_c
from processes.checkpoints import history, saved_arrays
from processes.command_line import in_process
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.error_profile import operating_point
from facepairs.support.results import to_plain

pytestmark = pytest.mark.usefixtures("few_validation_pairs")


def test_training_leaves_a_whole_run_folder(run):
    out, report, messages = run
    assert {p.name for p in out.iterdir()} == {
        "bundle", "checkpoints", "config.toml", "history.csv", "result.json",
        "tensorboard",
    }  # fmt: skip
    assert report["epochs"] == 2
    assert report["bundle"] == str(out / "bundle")
    assert sum(report["people"].values()) == 24
    assert "epoch 2/2" in messages
    assert "computing the features of 96 images\nstarting the projection" in messages
    rows = history(out)
    assert [row["epoch"] for row in rows] == [1, 2]
    assert all(0 <= row["val_auc"] <= 1 and row["pairs_per_s"] > 0 for row in rows)
    names = "MODEL_CARD.md identities.json manifest.json measured.json model.keras network.onnx"
    assert {p.name for p in (out / "bundle").iterdir()} == set(names.split())


def test_tensorboard_has_curves_and_pictures_of_each_epoch(run):
    pictures, curves = (
        EventAccumulator(str(run.folder / "tensorboard" / name)).Reload()
        for name in ("pictures", "train")
    )
    tags = ["pairs/training", "pairs/worst_genuine", "pairs/worst_impostors"]
    assert sorted(pictures.Tags()["tensors"]) == tags
    for tag in tags:
        shown = pictures.Tensors(tag)
        assert [event.step for event in shown] == [1, 2]
        size = [int(word) for word in shown[0].tensor_proto.string_val[:2]]
        assert size == [2 * (2 * 128 + 4), 4 * (128 + 16)]  # eight pairs
    assert [event.step for event in curves.Tensors("epoch_loss")] == [0, 1]
    assert not curves.Tags()["graph"]


def test_evaluation_is_on_people_the_bundle_does_not_know(run, faces, tmp_path):
    scores = tmp_path / "scores.csv"
    done = in_process("evaluate", run.bundle, faces, "--out", scores, "--json", check=0)
    (summary,) = json.loads(done.stdout)["models"]
    for key in ("accuracy", "operating_points", "auc", "eer", "tar_at_far", "genuine_pairs",
                "impostor_pairs"):  # fmt: skip
        assert key in summary
    assert summary["people"] == run.report["people"]["test"]
    assert summary["about"]["pairs_with_known_people"] == 0
    assert summary["genuine_pairs"] == 6 * summary["people"]
    (alone,) = json.loads(in_process("evaluate", scores, "--json", check=0).stdout)["models"]
    assert alone["auc"]["value"] == pytest.approx(summary["auc"]["value"])


def check_stopped(out: Path, messages: str) -> None:
    assert "--resume" in messages
    assert not (out / "bundle").exists()
    assert not (out / "run.lock").exists()


@pytest.mark.slow
def test_ctrl_c_saves_and_resume_ends_as_the_same_seed_does_from_another_store(
    difference_run, difference_settings, faces, tmp_path, monkeypatch
):
    out = tmp_path / "stopped"
    words = ("train", faces, "--out", out, "--config", difference_settings, "--store", "files")
    with monkeypatch.context() as patch:
        ctrl_c.press_after(patch, 5)  # in the second epoch
        check_stopped(out, in_process(*words, check=130).stderr)
    resumed = in_process("train", faces, "--out", out, "--resume", "--json", check=0)
    decides = json.loads(resumed.stdout)["operating_point"]
    assert decides == to_plain(operating_point(Bundle.open(difference_run.bundle).profile))
    assert saved_arrays(out) == saved_arrays(difference_run.folder)
    assert (out / "bundle" / "manifest.json").is_file()


def test_a_finished_run_is_not_overwritten(run, faces, settings):
    done = in_process("train", faces, "--out", run.folder, "--config", settings, check=2)
    assert "--resume" in done.stderr


@pytest.fixture
def spoiled(many_faces, tmp_path):
    """A folder of faces with a photo that is cut, one that is text, and an empty one."""
    root = tmp_path / "spoiled"
    for person in sorted(many_faces.iterdir())[:20]:
        shutil.copytree(person, root / person.name)
    photos = [min(person.iterdir()) for person in sorted(root.iterdir())[:3]]
    photos[0].write_bytes(photos[0].read_bytes()[:2000])
    photos[1].write_text("this is text\n")
    photos[2].write_bytes(b"")
    return root, photos


def test_data_check_lists_every_problem_and_training_refuses(spoiled, settings, tmp_path):
    root, photos = spoiled
    done = in_process("data", "check", root, "--json", check=1)
    named = {path for found in json.loads(done.stdout)["findings"] for path in found["paths"]}
    assert named == {str(photo.relative_to(root)) for photo in photos}
    assert in_process("data", "check", root, check=1).stdout.count("error") >= 3
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
