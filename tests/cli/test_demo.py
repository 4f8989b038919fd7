"""`facepairs demo`: the whole workflow on drawn faces."""

import re

import pytest
from command_line import facepairs


def test_a_step_that_fails_ends_the_demo(tmp_path):
    person = tmp_path / "demo" / "faces" / "Somebody"
    person.mkdir(parents=True)
    (person / "photo.jpg").write_bytes(b"no image")
    done = facepairs("demo", "--out", tmp_path / "demo", check=2)
    assert "$ facepairs data check" in done.stdout
    assert "train" not in done.stdout
    assert not (tmp_path / "demo" / "run").exists()


@pytest.mark.slow
def test_the_demo_draws_trains_measures_and_verifies(tmp_path):
    out = tmp_path / "demo"
    done = facepairs("demo", "--out", out, "--people", 60, "--epochs", 1, check=0)
    commands = re.findall(r"^\$ facepairs (\w+)", done.stdout, re.MULTILINE)
    assert commands == ["data", "data", "train", "evaluate", "verify", "verify"]
    assert done.stdout.count("\nverdict ") == 2
    assert re.search(r"^AUC on unseen people: [01]\.\d{4}$", done.stdout, re.MULTILINE)
    assert len(list((out / "faces").iterdir())) == 60
    again = facepairs("demo", "--out", out, check=None)  # resumes: the run is finished
    assert "--resume" in again.stdout
