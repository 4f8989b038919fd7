"""A second process is refused while the first one works; a killed process blocks nobody."""

import os
import subprocess
import sys
import threading

import pytest

from facepairs.errors import BadData, BadRun
from facepairs.support.lock import held, lock_beside

HOLD = (
    "import sys; from pathlib import Path; from facepairs.support.lock import held\n"
    "lock = Path(sys.argv[1])\n"
    "with held(lock, lock): print('held', flush=True); sys.stdin.read()"
)


@pytest.fixture
def holder(tmp_path):
    """A process that holds tmp_path/lock until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_process_is_refused_with_the_first_ones_number(holder, tmp_path):
    with pytest.raises(BadData, match=f" {holder.pid}"), held(tmp_path / "lock", tmp_path, BadData):
        pass
    assert (tmp_path / "lock").read_text() == f"{holder.pid}\n"
    (tmp_path / "lock").write_text("")  # between locking and writing
    with pytest.raises(BadData, match="just begun"), held(tmp_path / "lock", tmp_path, BadData):
        pass


def test_the_lock_of_a_killed_process_is_free(holder, tmp_path):
    holder.kill()
    holder.wait()
    lock = lock_beside(tmp_path / "cache")
    assert lock.name == ".cache.lock"
    (tmp_path / "lock").rename(lock)
    with held(lock, tmp_path):
        assert lock.read_text() == f"{os.getpid()}\n"
    assert not lock.exists()


def test_the_number_of_an_unrelated_process_blocks_nobody(tmp_path):
    (tmp_path / "lock").write_text(f"{os.getppid()}\n")  # a number that was reused after a restart
    with held(tmp_path / "lock", tmp_path):
        pass


def test_one_thread_at_a_time_holds_a_lock(tmp_path):
    lock, inside, most, refused = tmp_path / "lock", [], [], []

    def work():
        for _ in range(200):
            try:
                with held(lock, tmp_path):
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
            except BadRun as error:
                refused.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    assert len(most) + len(refused) == 800
    assert not lock.exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(BadRun, match="cache: File exists;"),
        held(tmp_path / "file" / "lock", tmp_path / "cache"),
    ):
        pass


def test_a_folder_made_for_a_lock_goes_with_it_unless_something_was_written(tmp_path):
    empty, used, there = (tmp_path / name for name in ("empty", "new/used", "there"))
    there.mkdir()
    for folder in (empty, used, there):
        with held(folder / "run.lock", folder):
            if folder == used:
                (folder / "result").touch()
    assert sorted(tmp_path.rglob("*")) == [used.parent, used, used / "result", there]
