"""The study on one's own people, end to end on people who do not exist."""

import json

import pytest
from processes.script_runner import run_script

SCRIPT = "scripts/studies/own_people.py"


@pytest.fixture(scope="module")
def study(many_faces, tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "out"
    words = (many_faces, "--people", "24,14", "--methods", "calibrated", "--out", out)
    done = run_script(SCRIPT, *words)
    assert done.returncode == 0, done.stderr
    return words, out


@pytest.mark.slow
def test_every_row_is_measured_on_the_same_other_people(study):
    _, out = study
    rows = json.loads((out / "result.json").read_text())
    assert [(row["method"], row["people"]) for row in rows] == [
        ("included", 0), ("calibrated", 14), ("calibrated", 24),
    ]  # fmt: skip
    assert len({row["figures"]["genuine_pairs"] for row in rows}) == 1
    fewer, more, test = (
        {folder.name for folder in (out / name).iterdir()}
        for name in ("own-014", "own-024", "test")
    )
    assert fewer < more
    assert len(test) == 48 - 24
    assert not test & more


def test_too_few_people_are_refused(many_faces, tmp_path):
    done = run_script(SCRIPT, many_faces, "--people", "100", "--out", tmp_path / "study")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
