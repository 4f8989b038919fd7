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
import numpy as np
import pytest

from facepairs.errors import BadData
from facepairs.photos.frame import Face
from facepairs.photos.photo_cache import PhotoCache, photo_cache
from facepairs.photos.photo_record import PhotoRecord

WRITER = """
import sys
from pathlib import Path
from facepairs.errors import BadData
from facepairs.photos.photo_cache import PhotoCache
from test_photo_cache import record
cache, start = PhotoCache(Path(sys.argv[1])), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for number in range(start, start + 300, 10):
    cache.put([record(at) for at in range(number, number + 10)])
print("done", flush=True)
sys.stdin.readline()
"""


def record(number):
    face = Face(np.arange(10.0).reshape(5, 2) + number, 0.9)
    digest = hashlib.sha256(b"%d" % number).digest()
    return PhotoRecord("", "", 640, 480, True, 6, (face,) * (number % 3), digest=digest)


def plain(one):
    """Return a record as bytes, to compare it with another one."""
    return msgspec.msgpack.encode(one, enc_hook=np.ndarray.tolist)


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
    cache = PhotoCache(path)
    expected = list(map(record, numbers))
    return [plain(cache.record(one.digest, True)) == plain(one) for one in expected]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "folder" / "faces.sqlite"


def test_records_are_found_again(path):
    cache = PhotoCache(path)
    assert cache.record(record(1).digest, True) is None
    cache.put([record(1), record(2)])
    assert all(stored(path, [1, 2]))
    newer = PhotoRecord(width_px=7, faces=(), digest=record(1).digest)
    PhotoCache(path).put([newer])
    assert plain(cache.record(newer.digest, True)) == plain(newer)
    whole = PhotoRecord(digest=record(1).digest)  # of nobody who looked for faces
    PhotoCache(path).put([whole])
    assert plain(cache.record(newer.digest, True)) == plain(newer)
    assert plain(cache.record(newer.digest, False)) == plain(whole)


def test_embeddings_are_found_again_bit_by_bit(path):
    values = np.random.default_rng(0).normal(size=128).astype(np.float32)
    digest, cache = record(1).digest, PhotoCache(path)
    cache.put([record(1)], b"network", {(digest, 1): values})
    assert np.array_equal(PhotoCache(path).embedding(b"network", digest), values)
    assert cache.embedding(b"other", digest) is None
    assert cache.embedding(b"network", record(2).digest) is None
    for wrong in (np.full(3, np.nan, np.float32), np.full(3, np.inf, np.float32)):
        cache.put([], b"network", {(digest, 1): wrong})
        assert cache.embedding(b"network", digest) is None


def test_only_the_user_may_read_it_and_it_can_be_forgotten(path):
    cache = PhotoCache(path)
    cache.put([record(1)])
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o644)
        PhotoCache(path).put([record(1)])
        assert path.stat().st_mode & 0o777 == 0o600
    path.with_name("faces.sqlite-journal").touch()  # what a crash of the system leaves
    assert cache.forget()
    assert list(path.parent.iterdir()) == []
    assert cache.record(record(1).digest, True) is None
    assert not PhotoCache(None).forget()


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
    cache = PhotoCache(path)

    def work(number):
        cache.put([record(number)])
        return plain(cache.record(record(number).digest, True)) == plain(record(number))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(200)))
    assert all(stored(path, range(200)))


def test_a_copy_opens_the_file_itself(path):
    cache = PhotoCache(path)
    cache.put([record(1)])
    copy = pickle.loads(pickle.dumps(cache))
    assert plain(copy.record(record(1).digest, True)) == plain(record(1))


def torn(path):
    PhotoCache(path).put(record(number) for number in range(2000))
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\x77" * (len(data) - 4096))


def cut(path):
    PhotoCache(path).put(record(number) for number in range(2000))
    path.write_bytes(path.read_bytes()[:9000])


@pytest.mark.parametrize("damage", [torn, cut])
def test_a_damaged_file_is_named_and_made_anew(path, damage, caplog):
    damage(path)
    cache = PhotoCache(path)
    assert cache.record(record(1).digest, True) is None
    cache.put([record(1)])
    assert plain(cache.record(record(1).digest, True)) == plain(record(1))
    assert str(path) in caplog.text
    assert all(stored(path, [1]))
    cache.put([record(2)])
    assert all(stored(path, [1, 2]))


