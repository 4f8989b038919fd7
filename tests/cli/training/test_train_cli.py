"""What `facepairs train` says: refusals before any work, honest times, and the epoch it keeps."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import pytest
from processes.checkpoints import history
from processes.command_line import in_process
from tiny.bundles import write_bundle_of

from facepairs.bundles.manifest import Identities
from facepairs.models.build import build_network

pytestmark = pytest.mark.usefixtures("few_validation_pairs", "tiny_networks")

SHORT = """
model = "siamese"
pairs_per_epoch = 160
batch_size = 16
"""


@pytest.fixture(scope="module")
def finished(many_faces, few_validation_pairs, tiny_networks, tmp_path_factory):
    """A finished run of two epochs from a bundle of other people, and what the command printed."""
    out = tmp_path_factory.mktemp("finished") / "run"
    settings = out.with_name("short.toml")
    settings.write_text(SHORT)
    keras.utils.set_random_seed(0)  # whatever ran before
    network = build_network("siamese", 128, 64, augment=0.0)
    start = write_bundle_of(out.with_name("start"), network, Identities.of(["No One"], []))
    words = ("--init", start.folder, "--config", settings, "--epochs", 2)
    done = in_process("train", many_faces, "--out", out, *words, check=0)
    return out, done


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    found = {str(path): path.stat() for path in folder.rglob("*") if path.is_file()}
    return {path: (stat.st_mtime_ns, stat.st_size) for path, stat in found.items()}


def test_the_result_has_the_whole_time_and_says_who_measured_the_auc(finished, many_faces):
    out, done = finished
    report = json.loads((out / "result.json").read_text())
    assert report["wall_seconds"] > report["seconds"] > 0
    assert report["people"]["validation"] == report["val_people"] == 0
    start, *_, last = history(out)
    assert (start["epoch"], last["epoch"]) == (0, 2)
    kept = max(start, last, key=lambda row: row["val_auc"])
    assert (report["epochs"], report["epoch"]) == (2, kept["epoch"])
    assert report["val_auc"] == kept["val_auc"]
    assert f"measured on the {report['people']['calibration']} people" in done.stdout
    assert f" facepairs evaluate {out / 'bundle'} {many_faces}\n" in done.stdout
    assert "too few people to choose the best epoch" in done.stderr


def test_resuming_a_finished_run_does_nothing_and_says_so(finished, many_faces):
    out, done = finished
    before = contents(out)
    for more in ((), ("--epochs", 1), ("--minutes", 0.01)):
        again = in_process("train", many_faces, "--out", out, "--resume", *more, check=0)
        assert again.stdout == done.stdout
        assert again.stderr.startswith(f"{out} is finished after 2 epochs; nothing was done")
    assert contents(out) == before


@pytest.mark.slow
def test_resuming_a_finished_run_with_more_epochs_trains_them(finished, many_faces, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished[0], run)
    more = ("--resume", "--epochs", 3, "--json")
    done = in_process("train", many_faces, "--out", run, *more, check=0)
    assert json.loads(done.stdout)["epochs"] == 3
    rows = history(run)
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3]
    assert rows[:3] == history(finished[0])


REFUSED = [  # by what the message names
    (["--out", "{run}"], "(--resume, --out)"),
    (["--out", "{photos}"], "{photos} is not empty"),
    (["--out", "{faces}/run"], "(--out)"),
    (["--epochs", "0"], "(--epochs)"),
    (["--minutes", "0"], "(--minutes)"),
    (["--batch-size", "1"], "(--batch-size)"),
    (["--config", "{tmp}/small.toml", "--epochs", "3"], "{tmp}/small.toml: batch_size is 1"),
    (["--model", "difference", "--pair-cache", "{tmp}/none"], "{tmp}/none"),
    (["--store", "tfrecord"], "(--pair-cache)"),
    (["--model", "difference", "--store", "memory", "--pair-cache", "{tmp}"], "(--store)"),
    (["--resume", "--out", "{run}", "--seed", "3"], "(--seed)"),
    (["--resume", "--out", "{run}", "--skip-bad"], "(--skip-bad)"),
]
CODE = """
import json, os, sys; from facepairs.cli.app import main
for words in json.loads(sys.argv[1]):
    try: main(words)
    except SystemExit as ended: assert ended.code == 2, words
print('HEAVY', sorted({'tensorflow', 'onnxruntime'} & set(sys.modules)), file=sys.stderr)
assert os.environ['KERAS_BACKEND'] == 'tensorflow'  # whatever was set
"""


def test_cheap_refusals_come_before_faces_are_searched_and_tensorflow_is_loaded(
    finished, many_faces, tmp_path
):
    photos = tmp_path / "photos"
    (tmp_path / "small.toml").write_text("batch_size = 1\n")
    (photos / "Ann").mkdir(parents=True)
    (photos / "Ann" / "1.jpg").write_bytes(b"\xff")
    names = {"run": finished[0], "photos": photos, "faces": many_faces, "tmp": tmp_path}
    train = ["train", str(many_faces)]
    lines = [[*train, *(word.format(**names) for word in words)] for words, _ in REFUSED]
    command = [sys.executable, "-c", CODE, json.dumps(lines)]
    environment = {**os.environ, "KERAS_BACKEND": "torch"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    *messages, heavy = done.stderr.splitlines()
    assert heavy == "HEAVY []"
    for message, (_, named) in zip(messages, REFUSED, strict=True):
        assert named.format(**names) in message
