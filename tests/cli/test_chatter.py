"""Every command, on good and on bad data, prints only our own lines on stderr."""

import pytest
from processes.command_line import facepairs

from facepairs.data.synth.folder import write_synthetic_faces

OWN = (
    "facepairs: error: ",
    "warning: ",
    "note: ",
    "unusable: ",
    "epoch ",
    "store: ",
    "too few people to choose the best epoch: ",
    "exporting",
    "written: ",
    "1 unusable file skipped",
    "  ",  # continues the line before
)
SHORT = """\
model = "siamese"
epochs = 1
batch_size = 16
pairs_per_epoch = 64
"""


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "chatter"
    for name in ("faces", "bad"):
        write_synthetic_faces(folder / name, people=40, photos=3, seed=2, size_px=125)
    first, *others = sorted((folder / "bad").glob("*/*.jpg"))
    first.write_bytes(first.read_bytes()[:900])
    (folder / "short.toml").write_text(SHORT)
    (folder / "pairs.csv").write_text(f"left,right\n{first},{others[0]}\n{others[0]},{others[1]}\n")
    return folder


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_command_prints_output_of_libraries(place, tmp_path):
    faces, bad, run = place / "faces", place / "bad", tmp_path / "run"
    bundle = run / "bundle"
    train, photos = ("--config", place / "short.toml"), sorted(faces.glob("*/*.jpg"))
    for words, code in (
        (("data", "synth", "--out", tmp_path / "drawn", "--people", 2, "--photos", 2), 0),
        (("data", "check", faces), 0),
        (("data", "check", bad), 1),
        (("train", bad, "--out", tmp_path / "refused"), 2),
        (("train", bad, "--skip-bad", "--out", run, *train), 0),
        (("train", faces, "--out", run, *train), 2),
        (("info", bundle), 0),
        (("evaluate", bundle, "default", faces, "--report", tmp_path / "report.html"), 0),
        (("evaluate", bundle, bad), None),
        (("calibrate", "default", faces, "--out", tmp_path / "calibrated"), 0),
        (("cache", "build", faces, "--out", tmp_path / "cache", "--pair-count", 64, *train), 0),
        (("verify", *photos[:2]), None),
        (("score", place / "pairs.csv", "--out", tmp_path / "scores.csv"), 1),
        (("search", photos[0], bad), 1),
        (("export", bundle, "--out", tmp_path / "onnx"), 0),
        (("export", bundle, "--format", "litert", "--out", tmp_path / "litert"), 0),
    ):
        lines = facepairs(*words, check=code).stderr.splitlines()
        assert [line for line in lines if not line.startswith(OWN)] == [], words