def other_database(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("CREATE TABLE people (name TEXT)")


@pytest.mark.parametrize("make", [lambda path: path.write_bytes(b"a photo" * 999), other_database])
def test_a_file_of_somebody_else_is_left_alone(path, make, caplog):
    path.parent.mkdir(parents=True)
    make(path)
    before = path.read_bytes()
    cache = PhotoCache(path)
    cache.put([record(1)])
    assert plain(cache.record(record(1).digest, True)) == plain(record(1))
    with pytest.raises(BadData):
        cache.forget()
    assert path.read_bytes() == before
    assert str(path) in caplog.text


@pytest.mark.parametrize(
    "changes",
    [
        {"width_px": -1},
        {"faces": (Face(np.ones(3), 0.9),)},
        {"faces": (Face(np.full((5, 2), np.nan), 0.9),)},
        {"faces": (Face(np.full((5, 2), 1e30), 0.9),)},
        {"faces": (Face(np.ones((5, 2)), 1.5),)},
        {"faces": (Face(np.ones((5, 2)), -0.1),)},
        {"faces": (Face(np.ones((5, 2)), 0.9),) * 101},
        {"reason": 7},
        {"orientation": 0},
        {"orientation": 9},
        {"digest": b"x" * 33},
    ],
)
def test_a_record_of_impossible_values_is_not_used(path, changes):
    wrong = msgspec.structs.replace(record(1), **changes)
    cache = PhotoCache(path)
    cache.put([wrong, record(2)])
    assert cache.record(wrong.digest, True) is None
    assert plain(cache.record(record(2).digest, True)) == plain(record(2))


@pytest.mark.parametrize("value", [17, "text", b"", b"\x96\xa1\xff", b"\xff" * 99])
def test_a_damaged_record_is_not_used(path, value):
    cache = PhotoCache(path)
    digest = record(1).digest
    cache.put([record(1)], b"network", {(digest, 1): np.ones(4, np.float32)})
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE photos SET record = ?", (value,))
        database.execute("UPDATE embeddings SET embedding = ?", (value or 0,))
    assert cache.record(digest, True) is None
    assert cache.embedding(b"network", digest) is None


def test_where_nothing_can_be_written_memory_serves(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "faces.sqlite", tmp_path / "folder"):
        cache = PhotoCache(path)
        cache.put([record(1)])
        assert plain(cache.record(record(1).digest, True)) == plain(record(1))
        assert f"{path}: " in caplog.text
        assert "not remembered" in caplog.text


def test_while_a_file_is_busy_memory_serves(path, monkeypatch, caplog):
    monkeypatch.setattr("facepairs.photos.photo_cache.TIMEOUT_S", 0.1)
    cache = PhotoCache(path)
    cache.put([record(1)])
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for number in (2, 3):
            cache.put([record(number)])
            assert plain(cache.record(record(number).digest, True)) == plain(record(number))
        other.execute("ROLLBACK")
    assert caplog.text.count("locked; photos are not remembered") == 1
    assert stored(path, [1, 2, 3]) == [True, False, False]


def test_the_file_is_the_users_choice(tmp_path, monkeypatch):
    monkeypatch.setenv("FACEPAIRS_PHOTO_CACHE", str(tmp_path / "mine"))
    cache = photo_cache()
    assert cache is photo_cache()
    assert cache.path == tmp_path / "mine"
    (tmp_path / "photo.jpg").write_bytes(b"not ours")
    for other in (tmp_path, tmp_path / "photo.jpg"):
        monkeypatch.setenv("FACEPAIRS_PHOTO_CACHE", str(other))
        with pytest.raises(BadData):
            photo_cache()
    monkeypatch.setenv("FACEPAIRS_NO_PHOTO_CACHE", "1")
    assert photo_cache().path is None
    monkeypatch.delenv("FACEPAIRS_NO_PHOTO_CACHE")
    monkeypatch.delenv("FACEPAIRS_PHOTO_CACHE")
    assert photo_cache().path.parent.name.lower() in ("facepairs", "cache")


def test_forgetting_a_cache_that_was_never_written_is_no_error(tmp_path):
    assert PhotoCache(tmp_path / "none.sqlite").forget() is False
    assert PhotoCache().forget() is False
