"""Several devices and workers learn what one does with the whole batch."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import workers

SCRIPT = Path(__file__).parents[2] / "helpers" / "shared_training.py"
LOSSES = ("in-batch", "supervised", "margin", "triplet", "cross-entropy", "cosface")
CONV = "siamese-conv:in-batch"
ALL = (*(f"siamese-conv:{loss}" for loss in LOSSES), "difference:in-batch")


def script(faces, out: Path, devices: int, *models: str) -> list[str]:
    return [sys.executable, str(SCRIPT), str(faces), str(out), str(devices), *models]


def alone(*arguments):
    done = subprocess.run(script(*arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def saved(out: Path, model: str, worker: int = 0):
    with np.load(f"{out}-{worker}-{model.replace(':', '-')}.npz") as archive:
        return {name: archive[name] for name in archive.files}


def assert_alike(one, other):
    """Say that both went the same way.

    Rounding turns some ReLU and maximum over, which moves a layer by a tenth of its way at most; a
    slope of twice the size would move it by its whole way.
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
def test_devices_with_unequal_parts_learn_what_one_does_from_every_loss(faces, one, tmp_path):
    alone(faces, tmp_path / "run", 3, *ALL)
    for model in ALL:
        assert_alike(saved(one, model), saved(tmp_path / "run", model))


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_workers_end_at_the_same_weights_which_are_those_of_one(faces, one, tmp_path, count):
    models = (CONV, "difference:in-batch")
    started = workers.start(script(faces, tmp_path / "run", count, *models), count)
    assert [code for code, *_ in workers.finish(started)] == [0] * count
    for model in models:
        first = saved(tmp_path / "run", model)
        assert_alike(saved(one, model), first)
        for worker in range(1, count):
            other = saved(tmp_path / "run", model, worker)
            assert all(np.array_equal(first[name], other[name]) for name in first)


def test_one_worker_or_device_is_asked_for_nothing():
    assert "TF_CONFIG" not in os.environ
    from facepairs.training.distributed.context import open_team

    team = open_team("auto")
    assert (team.worker, team.workers, team.replicas, team.strategy) == (0, 1, 1, None)
    assert team.own(10) is None
    assert team.any(True)
    assert team.chiefs(3.5) == 3.5
    team.check_same("whatever", "anything")
    with team.in_turn():
        team.wait()
