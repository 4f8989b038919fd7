"""A run folder is locked by one process, and what a killed process leaves does not block it."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from facepairs.bundles.rates import OperatingPoint
from facepairs.config import TrainConfig
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadConfig, BadRun
from facepairs.support.lock import held
from facepairs.training.progress import Epoch, Progress
from facepairs.training.run_folder import LOCK, Run, begin_run, check_place, settings_of_run


def test_a_process_killed_before_writing_the_settings_leaves_no_run(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "run.lock").write_text(f"{gone.pid}\n")
    (tmp_path / f".config.toml.tmp-{gone.pid}-0badcafe").write_text('model = "di')
    check_place(tmp_path, tmp_path / "faces", resume=False)
    with held(tmp_path / LOCK, tmp_path):
        assert (tmp_path / "run.lock").read_text() == f"{os.getpid()}\n"
    assert not (tmp_path / "run.lock").exists()


def test_a_number_of_epochs_replaces_a_limit_of_time(tmp_path):
    begin_run(tmp_path / "run", TrainConfig(model="siamese", minutes=7.0).resolve())
    lengths = {"epochs": (5, [5, None]), "minutes": (9.0, [None, 9.0]), "seed": (0, [None, 7.0])}
    for name, (value, length) in lengths.items():
        given = TrainConfig(**{name: value})
        assert settings_of_run(given, tmp_path / "run", True).length == length


def test_a_run_that_begins_again_is_not_finished_any_more(tmp_path):
    (tmp_path / "result.json").write_text("{}")
    begin_run(tmp_path, TrainConfig(model="siamese").resolve())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml"]


def test_the_result_is_of_the_epoch_that_is_kept(tmp_path):
    nobody = np.array([], np.int64)
    split = PeopleSplit(np.arange(5), np.arange(4), np.arange(3), nobody)
    progress = Progress(tmp_path, "sources", True, time.perf_counter())
    empty = Run.of(progress, split, True, None)
    assert (empty.epochs, empty.epoch, empty.seconds, empty.val_auc) == (0, 0, 0, None)
    assert (empty.wall_seconds, empty.operating_point, empty.val_people) == (0, None, 0)
    assert empty.people == {"training": 5, "calibration": 4, "test": 3, "validation": 0}
    progress.history += [Epoch(1, 12.34, 0.9, 20.0), Epoch(2, 23.456, 0.8, 40.0)]
    decides = OperatingPoint(0.5, "balanced")
    run = Run.of(progress, split, False, decides)
    assert (run.epochs, run.epoch, run.seconds, run.val_auc) == (2, 1, 23.5, 0.9)
    assert (run.interrupted, run.operating_point) == (False, decides)


@pytest.mark.parametrize("name", ["config.toml", "checkpoints", ".hidden", "photo.JPG"])
def test_a_folder_that_holds_anything_is_refused_without_resume(tmp_path, name):
    out, faces = tmp_path / "out", tmp_path / "faces"
    check_place(out, faces, resume=False)
    out.mkdir()
    for left in ("run.lock", ".config.toml.tmp-7-0badcafe"):  # of a process that was killed
        (out / left).touch()
    check_place(out, faces, resume=False)
    (out / name).write_text("x")
    with pytest.raises(BadRun) as caught:
        check_place(out, faces, resume=False)
    assert caught.value.arguments == ("resume", "out")
    check_place(out, faces, resume=True)
    with pytest.raises(BadConfig):
        check_place(faces / "run", faces, resume=False)
