"""Exact resume after kills and Ctrl-C at chosen points, for every model, store and fold.

`make resume` stops each of them more often.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stress.resume import FITTING, FOLDS, LOOP

TESTS = Path(__file__).parents[1]


def test_stop_points_name_functions_that_exist():
    for point in (*LOOP, *FITTING, *FOLDS):
        owner, attribute = point.find()
        assert callable(getattr(owner, attribute)), point


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_model_store_and_fold_resumes_exactly(tmp_path):
    words = [sys.executable, "-m", "stress.resume", "--out", tmp_path / "out", "--stops", "2"]
    path = os.pathsep.join(map(str, (TESTS, TESTS / "helpers")))
    done = subprocess.run(
        [*map(str, words), "--json"], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["same"]
    assert len(result["tasks"]) == 9
    assert all(task["trials"] == task["same"] == 2 for task in result["tasks"])
