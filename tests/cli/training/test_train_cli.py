"""What `facepairs train` says: refusals before any work, honest times, and the epoch it keeps."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from processes.command_line import in_process

from facepairs.bundles.bundle import Bundle
from facepairs.support.lock import held

pytestmark = pytest.mark.usefixtures("few_draws", "few_validation_pairs")

SHORT = """
model = "difference"
pairs_per_epoch = 64
batch_size = 16
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "short.toml"
    path.write_text(SHORT)
    return path


@pytest.fixture(scope="module")
def finished(many_faces, difference_run, settings, tmp_path_factory):
    """A finished run of two epochs from a bundle of other people, and what the command printed."""
    out = tmp_path_factory.mktemp("finished") / "run"
    words = ("--init", difference_run.bundle, "--config", settings, "--epochs", 2)
    done = in_process("train", many_faces, "--out", out, *words, check=0)
    return out, done


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    found = {str(path): path.stat() for path in folder.rglob("*") if path.is_file()}
    return {path: (stat.st_mtime_ns, stat.st_size) for path, stat in found.items()}


def test_the_result_has_the_whole_time_and_says_who_measured_the_auc(finished):
    out, done = finished
    report = json.loads((out / "result.json").read_text())
    assert report["wall_seconds"] > report["seconds"] > 0
    assert report["people"]["validation"] == report["val_people"] == 0
    start, *_, last = json.loads((out / "history.json").read_text())
    assert (start["epoch"], last["epoch"]) == (0, 2)
    kept = max(start, last, key=lambda row: row["val_auc"])
    assert (report["epochs"], report["epoch"], report["val_auc"]) == (
        2, kept["epoch"], kept["val_auc"],
    )  # fmt: skip
    assert "with preparation and export" in done.stdout
    assert "with preparation and export" in (out / "log.txt").read_text().splitlines()[-1]
    calibrating = report["people"]["calibration"]
    assert f"measured on the {calibrating} people who set the threshold" in done.stdout
    assert "too few people to choose the best epoch: the last one, or the start " in done.stderr
    assert f"few people ({calibrating} calibration people" in done.stderr


def test_a_tuned_bundle_knows_both_groups_and_its_origin(
    finished, difference_run, faces, many_faces
):
    start, tuned = difference_run.bundle, finished[0] / "bundle"
    old, new = Bundle.open(start), Bundle.open(tuned)
    new.check_all()
    names = [folder.name for folder in faces.iterdir()]
    others = [folder.name for folder in many_faces.iterdir()]
    known = old.trained_on(names)
    assert (new.trained_on(names)[known]).all()
    assert not new.knows(names)[~known & ~np.isin(names, others)].any()
    assert new.knows(others).any()
    assert new.raw["training"]["init"]["created"] == old.created
    assert str(start) not in (tuned / "manifest.json").read_text()
    assert new.read("network.onnx") != old.read("network.onnx")
    assert "started from" in in_process("info", tuned, check=0).stdout


def test_resuming_a_finished_run_does_nothing_and_says_so(finished, many_faces):
    out, done = finished
    before = contents(out)
    for more in ((), ("--epochs", 2), ("--epochs", 1), ("--minutes", 0.01)):
        again = in_process("train", many_faces, "--out", out, "--resume", *more, check=0)
        assert again.stdout == done.stdout
        assert again.stderr == (
            f"{out} is finished after 2 epochs; nothing was done "
            "(for more: resume it with 4 epochs)\n"
        )
    printed = in_process("train", many_faces, "--out", out, "--resume", "--json", check=0).stdout
    assert json.loads(printed)["bundle"] == str(out / "bundle")
    assert contents(out) == before


@pytest.mark.slow
def test_resuming_a_finished_run_with_more_epochs_trains_them(finished, many_faces, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished[0], run)
    more = ("--resume", "--epochs", 3, "--json")
    done = in_process("train", many_faces, "--out", run, *more, check=0)
    assert json.loads(done.stdout)["epochs"] == 3
    rows = json.loads((run / "history.json").read_text())
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3]
    assert rows[:3] == json.loads((finished[0] / "history.json").read_text())


REFUSALS = [
    (["--out", "{run}"], "or choose another folder (--resume, --out)"),
    (["--out", "{photos}"], "{photos} holds no run, but other files (Ann)"),
    (["--out", "{faces}"], "{faces} lies in the folder of faces; choose another folder (--out)"),
    (
        ["--out", "{faces}/run"],
        "{faces}/run lies in the folder of faces; choose another folder (--out)",
    ),
    (["--out", "{tmp}/used"], "is in use by process"),
    (["--epochs", "0"], "epochs is 0; use a whole number from 1 to 100000 (--epochs)"),
    (["--minutes", "0"], "minutes is 0.0; use a number from 0.01 to 100000 (--minutes)"),
    (["--batch-size", "1"], "batch_size is 1; use a whole number from 2 to 4096 (--batch-size)"),
    (["--config", "{tmp}/small.toml", "--epochs", "3"], "{tmp}/small.toml: image_size is 50; use"),
    (["--pair-cache", "{tmp}/none"], "{tmp}/none"),
]


def test_cheap_refusals_come_before_faces_are_searched_and_tensorflow_is_loaded(
    finished, many_faces, tmp_path
):
    photos = tmp_path / "photos"
    (tmp_path / "small.toml").write_text("image_size = 50\n")
    (photos / "Ann").mkdir(parents=True)
    (photos / "Ann" / "1.jpg").write_bytes(b"\xff")
    names = {"run": finished[0], "photos": photos, "faces": many_faces, "tmp": tmp_path}
    code = (
        "import json, sys; from facepairs.cli.main import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    try: main(words)\n"
        "    except SystemExit as ended: assert ended.code == 2, words\n"
        "print('HEAVY', sorted({'tensorflow', 'onnxruntime'} & set(sys.modules)), file=sys.stderr)"
    )
    lines = [
        [
            "train",
            str(many_faces),
            "--model",
            "difference",
            *(word.format(**names) for word in words),
        ]
        for words, _ in REFUSALS
    ]
    lines.append(["train", str(many_faces), "--resume", "--out", str(finished[0]), "--seed", "3"])
    reasons = [*(why for _, why in REFUSALS), "own settings; leave out others (--seed)"]
    command = [sys.executable, "-c", code, json.dumps(lines)]
    with held(tmp_path / "used" / "run.lock", tmp_path):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    *messages, heavy = done.stderr.splitlines()
    assert heavy == "HEAVY []"
    for message, why in zip(messages, reasons, strict=True):
        assert why.format(**names) in message
