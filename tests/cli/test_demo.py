"""`facepairs demo`: the whole workflow on drawn faces."""

import re

import pytest
from processes.command_line import facepairs


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
