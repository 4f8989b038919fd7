"""The study on one's own people, end to end on people who do not exist."""

import json

import pytest
from processes.script_runner import run_script

SCRIPT = "scripts/studies/own_people.py"


@pytest.mark.slow
def test_every_row_is_measured_on_the_same_other_people(many_faces, tmp_path):
    out = tmp_path / "out"
    words = (many_faces, "--people", "24,14", "--methods", "calibrated", "--out", out)
    done = run_script(SCRIPT, *words)
    assert done.returncode == 0, done.stderr
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
