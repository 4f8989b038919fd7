"""Where commands keep what they find in photos, how they go on, and how a user forgets it."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import time

import pytest
from processes.command_line import command, in_process


def score(pairs, out, *options):
    return ("score", pairs, "--out", out, *options)


def kept(file, table="embeddings"):
    """The number of rows that a run in progress has committed."""
    if not file.exists():
        return 0
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as opened:
        try:
            return opened.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        except sqlite3.OperationalError:  # locked, or its tables are not there yet
            return 0


def write_pairs(few_faces, folder, count):
    """Return a list of photos of different content, each in one pair."""
    folder.mkdir()
    photos = sorted(few_faces.glob("*/*.jpg"))
    for number in range(count):
        copied = photos[number % len(photos)].read_bytes()
        (folder / f"{number}.jpg").write_bytes(copied + bytes([number]))
    rows = [f"{number}.jpg,{number + 1}.jpg" for number in range(0, count, 2)]
    (folder / "pairs.csv").write_text("\n".join(["left,right", *rows]) + "\n")
    return folder / "pairs.csv"


def test_a_second_run_changes_nothing_and_what_was_kept_can_be_forgotten(few_faces, tmp_path):
    pairs = write_pairs(few_faces, tmp_path / "photos", 16)
    file, outs = tmp_path / "folder" / "photos.sqlite", [tmp_path / f"{n}.csv" for n in range(4)]
    here = ("--photo-cache", file)
    in_process(*here, *score(pairs, outs[0]), check=0)
    assert (kept(file), kept(file, "photos")) == (16, 16)
    if os.name == "posix":
        assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_bytes()
    in_process(*score(pairs, outs[1]), *here, check=0)
    assert file.read_bytes() == before
    done = in_process("forget", f"--photo-cache={file}", "--no-photo-cache", "--json", check=0)
    assert json.loads(done.stdout)["deleted"]
    assert not list(file.parent.iterdir())
    assert not json.loads(in_process("forget", *here, "--json", check=0).stdout)["deleted"]
    in_process("--no-photo-cache", *score(pairs, outs[2]), *here, check=0)
    assert not list(file.parent.iterdir())
    assert len({out.read_bytes() for out in outs[:3]}) == 1


def test_two_photos_and_enrolment_keep_nothing(few_faces, tmp_path):
    file = tmp_path / "photos.sqlite"
    photos = sorted(few_faces.glob("*/*.jpg"))[:2]
    in_process("verify", *photos, "--photo-cache", file)
    assert not file.exists()
    gallery = tmp_path / "known.gallery"
    add = ("gallery", "add", gallery, photos[0], "--name", "Ann", "--any-quality")
    in_process(*add, "--photo-cache", file)
    assert kept(file) == kept(file, "photos") == 0


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_after_ctrl_c_the_same_command_goes_on(few_faces, tmp_path):
    count = 128
    pairs = write_pairs(few_faces, tmp_path / "photos", count)
    file, out = tmp_path / "photos.sqlite", tmp_path / "out.csv"
    words = score(pairs, out, "--photo-cache", file)
    with subprocess.Popen(command(*words), stderr=subprocess.PIPE, text=True) as process:
        limit = time.monotonic() + 60
        while not kept(file) and process.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert not out.exists()
    found = kept(file)
    assert 0 < found < count
    in_process(*words, check=0)
    assert kept(file) == count
    whole = tmp_path / "whole.csv"
    in_process(*score(pairs, whole, "--no-photo-cache"), check=0)
    assert out.read_bytes() == whole.read_bytes()
