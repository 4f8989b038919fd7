"""The check of exact resume: kills and Ctrl-C at chosen places, for every model, store and fold."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "resume_check.py"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_model_store_and_fold_resumes_exactly(tmp_path):
    words = [sys.executable, SCRIPT, "--out", tmp_path / "out", "--stops", "6", "--json"]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["same"]
    assert len(found["tasks"]) == 9
    assert all(task["trials"] == task["same"] == 6 for task in found["tasks"])
