"""Models and losses on Keras's other backends give what they give on TensorFlow."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

JOB = Path(__file__).with_name("backend_job.py")


def run_on(backend, *arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KERAS_BACKEND": backend},
    )


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return tmp_path_factory.mktemp("weights")


@pytest.fixture(scope="module")
def on_tensorflow(weights):
    return json.loads(run_on("tensorflow", JOB, weights).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_outputs_losses_and_a_step_of_training_are_those_of_tensorflow(
    backend, weights, on_tensorflow
):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"needs the package {backend}")
    done = run_on(backend, JOB, weights)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert list(figures) == list(on_tensorflow)
    for name, parts in on_tensorflow.items():
        for part, other in zip(parts, figures[name], strict=True):
            assert np.allclose(part, other, atol=2e-3), name
