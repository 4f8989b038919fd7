"""The cache of what was found in photos: shared, and never in the way."""

import contextlib
import hashlib
import logging
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from facepairs.faces.face_cache import FaceCache, face_cache
from facepairs.faces.photo_record import PhotoRecord

WRITER = """
import sys
from pathlib import Path
from facepairs.faces.face_cache import FaceCache
from test_face_cache import record
cache, start = FaceCache(Path(sys.argv[1])), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for number in range(start, start + 300, 10):
    cache.put([record(at) for at in range(number, number + 10)])
print("done", flush=True)
sys.stdin.readline()
"""


def record(number):
    face = (0.9, *(float(number + at) for at in range(10)))
    digest = hashlib.sha256(b"%d" % number).digest()
    return PhotoRecord("", "", 640, 480, True, (face,) * (number % 3), digest)


def writer(path, start):
    folders = [str(Path(__file__).parent), *sys.path]
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(start)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def stored(path, numbers):
    cache = FaceCache(path)
    with contextlib.closing(cache):
        return [cache.get(record(number).digest) == record(number) for number in numbers]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "faces.sqlite"


def test_records_are_found_again(path):
    cache = FaceCache(path)
    assert cache.get(record(1).digest) is None
    cache.put([record(1), record(2)])
    assert all(stored(path, [1, 2]))
    newer = PhotoRecord(width_px=7, faces=(), digest=record(1).digest)
    FaceCache(path).put([newer])
    assert cache.get(newer.digest) == newer
    FaceCache(path).put([PhotoRecord(digest=record(1).digest)])  # without faces
    assert cache.get(newer.digest) == newer


def test_two_processes_write_at_the_same_time(path):
    processes = [writer(path, start) for start in (0, 300)]
    for answer in ("ready", "done"):
        for process in processes:
            assert process.stdout.readline().strip() == answer
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
    assert [process.wait() for process in processes] == [0, 0]
    for process in processes:
        process.stdin.close()
        process.stdout.close()
    assert all(stored(path, range(600)))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_what_was_stored_survives_a_kill(path):
    with writer(path, 0) as process:
        process.stdout.readline()
        process.stdin.write("go\n")
        process.stdin.flush()
        process.stdout.readline()
        process.kill()
    assert all(stored(path, range(300)))


def test_threads_share_one_cache(path):
    cache = FaceCache(path)

    def work(number):
        cache.put([record(number)])
        return cache.get(record(number).digest) == record(number)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(200)))
    assert all(stored(path, range(200)))


def test_a_copy_opens_the_file_itself(path):
    cache = FaceCache(path)
    cache.put([record(1)])
    assert pickle.loads(pickle.dumps(cache)).get(record(1).digest) == record(1)


def torn(path):
    FaceCache(path).put(record(number) for number in range(2000))
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\x77" * (len(data) - 4096))


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"not a database" * 1000), torn])
def test_a_damaged_or_foreign_file_is_made_anew(path, damage, caplog):
    path.parent.mkdir()
    damage(path)
    cache = FaceCache(path)
    assert cache.get(record(1).digest) is None
    cache.put([record(1)])
    assert cache.get(record(1).digest) == record(1)
    assert "it is made anew" in caplog.text
    assert all(stored(path, [1]))


@pytest.mark.parametrize(
    "changes",
    [
        {"width_px": -1},
        {"faces": ((0.9, 1.0),)},
        {"faces": ((0.9, *(float("nan"),) * 10),)},
        {"faces": ((0.9, *(1e30,) * 10),)},
        {"faces": ((0.9, *(1.0,) * 10),) * 2000},
        {"reason": 7},
    ],
)
def test_a_record_of_impossible_values_is_not_used(path, changes):
    wrong = msgspec.structs.replace(record(1), **changes)
    cache = FaceCache(path)
    cache.put([wrong, record(2)])
    assert (cache.get(wrong.digest), cache.get(record(2).digest)) == (None, record(2))


@pytest.mark.parametrize("value", [17, "text", b"", b"\x96\xa1\xff", b"\xff" * 99])
def test_a_damaged_record_is_not_used(path, value):
    cache = FaceCache(path)
    cache.put([record(1)])
    cache.close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE photos SET record = ?", (value,))
    assert cache.get(record(1).digest) is None


def test_where_nothing_can_be_written_memory_serves(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "faces.sqlite", tmp_path / "folder"):
        cache = FaceCache(path)
        cache.put([record(1)])
        assert cache.get(record(1).digest) == record(1)
        assert f"{path}: " in caplog.text
        assert "is not kept" in caplog.text


def test_while_a_file_is_busy_memory_serves(path, monkeypatch, caplog):
    monkeypatch.setattr("facepairs.faces.face_cache.TIMEOUT_S", 0.1)
    cache = FaceCache(path)
    cache.put([record(1)])
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for number in (2, 3):
            cache.put([record(number)])
            assert cache.get(record(number).digest) == record(number)
        other.execute("ROLLBACK")
    assert caplog.text.count("locked; what is found in photos is not kept") == 1
    assert stored(path, [1, 2, 3]) == [True, False, False]


def test_the_folder_is_the_users_choice(tmp_path, monkeypatch):
    monkeypatch.setenv("FACEPAIRS_CACHE", str(tmp_path))
    cache = face_cache()
    assert cache is face_cache()
    assert cache.path.parent == tmp_path
    monkeypatch.delenv("FACEPAIRS_CACHE")
    assert face_cache().path.parent.name.lower() in ("facepairs", "cache")
