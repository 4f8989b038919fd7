"""A run folder is locked by one process, and what a killed process leaves does not block it."""

import os
import subprocess
import sys

import pytest

from facepairs.errors import BadConfig, BadRun
from facepairs.training.run_folder import RunFolder, check_place


def test_a_process_killed_before_writing_the_settings_leaves_no_run(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "run.lock").write_text(f"{gone.pid}\n")
    (tmp_path / "log.txt").write_text("begun\n")
    (tmp_path / f".config.toml.tmp-{gone.pid}-0badcafe").write_text('model = "di')
    with RunFolder(tmp_path) as run:
        assert (tmp_path / "run.lock").read_text() == f"{os.getpid()}\n"
        assert run.path == tmp_path
    assert not (tmp_path / "run.lock").exists()


@pytest.mark.parametrize(
    ("name", "is_run"),
    [("config.toml", True), ("result.json", True), ("checkpoints", False), (".hidden", False),
     ("photo.JPG", False)],
)  # fmt: skip
def test_a_folder_with_other_files_is_refused_without_resume(tmp_path, name, is_run):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("x")
    with pytest.raises(BadRun) as caught:
        check_place(out, tmp_path / "faces", resume=False)
    assert ("resume" in caught.value.arguments) == is_run
    assert is_run or name in str(caught.value)
    check_place(out, tmp_path / "faces", resume=True)


def test_what_is_not_there_is_not_resumed_and_photos_are_no_place_for_a_run(tmp_path):
    check_place(tmp_path / "run", tmp_path / "faces", resume=False)
    with pytest.raises(BadRun):
        check_place(tmp_path / "run", tmp_path / "faces", resume=True)
    with pytest.raises(BadConfig):
        check_place(tmp_path / "faces" / "run", tmp_path / "faces", resume=False)


def test_a_folder_in_use_is_refused_with_the_process_number(tmp_path):
    held = (
        "import sys; from pathlib import Path\n"
        "from facepairs.training.run_folder import RunFolder\n"
        "with RunFolder(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    first = subprocess.Popen(
        [sys.executable, "-c", held, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert first.stdout is not None
    assert first.stdout.readline() == b"held\n"
    with (
        pytest.raises(BadRun, match=f"in use by process {first.pid}; wait"),
        RunFolder(tmp_path),
    ):
        pass
    first.kill()
    first.communicate()
    with RunFolder(tmp_path):
        pass
