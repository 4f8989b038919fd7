"""A gallery's file: a cut end, other files, its mode, and that removed is removed."""

import os
import stat
from pathlib import Path

import pytest
from processes.gallery_jobs import MODEL, photo

from facepairs.errors import BadData
from facepairs.gallery.stores.sqlite import SqliteStore


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "g", write=True)
    store.set_model(MODEL)
    yield store
    store.close()


def test_only_the_owner_may_read_it(store):
    store.put([photo(1)], None)
    files = list(store.path.parent.glob("g*"))
    assert len(files) == 1  # nothing stays beside it
    if os.name == "posix":
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_removed_people_leave_no_bytes(store):
    store.put([photo(number) for number in range(40)], None)
    size = store.path.stat().st_size
    store.put([photo(number, "Secretname") for number in range(98, 198)], None)
    secrets = [photo(n).vector.astype("<f2").tobytes() for n in (98, 99)]
    secrets += [b"Secretname", photo(98).digest, photo(99).digest]

    def content() -> bytes:
        return b"".join(path.read_bytes() for path in store.path.parent.glob("g*"))

    assert all(secret in content() for secret in secrets)
    assert store.remove("Secretname") == 100
    assert store.path.stat().st_size == size
    assert not any(secret in content() for secret in secrets)
    assert store.remove("Secretname") == 0
    store.close()
    assert photo(7).digest in store.path.read_bytes()


def test_expired_photos_leave_no_bytes(store):
    store.put([photo(1, "Ann")], None)
    store.put([photo(4, "Ann"), photo(5, "Guest")], 1e-9)  # zero seconds
    assert photo(5).digest in store.path.read_bytes()
    store.close()
    SqliteStore(store.path, write=True).close()
    assert b"Guest" not in store.path.read_bytes()
    assert photo(4).digest not in store.path.read_bytes()
    store = SqliteStore(store.path, write=True)
    store.put([photo(6, "Guest")], 1e-9)
    store.put([photo(7, "Ann")], None)
    assert photo(6).digest not in store.path.read_bytes()
    store.close()


def problems_of(path: Path) -> list[str]:
    """Return what opening, reading and checking a file says."""
    try:
        damaged = SqliteStore(path)
        try:
            damaged.load()
            return damaged.problems()
        finally:
            damaged.close()
    except BadData as error:
        return [str(error)] if str(error).startswith(str(path)) else []


def test_a_cut_end_is_named(store):
    store.put([photo(number) for number in range(60)], None)
    store.close()
    good = store.path.read_bytes()
    assert problems_of(store.path) == []
    for at in range(100, len(good) - 1, 3000):
        store.path.write_bytes(good[:at])
        assert problems_of(store.path), at


@pytest.mark.parametrize("content", [b"", b"no database, but text of some length" * 99])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(BadData):
        SqliteStore(path)
    if content:
        with pytest.raises(BadData):
            SqliteStore(path, write=True)
        assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused(tmp_path):
    import sqlite3

    path = tmp_path / "other"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    for write in (False, True):
        with pytest.raises(BadData):
            SqliteStore(path, write)
