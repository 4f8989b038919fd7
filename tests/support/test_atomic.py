"""Outputs are complete or absent, also when the writer is killed."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from facepairs.errors import BadData
from facepairs.support.atomic import atomic_file, atomic_folder, is_temporary, temporary_beside


def test_a_file_appears_when_the_block_ends_without_error(tmp_path):
    target = tmp_path / "very" / "deep" / "a.txt"
    with atomic_file(target) as handle:
        handle.write("größer\n")
        assert not target.exists()
    with pytest.raises(ZeroDivisionError), atomic_file(target) as handle:
        handle.write("new")
        raise ZeroDivisionError
    assert target.read_text(encoding="utf-8") == "größer\n"
    assert [p.name for p in target.parent.iterdir()] == ["a.txt"]
    target.chmod(0o640)
    with atomic_file(target) as handle:
        handle.write("new")
    assert os.name != "posix" or target.stat().st_mode & 0o777 == 0o640  # as private as before


@pytest.mark.skipif(os.name != "posix", reason="Windows has handles")
def test_no_file_stays_open(tmp_path):
    before = psutil.Process().num_fds()
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "file").touch()
    assert psutil.Process().num_fds() == before


@pytest.mark.parametrize(
    ("name", "is_one"),
    [(".a.tmp-12-0badcafe", True), (".a.old-12-0badcafe", True), ("a.tmp-12-0badcafe", False),
     (".a.tmp-12-0badcaf", False), (".a.tmp-x-0badcafe", False)],
)  # fmt: skip
def test_temporary_names_are_known(name, is_one):
    assert is_temporary(name) == is_one


def test_a_folder_is_replaced_at_the_end(tmp_path):
    target = tmp_path / "bundle"
    target.mkdir(0o700)
    for text in ("one", "two"):
        with atomic_folder(target) as folder:
            (folder / "file").write_text(text)
    assert (target / "file").read_text() == "two"
    with pytest.raises(ZeroDivisionError), atomic_folder(target) as folder:
        (folder / "file").write_text("three")
        raise ZeroDivisionError
    assert (target / "file").read_text() == "two"
    assert len(list(tmp_path.iterdir())) == 1
    assert os.name != "posix" or target.stat().st_mode & 0o777 == 0o700  # as private as before


def test_the_old_folder_comes_back_if_the_new_one_cannot_take_its_place(tmp_path):
    target = tmp_path / "bundle"
    with atomic_folder(target) as folder:
        (folder / "file").write_text("old")
    with pytest.raises(BadData), atomic_folder(target) as folder:
        folder.rename(tmp_path / "moved")
    assert (target / "file").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "moved"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_written_is_on_disk_before_it_takes_its_place(tmp_path, monkeypatch, kind):
    flushed = set()

    def flush(handle):
        assert not (tmp_path / "out").exists() or os.fstat(handle).st_ino == tmp_path.stat().st_ino
        flushed.add(os.fstat(handle).st_ino)

    monkeypatch.setattr(os, "fsync", flush)
    if kind == "file":
        with atomic_file(tmp_path / "out") as handle:
            handle.write("x")
        written = [tmp_path / "out"]
    else:
        with atomic_folder(tmp_path / "out") as folder:
            (folder / "deep").mkdir()
            (folder / "deep" / "file").write_text("x")
            (tmp_path / "there").touch()
            os.link(tmp_path / "there", folder / "linked")
        assert (tmp_path / "there").stat().st_ino not in flushed  # it was on disk before
        written = [tmp_path / "out", tmp_path / "out" / "deep" / "file"]
    assert {path.stat().st_ino for path in (tmp_path, *written)} <= flushed


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for make in (atomic_file, atomic_folder):
        with pytest.raises(BadData), make(tmp_path / "file" / "x"):
            pass


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "old").touch()
    for name, target in (("file", "a.txt"), ("nowhere", "b.txt"), ("folder", "real")):
        (tmp_path / name).symlink_to(target)
    (tmp_path / "a.txt").write_text("old")
    for name in ("file", "nowhere"):
        with atomic_file(tmp_path / name) as handle:
            handle.write("new")
    with atomic_folder(tmp_path / "folder") as folder:
        (folder / "new").touch()
    assert all((tmp_path / name).is_symlink() for name in ("file", "nowhere", "folder"))
    assert (tmp_path / "a.txt").read_text() == (tmp_path / "b.txt").read_text() == "new"
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["new"]
    (tmp_path / "loop").symlink_to("loop")
    for make in (atomic_file, atomic_folder, temporary_beside):
        with pytest.raises(BadData), make(tmp_path / "loop"):
            pass


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_refused_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for make in (atomic_file, atomic_folder, temporary_beside):
        with pytest.raises(BadData), make(pipe):
            pass
    assert pipe.is_fifo()


KILLED = """
import sys, time
from pathlib import Path
from facepairs.support.atomic import atomic_file, atomic_folder
target = Path(sys.argv[1])
if sys.argv[2] == "file":
    with atomic_file(target) as handle:
        handle.write("half"); handle.flush(); print("ready", flush=True); time.sleep(60)
with atomic_folder(target) as folder:
    (folder / "half").write_text("half"); print("ready", flush=True); time.sleep(60)
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path, kind):
    target = tmp_path / "out"
    writer = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(target), kind], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    assert not target.exists()
    assert len(list(tmp_path.iterdir())) == 1  # the temporary, swept by the next writer:
    with atomic_file(target) as handle:
        handle.write("whole")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_folder_killed_between_its_two_renames_comes_back(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    old = tmp_path / f".bundle.old-{gone.pid}-0badcafe"
    other = tmp_path / f".another.old-{gone.pid}-0badcafe"
    old.mkdir()
    (old / "file").write_text("kept")
    other.mkdir()
    with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path / "bundle"):
        raise ZeroDivisionError
    assert (tmp_path / "bundle" / "file").read_text() == "kept"
    old.mkdir()  # of a process that was killed after both renames
    with atomic_folder(tmp_path / "bundle") as folder:
        (folder / "new").touch()
    assert {path.name for path in tmp_path.iterdir()} == {"bundle", other.name}


def test_the_temporary_of_a_running_writer_stays(tmp_path):
    other = tmp_path / f".out.tmp-{os.getppid()}-0badcafe"
    other.write_text("at work")
    with atomic_file(tmp_path / "out") as handle:
        handle.write("x")
    assert other.exists()
