"""`facepairs demo`: the whole workflow on drawn faces."""

import csv
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from processes.command_line import facepairs, in_process

from facepairs import Verifier
from facepairs.cli.demo import DRAWN, EPOCHS, PIPELINES

FACES = ["kaleth.jpg", "lunwin_1.jpg", "lunwin_2.jpg"]


def test_quick_verifies_three_faces_that_the_included_model_judges_rightly(tmp_path):
    kept = tmp_path / "demo" / "kaleth.jpg"
    kept.parent.mkdir()
    kept.write_bytes((DRAWN / "kaleth.jpg").read_bytes())
    before = kept.stat().st_mtime_ns
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    done = facepairs("demo", "--quick", "--out", tmp_path / "demo", check=0, env=buffered)
    assert sorted(path.name for path in kept.parent.iterdir()) == FACES
    assert kept.stat().st_mtime_ns == before
    verdicts = r":\n\$ facepairs verify .*\nverdict +(.*)"  # each below its title and its command
    assert re.findall(verdicts, done.stdout) == ["same person", "different people"]
    assert "facepairs data check PHOTOS" in done.stdout.rpartition("\nverdict ")[2]
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


COMMANDS = """
data synth --out {out}/faces --people 240 --photos 8 --seed 1
bench {out}/faces --rows pil,article,files,tfrecord-raw,memory --seconds 1.0 --repeats 1 --no-training
train {out}/faces --out {out}/run --config {out}/settings.toml
evaluate {out}/run/bundle {out}/faces --out {out}/scores.csv --report {out}/report.html
verify {out}/faces/b.jpg {out}/faces/x.jpg --bundle {out}/run/bundle
verify {out}/faces/f.jpg {out}/faces/x.jpg --bundle {out}/run/bundle
"""  # noqa: E501
SCORES = "left,right,genuine,score\n" + "".join(
    f"{name}.jpg,x.jpg,{label},{score}\n"
    for name, label, score in zip("abcdefg", "1110000", (9, 5, -3, 90, 1, 2, -10), strict=True)
)


def play(out, monkeypatch, codes):
    """Return how a demo ends whose commands do nothing but return exit codes, and the commands."""
    commands = []

    def run(command, **_):
        commands.append(" ".join(command[3:]))
        if command[3] == "evaluate":
            (out / "scores.csv").write_text(SCORES)
        return subprocess.CompletedProcess(command, codes.get(command[3], 0))

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", run)
        return in_process("demo", "--out", out), commands


def test_the_demo_verifies_the_pairs_in_the_middle_and_goes_on_where_it_was(tmp_path, monkeypatch):
    steps = COMMANDS.format(out=tmp_path).strip().splitlines()
    done, commands = play(tmp_path, monkeypatch, {"verify": 1})
    assert (done.returncode, commands) == (0, steps)
    assert re.findall(r"^\$ facepairs (.*)", done.stdout, re.MULTILINE) == steps
    assert done.stdout.count(":\n$ facepairs ") == len(steps)
    for place in ("report.html", "run/tensorboard"):
        assert str(tmp_path / place) in done.stdout.rpartition("$ facepairs")[2]
    settings = 'model = "difference"\npairs_per_epoch = 1600\nepochs = 8\nseed = 1\n'
    assert (tmp_path / "settings.toml").read_text() == settings
    (tmp_path / "faces").mkdir()
    done, commands = play(tmp_path, monkeypatch, {"train": 1})
    assert (done.returncode, commands) == (2, steps[1:3])
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").touch()
    resume = f"train {tmp_path}/faces --out {tmp_path}/run --resume"
    for code, ends in ((0, 0), (3, 0), (2, 2)):  # 3: no verdict; 2: an error
        done, commands = play(tmp_path, monkeypatch, {"verify": code})
        assert (done.returncode, commands) == (ends, [resume, *steps[3 : 5 if ends else 6]])


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
