"""A run folder is locked by one process, and what a killed process leaves does not block it."""

import os
import subprocess
import sys

import pytest

from facepairs.errors import BadConfig, BadRun
from facepairs.support.lock import held
from facepairs.training.run_folder import LOCK, check_place


def test_a_process_killed_before_writing_the_settings_leaves_no_run(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "run.lock").write_text(f"{gone.pid}\n")
    (tmp_path / f".config.toml.tmp-{gone.pid}-0badcafe").write_text('model = "di')
    check_place(tmp_path, tmp_path / "faces", resume=False)
    with held(tmp_path / LOCK, tmp_path):
        assert (tmp_path / "run.lock").read_text() == f"{os.getpid()}\n"
    assert not (tmp_path / "run.lock").exists()


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
