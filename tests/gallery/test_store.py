"""The gallery's file: round trips, kills, damage, other processes, and that removed is removed."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes.gallery_jobs import MODEL, WIDTH, photo

from facepairs.errors import BadData
from facepairs.gallery.store import GalleryStore

JOB = Path(__file__).parents[1] / "helpers" / "processes" / "gallery_jobs.py"
NAMES = st.sampled_from(["Ann", "Bé", "王芳", "O'Neil; --", "a b"])


def adding(path: Path, first: int, count: int) -> "subprocess.Popen[str]":
    words = [sys.executable, JOB, path, first, count]
    return subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, text=True)


@pytest.fixture
def store(tmp_path):
    store = GalleryStore(tmp_path / "g", write=True)
    store.set_model(MODEL)
    yield store
    store.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, st.integers(0, 12)),
        st.tuples(st.just("remove"), NAMES, st.just(0)),
    ),
    max_size=12,
)


@settings(max_examples=12)
@given(steps=STEPS)
def test_a_store_holds_what_a_dictionary_would(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("store") / "g"
    expected: dict[int, str] = {}
    store = GalleryStore(path, write=True)
    store.set_model(MODEL)
    for step, name, number in steps:
        if step == "put":
            assert store.put([photo(number, name)], None) == [expected.get(number)]
            expected.setdefault(number, name)
        else:
            kept = {k: v for k, v in expected.items() if v != name}
            assert store.remove(name) == len(expected) - len(kept)
            expected = kept
    store.close()
    reader = GalleryStore(path)
    assert reader.problems() == []
    people = {one.name: one.photos for one in reader.people()}
    assert people == {n: list(expected.values()).count(n) for n in set(expected.values())}
    vectors = reader.load()
    assert len(vectors) == len(expected)
    assert set(vectors.people) == set(expected.values())
    for number, name in expected.items():
        assert reader.owner(photo(number).digest) == name
        best = dict(zip(vectors.people, vectors.best(photo(number).vector), strict=True))
        assert best[name] == max(best.values()) == pytest.approx(1, abs=2e-3)
    reader.close()


def test_only_the_owner_may_read_it(store):
    store.put([photo(1)], None)
    files = list(store.path.parent.glob("g*"))
    assert len(files) > 1  # the log, too
    if os.name == "posix":
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_removed_people_leave_no_bytes(store):
    store.put([photo(number) for number in range(40)], None)
    store.put([photo(99, "Secretname"), photo(98, "Secretname")], None)
    secrets = [photo(n).vector.astype("<f2").tobytes() for n in (98, 99)]
    secrets += [b"Secretname", photo(98).digest, photo(99).digest]

    def content() -> bytes:
        return b"".join(path.read_bytes() for path in store.path.parent.glob("g*"))

    assert all(secret in content() for secret in secrets)
    assert store.remove("Secretname") == 2
    assert not any(secret in content() for secret in secrets)
    assert store.remove("Secretname") == 0
    store.close()
    assert photo(7).digest in store.path.read_bytes()


def test_expired_photos_never_match_and_leave_no_bytes(store):
    store.put([photo(1, "Ann"), photo(2, "Ann"), photo(3, "Bo")], None)
    store.put([photo(4, "Ann"), photo(5, "Guest")], 1e-9)  # zero seconds
    assert [(one.name, one.photos) for one in store.people()] == [("Ann", 2), ("Bo", 1)]
    assert sorted(store.load().people) == ["Ann", "Bo"]
    assert photo(5).digest in store.path.with_name("g-wal").read_bytes()
    store.close()
    again = GalleryStore(store.path, write=True)
    assert again.owner(photo(5).digest) is None
    again.close()
    assert b"Guest" not in store.path.read_bytes()
    assert photo(4).digest not in store.path.read_bytes()


def test_a_date_to_be_forgotten_is_listed(store):
    store.put([photo(1, "Ann"), photo(2, "Bo")], 7)
    store.put([photo(3, "Bo")], None)
    ann, bo = store.people()
    assert round((ann.expires - ann.added).total_seconds()) == 7 * 86_400
    assert bo.expires is None  # one of two photos stays
    assert store.load().until == ann.expires.timestamp()


def test_two_processes_add_while_this_one_reads(store):
    reader = GalleryStore(store.path)
    workers = [adding(store.path, first, 40) for first in (100, 200)]
    seen, version = [0], reader.version()
    while any(worker.poll() is None for worker in workers):
        seen.append(len(reader.load()))
    for worker in workers:
        printed, _ = worker.communicate()
        assert (len(printed.split()), worker.returncode) == (40, 0)
    assert seen == sorted(seen)
    assert reader.version() != version
    assert len(reader.load()) == 80
    assert reader.problems() == []
    reader.close()


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path):
    path, acknowledged = tmp_path / "g", set()
    for kill in range(5):
        worker = adding(path, 10_000 * kill, 10_000)
        assert worker.stdout is not None
        for line in worker.stdout:
            acknowledged.add(int(line))
            if len(acknowledged) % 10_000 >= 3 + 9 * kill:
                break
        worker.send_signal(signal.SIGKILL)
        printed, _ = worker.communicate()
        acknowledged |= {int(line) for line in printed.split("\n")[:-1]}
        for write in (False, True):
            store = GalleryStore(path, write)
            assert store.problems() == []
            assert all(store.owner(photo(n).digest) == f"P{n}" for n in acknowledged)
            assert len(store.load()) <= len(acknowledged) + kill + 1
            store.close()


def problems_of(path: Path) -> list[str]:
    """Return what opening, reading and checking a file says."""
    try:
        damaged = GalleryStore(path)
        try:
            damaged.load()
            return damaged.problems()
        finally:
            damaged.close()
    except BadData as error:
        return [str(error)] if str(error).startswith(str(path)) else []


def test_damage_and_a_cut_end_are_named(store):
    store.put([photo(number) for number in range(60)], None)
    store.close()
    good = store.path.read_bytes()
    assert problems_of(store.path) == []
    used = [
        at for at in range(0, len(good) - 400, 400) if all(good[at : at + 400].split(b"\0" * 9))
    ]
    assert len(used) > 10
    for at in used:
        bad = bytes(byte ^ 0x5A for byte in good[at : at + 400])
        store.path.write_bytes(good[:at] + bad + good[at + 400 :])
        assert problems_of(store.path), at
    for at in range(100, len(good) - 1, 3000):
        store.path.write_bytes(good[:at])
        assert problems_of(store.path), at


@pytest.mark.parametrize("content", [b"", b"no database, but text of some length" * 99])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(BadData, match=r"other: .*not a gallery"):
        GalleryStore(path)
    if content:
        with pytest.raises(BadData, match=r"other: .*not a gallery"):
            GalleryStore(path, write=True)
        assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused(tmp_path):
    import sqlite3

    path = tmp_path / "other"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    for write in (False, True):
        with pytest.raises(BadData, match="not a gallery"):
            GalleryStore(path, write)


def test_a_flipped_bit_of_a_vector_is_found(store):
    store.put([photo(1)], None)
    store.close()
    data = bytearray(store.path.read_bytes())
    data[data.index(photo(1).vector.astype("<f2").tobytes()) + 3] ^= 1
    store.path.write_bytes(data)
    again = GalleryStore(store.path)
    (problem,) = again.problems()
    assert "P1" in problem
    again.close()


def test_vectors_of_lower_precision_score_the_same_block_by_block(monkeypatch):
    from facepairs.gallery import vectors as module

    rows = np.stack([photo(number).vector for number in range(50)])
    people = [f"P{number % 7}" for number in range(50)]
    fast = module.Vectors(WIDTH, 50)
    monkeypatch.setattr(module, "MOST_FAST_BYTES", 0)
    monkeypatch.setattr(module, "BLOCK_ROWS", 8)
    slow = module.Vectors(WIDTH, 3)
    for vectors in (fast, slow):
        for at in range(0, 50, 5):
            vectors.append(people[at : at + 5], rows[at : at + 5])
    expected = [max(rows[k::7] @ rows[3]) for k in range(7)]
    assert fast.best(rows[3]) == pytest.approx(expected, abs=1e-6)
    assert slow.best(rows[3]) == pytest.approx(expected, abs=2e-3)
    assert fast.best(rows[3], lambda a, b: -np.abs(a - b).sum(axis=1)).argmax() == 3
    assert fast.photo_counts.tolist() == [8, 7, 7, 7, 7, 7, 7]
    assert len(fast.of_person("P0")) == 8
    assert len(fast.of_person("nobody")) == 0
