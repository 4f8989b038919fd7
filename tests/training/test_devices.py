"""Several devices and workers learn what one device learns with the whole batch."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from processes import workers

SCRIPT = Path(__file__).parents[1] / "helpers" / "processes" / "shared_training.py"
LOSSES = ("in-batch", "margin", "triplet")
CONV = "siamese:in-batch"
ALL = (*(f"siamese:{loss}" for loss in LOSSES), "difference:in-batch")


def script(faces, out: Path, devices: int, *models: str) -> list[str]:
    return [sys.executable, str(SCRIPT), str(faces), str(out), str(devices), *models]


def alone(*arguments):
    done = subprocess.run(script(*arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def saved(out: Path, model: str, worker: int = 0):
    with np.load(f"{out}-{worker}-{model.replace(':', '-')}.npz") as archive:
        return {name: archive[name] for name in archive.files}


def assert_same_training(one, other):
    """Assert that two trainings moved the weights alike.

    Rounding changes some ReLUs and maxima, which moves a layer's weights by a tenth of their
    change at most; a gradient of twice the size would move them by all of it.
    """
    assert other["loss"] == pytest.approx(one["loss"], rel=5e-3)
    for name in (name for name in one if name.startswith("v")):
        way = one[name] - one[f"start-{name}"]
        assert np.linalg.norm(other[name] - one[name]) <= 0.2 * np.linalg.norm(way) + 1e-6, name


@pytest.fixture(scope="module")
def one(faces, tmp_path_factory):
    out = tmp_path_factory.mktemp("one") / "run"
    alone(faces, out, 1, *ALL)
    return out


@pytest.mark.slow
def test_unequal_shards_learn_what_one_device_does_with_every_loss(faces, one, tmp_path):
    alone(faces, tmp_path / "run", 3, *ALL)
    for model in ALL:
        assert_same_training(saved(one, model), saved(tmp_path / "run", model))


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_all_workers_end_at_the_weights_of_a_single_device(faces, one, tmp_path, count):
    models = (CONV, "difference:in-batch")
    started = workers.start(script(faces, tmp_path / "run", count, *models), count)
    assert [code for code, *_ in workers.finish(started)] == [0] * count
    for model in models:
        first = saved(tmp_path / "run", model)
        assert_same_training(saved(one, model), first)
        for worker in range(1, count):
            other = saved(tmp_path / "run", model, worker)
            assert all(np.array_equal(first[name], other[name]) for name in first)
