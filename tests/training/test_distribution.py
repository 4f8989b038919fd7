"""Several devices and workers share every batch, and end at the same weights."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from processes import workers

SCRIPT = Path(__file__).parents[1] / "helpers" / "processes" / "shared_training.py"


def saved(folder, worker):
    with np.load(folder / f"worker-{worker}.npz") as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["siamese", "difference"])
def test_two_workers_end_at_the_same_weights(faces, tmp_path, model):
    words = [sys.executable, str(SCRIPT), str(faces), str(tmp_path / "run"), model]
    (first, output, _), (second, other, errors) = workers.finish(workers.start(words, 2))
    assert (first, second) == (0, 0), errors
    assert output == other
    one, two = saved(tmp_path, 0), saved(tmp_path, 1)
    assert one.keys() == two.keys()
    assert all(np.array_equal(one[name], two[name]) for name in one)


@pytest.mark.slow
def test_two_devices_of_one_machine_train(faces, tmp_path):
    words = [sys.executable, str(SCRIPT), str(faces), str(tmp_path / "run"), "difference"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("2 ")
    assert np.isfinite(saved(tmp_path, 0)["loss"])
