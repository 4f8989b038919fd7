"""`facepairs demo`: the whole workflow on drawn faces."""

import csv
import re
import shutil
from pathlib import Path

import pytest
from processes.command_line import facepairs

from facepairs import Verifier
from facepairs.cli.demo import DRAWN, EPOCHS, PIPELINES

FACES = ["kaleth.jpg", "lunwin_1.jpg", "lunwin_2.jpg"]


def test_quick_verifies_three_faces_that_the_included_model_judges_rightly(tmp_path):
    kept = tmp_path / "demo" / "kaleth.jpg"
    kept.parent.mkdir()
    kept.write_bytes((DRAWN / "kaleth.jpg").read_bytes())
    before = kept.stat().st_mtime_ns
    done = facepairs("demo", "--quick", "--out", tmp_path / "demo", check=0)
    assert sorted(path.name for path in kept.parent.iterdir()) == FACES
    assert kept.stat().st_mtime_ns == before
    assert re.findall(r"^verdict +(.*)", done.stdout, re.MULTILINE) == [
        "same person",
        "different people",
    ]
    verifier = Verifier.load()
    one, same, other = (
        tmp_path / "demo" / name for name in ("lunwin_1.jpg", "lunwin_2.jpg", FACES[0])
    )
    assert verifier.verify(one, same, max_fmr=0.001).same
    for photo in (one, same):  # far from every threshold: .9238 by default
        assert verifier.verify(photo, other).score == pytest.approx(0.80, abs=0.02)


def test_what_cannot_be_written_ends_quick(tmp_path):
    (tmp_path / "demo").write_text("a file")
    done = facepairs("demo", "--quick", "--out", tmp_path / "demo", check=2)
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "demo").read_text() == "a file"


def commands_of(done):
    return re.findall(r"^\$ facepairs (\w+)", done.stdout, re.MULTILINE)


def test_a_step_that_fails_ends_the_demo_and_says_why(tmp_path):
    person = tmp_path / "demo" / "faces" / "Somebody"
    person.mkdir(parents=True)
    (person / "photo.jpg").write_bytes(b"no image")
    done = facepairs("demo", "--out", tmp_path / "demo", check=2)
    assert commands_of(done) == ["bench"]
    assert done.stderr.count("facepairs: error: ") == 1
    assert not (tmp_path / "demo" / "run").exists()


@pytest.mark.slow
def test_a_demo_that_was_stopped_goes_on_with_its_training(faces, difference_run, tmp_path):
    out = tmp_path / "demo"
    out.mkdir()
    (out / "faces").symlink_to(faces)
    shutil.copytree(difference_run.folder, out / "run")
    done = facepairs("demo", "--out", out, check=0)
    assert commands_of(done) == ["train", "evaluate", "verify", "verify"]
    assert f"facepairs train {out / 'faces'} --out {out / 'run'} --resume\n" in done.stdout
    assert "is finished after 2 epochs" in done.stderr
    assert len(re.findall(r"^[A-Z].+:\n\$ facepairs ", done.stdout, re.MULTILINE)) == 4
    assert f"tensorboard --logdir {out / 'run' / 'tensorboard'}" in done.stdout
    assert (out / "report.html").stat().st_size > 10_000
    check_median_pairs(out, done.stdout)


@pytest.mark.slow
def test_the_demo_compares_trains_measures_and_verifies(tmp_path):
    out = tmp_path / "demo"
    done = facepairs("demo", "--out", out, check=0)
    steps = ["data", "bench", "train", "evaluate", "verify", "verify"]
    assert commands_of(done) == steps
    for row in PIPELINES.split(","):
        assert re.search(rf"^{row} +[█▉▊▋▌▍▎▏]", done.stdout, re.MULTILINE)
    epochs = re.findall(r"^epoch .* pairs/s  input wait [\d.]+%", done.stderr, re.MULTILINE)
    assert len(epochs) == EPOCHS
    verdicts = re.findall(r"^verdict +(.*)", done.stdout, re.MULTILINE)
    assert verdicts == ["same person", "different people"]
    assert (out / "report.html").stat().st_size > 10_000
    check_median_pairs(out, done.stdout)
    again = facepairs("demo", "--out", out, check=0)  # the run is finished: resumes
    assert commands_of(again) == steps[2:]


def check_median_pairs(out, stdout):
    """Compare the pairs that are verified with the middle of each kind's scores."""
    with (out / "scores.csv").open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    pairs = re.findall(r"^\$ facepairs verify (\S+) (\S+) --bundle", stdout, re.MULTILINE)
    for genuine, photos in zip("10", pairs, strict=True):
        of_kind = {
            (row["left"], row["right"]): float(row["score"])
            for row in rows
            if row["genuine"] == genuine
        }
        names = tuple(str(Path(photo).relative_to(out / "faces")) for photo in photos)
        ranks = sorted(of_kind.values())
        assert abs(ranks.index(of_kind[names]) - len(ranks) / 2) <= 1
