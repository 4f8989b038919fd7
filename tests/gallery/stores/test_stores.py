"""Both kinds of stores: round trips, other processes, kills and damage."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes.gallery_jobs import MODEL, photo
from processes.postgres_server import PostgresServer

from facepairs.errors import BadData, BadGallery
from facepairs.gallery.encryption import COST
from facepairs.gallery.stores import open_store
from facepairs.gallery.stores.base import SqlStore

JOB = Path(__file__).parents[2] / "helpers" / "processes" / "gallery_jobs.py"
NAMES = st.sampled_from(["Ann", "Bé", "王芳", "O'Neil; --", "a b"])
Place = Path | str


@pytest.fixture(scope="module", params=["file", "database"])
def new_place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Place]:
    """A function that returns an empty place."""
    if request.param == "file":
        return lambda: tmp_path_factory.mktemp("store") / "g"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database


@pytest.fixture
def place(new_place):
    return new_place()


@pytest.fixture
def store(place):
    store = open_store(place, write=True)
    store.set_model(MODEL)
    yield store
    store.close()


def adding(place: Place, first: int, count: int) -> "subprocess.Popen[str]":
    words = [sys.executable, JOB, place, first, count]
    return subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, text=True)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, st.integers(0, 12)),
        st.tuples(st.just("remove"), NAMES, st.just(0)),
        st.tuples(st.just("rename"), NAMES, NAMES),
    ),
    max_size=12,
)


def test_a_closed_one_and_one_that_was_opened_to_be_read_say_so(place, store):
    reader = open_store(place)
    with pytest.raises(BadGallery):
        reader.put([photo(1)], None)
    reader.close()
    for use in (reader.people, reader.load, reader.version):
        with pytest.raises(BadGallery, match="was closed; open it again"):
            use()


def test_a_failure_between_two_photos_leaves_neither(store):
    def photos():
        yield photo(1)
        raise KeyError

    with pytest.raises(KeyError):
        store.put(photos(), None)
    assert store.put([photo(2)], None) == [None]
    assert [one.name for one in store.people()] == ["P2"]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_it_holds_what_a_dictionary_would(new_place, steps):
    place = new_place()
    expected: dict[int, str] = {}
    store = open_store(place, write=True)
    store.set_model(MODEL)
    for step, name, number in steps:
        if step == "put":
            assert store.put([photo(number, name)], None) == [expected.get(number)]
            expected.setdefault(number, name)
        elif step == "rename":
            assert store.rename(name, number) == list(expected.values()).count(name)
            expected = {k: number if v == name else v for k, v in expected.items()}
        else:
            kept = {k: v for k, v in expected.items() if v != name}
            assert store.remove(name) == len(expected) - len(kept)
            expected = kept
    store.close()
    reader = open_store(place)
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


def test_a_date_to_be_forgotten_is_listed(store):
    store.put([photo(1, "Ann"), photo(2, "Bo")], 7)
    store.put([photo(3, "Bo")], None)
    ann, bo = store.people()
    assert round((ann.expires - ann.added).total_seconds()) == 7 * 86_400
    assert bo.expires is None  # one of two photos stays
    assert store.load().until == ann.expires.timestamp()


PASSPHRASE = "one of several wörds"
PEOPLE = {"Secretname": [1, 2], "王芳": [3]}


def fill(store: SqlStore) -> None:
    store.set_model(MODEL)
    for name, numbers in PEOPLE.items():
        store.put([photo(number, name) for number in numbers], None)


def test_an_encrypted_one_holds_what_a_plain_one_holds(new_place, monkeypatch):
    monkeypatch.setitem(COST, "n", 2**10)  # a guess takes half a second otherwise
    plain, place = open_store(new_place(), write=True), new_place()
    store = open_store(place, write=True, passphrase=PASSPHRASE)
    fill(plain)
    fill(store)
    reader = open_store(place, passphrase=PASSPHRASE)
    for one in (plain, reader, store):
        assert [(person.name, person.photos) for person in one.people()] == [
            ("Secretname", 2),
            ("王芳", 1),
        ]
        assert (one.owner(photo(3).digest), one.owner(photo(4).digest)) == ("王芳", None)
        assert one.problems() == []
        vectors = one.load()
        best = dict(zip(vectors.people, vectors.best(photo(2).vector), strict=True))
        assert best["Secretname"] == pytest.approx(1, abs=2e-3)
    assert store.put([photo(3, "Other")], None) == ["王芳"]
    assert store.rename("Secretname", "Othername") == 2
    assert [person.name for person in reader.people()] == ["Othername", "王芳"]
    best = dict(zip((vectors := reader.load()).people, vectors.best(photo(2).vector), strict=True))
    assert best["Othername"] == pytest.approx(1, abs=2e-3)
    assert store.remove("Othername") == 2
    assert [person.name for person in reader.people()] == ["王芳"]
    for one in (plain, reader, store):
        one.close()
    with pytest.raises(BadData):
        open_store(place, passphrase="one of several words")


def test_expired_photos_never_match_and_go_when_it_is_next_opened(store, place):
    store.put([photo(1, "Ann"), photo(2, "Ann"), photo(3, "Bo")], None)
    store.put([photo(4, "Ann"), photo(5, "Guest")], 1e-9)  # zero seconds
    assert [(one.name, one.photos) for one in store.people()] == [("Ann", 2), ("Bo", 1)]
    assert sorted(store.load().people) == ["Ann", "Bo"]
    assert store.owner(photo(5).digest) is None
    again = open_store(place, write=True)
    assert again.owner(photo(5).digest) is None
    again.close()


def test_only_changes_of_others_change_the_version(store, place):
    version, other = store.version(), open_store(place, write=True)
    store.put([photo(1)], None)
    assert store.version() == version
    other.put([photo(2)], None)
    assert store.version() != version
    other.close()


def test_two_processes_add_while_this_one_reads(store, place):
    reader = open_store(place)
    workers = [adding(place, first, 30) for first in (100, 200)]
    seen, version = [0], reader.version()
    while any(worker.poll() is None for worker in workers):
        seen.append(len(reader.load()))
        time.sleep(0.01)  # leaves the others room
    for worker in workers:
        printed, _ = worker.communicate()
        assert (len(printed.split()), worker.returncode) == (30, 0)
    assert seen == sorted(seen)
    assert reader.version() != version
    assert len(reader.load()) == 60
    assert reader.problems() == []
    reader.close()


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_kill_loses_nothing_that_was_acknowledged(place):
    acknowledged: set[int] = set()
    for kill in range(3):
        worker = adding(place, 10_000 * kill, 10_000)
        assert worker.stdout is not None
        for line in worker.stdout:
            acknowledged.add(int(line))
            if len(acknowledged) % 10_000 >= 3 + 12 * kill:
                break
        worker.send_signal(signal.SIGKILL)
        printed, _ = worker.communicate()
        acknowledged |= {int(line) for line in printed.split("\n")[:-1]}
        for write in (False, True):
            store = open_store(place, write)
            assert store.problems() == []
            assert all(store.owner(photo(n).digest) == f"P{n}" for n in acknowledged)
            assert len(store.load()) <= len(acknowledged) + kill + 1
            store.close()
