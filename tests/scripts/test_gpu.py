"""The benchmark of training from different input pipelines runs, with TensorFlow and without it."""

import importlib.util
import json
import os
import subprocess
import sys

import gpu
import pytest
from processes.command_line import facepairs

# Runs a script as if TensorFlow were not installed.
ALONE = """
import runpy, sys
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name == "tensorflow" else find(name, *rest)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
ROWS = ("constant", "pil", "article", "files", "tfrecord-jpeg", "tfrecord-raw", "memory")
pytestmark = pytest.mark.slow  # it measures
SHORT = ("--models", "difference", "--seconds", "0.05", "--batch-size", "4")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu") / "photos"
    facepairs("data", "synth", "--out", folder, "--people", 8, "--photos", 3, check=0)
    return folder


def by_row(out, backend):
    """Read the results by row."""
    report = json.loads(out.read_text())
    assert (report["backend"], report["batch_size"]) == (backend, 4)
    return {one["row"]: one for one in report["results"]}


def check_measured(found):
    """Check the figures of rows against each other."""
    ceiling = found["constant"]["pairs_per_s"]
    for one in found.values():
        assert one["model"] == "difference"
        assert one["steps"] >= 20
        assert one["share"] == pytest.approx(one["pairs_per_s"] / ceiling)
    assert found["constant"]["share"] == 1


def test_rows_train_with_tensorflow(photos, tmp_path, monkeypatch):
    out = tmp_path / "gpu.json"
    words = ["gpu.py", photos, *SHORT, "--rows", ",".join(ROWS), "--out", out]
    monkeypatch.setattr(sys, "argv", list(map(str, words)))
    gpu.main()
    found = by_row(out, "tensorflow")
    assert tuple(found) == ROWS
    check_measured(found)


def test_jax_trains_without_tensorflow(photos, tmp_path):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("needs facepairs[jax]")
    out = tmp_path / "gpu.json"
    command = [sys.executable, "-c", ALONE, gpu.__file__, photos, *SHORT, "--out", out]
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = by_row(out, "jax")
    assert tuple(found) == ROWS
    without = {name for name, one in found.items() if one["skipped"]}
    assert without == {"article", "tfrecord-jpeg", "tfrecord-raw"}
    check_measured({name: one for name, one in found.items() if name not in without})
