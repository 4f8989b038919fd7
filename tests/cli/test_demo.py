"""`facepairs demo`: the whole workflow on drawn faces."""

import re

import pytest
from processes.command_line import facepairs

from facepairs import Verifier
from facepairs.cli.demo import DRAWN

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


def test_a_step_that_fails_ends_the_demo(tmp_path):
    person = tmp_path / "demo" / "faces" / "Somebody"
    person.mkdir(parents=True)
    (person / "photo.jpg").write_bytes(b"no image")
    done = facepairs("demo", "--out", tmp_path / "demo", check=2)
    assert re.findall(r"^\$ facepairs (\w+)", done.stdout, re.MULTILINE) == ["data"]
    assert not (tmp_path / "demo" / "run").exists()


@pytest.mark.slow
def test_the_demo_draws_trains_measures_and_verifies(tmp_path):
    out = tmp_path / "demo"
    done = facepairs("demo", "--out", out, check=0)
    commands = re.findall(r"^\$ facepairs (\w+)", done.stdout, re.MULTILINE)
    assert commands == ["data", "data", "train", "evaluate", "evaluate", "verify", "verify"]
    assert done.stdout.count("\nverdict ") == 2
    assert len(list((out / "faces").iterdir())) == 320
    assert (out / "report.html").stat().st_size > 10_000
    again = facepairs("demo", "--out", out, check=0)  # the run is finished: resumes
    commands = re.findall(r"^\$ facepairs (\w+)", again.stdout, re.MULTILINE)
    assert commands == ["data", "train", "evaluate", "evaluate", "verify", "verify"]
