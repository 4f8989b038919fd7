"""Every command, on good and on bad data, prints only our own lines on stderr."""

import json
import os

import pytest
from processes.command_line import facepairs

from facepairs.data.synth.folder import write_synthetic_faces

OWN = (
    "facepairs: error: ",
    "warning: ",
    "note: ",
    "epoch ",
    "store: ",
    "all crops are kept in ",
    "too few people to choose the best epoch: ",
    "writing the log for TensorBoard",
    "exporting",
    "written: ",
    "1 unusable file skipped",
    "  ",  # continues the line before
)
SHORT = """\
model = "siamese-conv"
epochs = 1
batch_size = 16
pairs_per_epoch = 64
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chatter")
    write_synthetic_faces(folder / "faces", people=40, images=3, seed=2, size_px=125)
    write_synthetic_faces(folder / "bad", people=40, images=3, seed=2, size_px=125)
    first = min((folder / "bad").glob("*/*.jpg"))
    first.write_bytes(first.read_bytes()[:900])
    pairs = [f"{p.parent.name}/{p.name}" for p in sorted((folder / "bad").glob("*/*.jpg"))[:8]]
    rows = [f"{left},{right}" for left in pairs for right in pairs]
    (folder / "short.toml").write_text(SHORT)
    (folder / "pairs.csv").write_text("\n".join(["left,right", *rows]) + "\n")
    return folder


def quiet(*words, check):
    done = facepairs(*words, check=check)
    odd = [line for line in done.stderr.splitlines() if not line.startswith(OWN)]
    assert not odd, odd
    return done


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_command_prints_output_of_libraries(place, tmp_path):
    faces, bad, run = place / "faces", place / "bad", tmp_path / "run"
    bundle = run / "bundle"
    train = ("--config", place / "short.toml")
    quiet("data", "synth", "--out", tmp_path / "drawn", "--people", 2, "--photos", 2, check=0)
    quiet("data", "check", faces, check=0)
    quiet("data", "check", bad, check=1)
    quiet("train", bad, "--out", tmp_path / "refused", check=2)
    quiet("train", bad, "--skip-bad", "--out", run, *train, check=0)
    quiet("train", faces, "--out", run, *train, check=2)
    quiet("info", bundle, check=0)
    report = tmp_path / "report.html"
    quiet("evaluate", bundle, "default", faces, "--report", report, check=0)
    quiet("evaluate", bundle, bad, check=None)
    quiet("calibrate", "default", faces, "--out", tmp_path / "calibrated", check=0)
    cache = tmp_path / "cache"
    quiet("cache", "build", faces, "--out", cache, "--pair-count", 64, *train, check=0)
    quiet("cache", "check", cache, check=0)
    photos = sorted(str(path) for path in faces.glob("*/*.jpg"))
    quiet("verify", photos[0], photos[1], "--show", tmp_path / "verdict.png", check=None)
    pairs = ("--pairs", place / "pairs.csv", "--root", bad)
    quiet("verify", *pairs, "--out", tmp_path / "scores.csv", check=1)
    quiet("search", photos[0], bad, check=1)
    for form in ("onnx", "litert"):
        quiet("export", bundle, "--out", tmp_path / form, "--format", form, "--json", check=0)
    heard = facepairs(
        "export", bundle, "--out", tmp_path / "again", "--format", "litert", "--json", check=0,
        env={**os.environ, "FACEPAIRS_VERBOSE": "1"},
    )  # fmt: skip
    assert "tensorflow" in heard.stderr.lower()
    assert json.loads(heard.stdout)["format"] == "litert"
