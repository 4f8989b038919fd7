"""A run folder is held by one process, and nothing that a kill leaves bars it."""

import os
import subprocess
import sys

import pytest

from facepairs.errors import BadRun
from facepairs.training.run_folder.folder import RunFolder


def test_what_a_kill_leaves_before_the_configuration_is_no_run(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "run.lock").write_text(f"{gone.pid}\n")
    (tmp_path / "log.txt").write_text("begun\n")
    (tmp_path / f".config.toml.tmp-{gone.pid}-0badcafe").write_text('model = "di')
    with RunFolder(tmp_path, resume=False) as run:
        assert (tmp_path / "run.lock").read_text() == f"{os.getpid()}\n"
        assert run.path == tmp_path
    assert not (tmp_path / "run.lock").exists()


@pytest.mark.parametrize("name", ["config.toml", "checkpoint.npz", ".hidden"])
def test_what_others_left_is_not_taken(tmp_path, name):
    (tmp_path / name).write_text("x")
    with pytest.raises(BadRun, match="go on with --resume"), RunFolder(tmp_path, resume=False):
        pass


def test_the_second_of_two_is_refused_with_the_firsts_number(tmp_path):
    held = (
        "import sys; from pathlib import Path; from facepairs.training.run_folder.folder import RunFolder\n"
        "with RunFolder(Path(sys.argv[1]), False): print('held', flush=True); sys.stdin.read()"
    )
    first = subprocess.Popen(
        [sys.executable, "-c", held, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert first.stdout is not None
    assert first.stdout.readline() == b"held\n"
    with (
        pytest.raises(BadRun, match=f"in use by process {first.pid}; wait"),
        RunFolder(tmp_path, resume=True),
    ):
        pass
    first.kill()
    first.communicate()
    with RunFolder(tmp_path, resume=True):
        pass
