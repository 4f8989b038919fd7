"""A gallery in PostgreSQL: a server that stops, roles that may only read, and passwords."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from drawn.photos import smooth
from PIL import Image
from processes.command_line import in_process
from processes.gallery_jobs import MODEL, photo
from tiny.bundles import AMONG_LOOKALIKES, tiny_bundle

from facepairs.errors import BadConfig, BadData, BadGallery
from facepairs.gallery.encryption import COST
from facepairs.gallery.stores import open_store
from facepairs.gallery.stores.postgres import without_password


@pytest.fixture
def url(postgres):
    return postgres.new_database()


@pytest.fixture
def store(url):
    store = open_store(url, write=True)
    store.set_model(MODEL)
    store.put([photo(1, "Ann"), photo(2, "Bo")], None)
    yield store
    store.close()


def database_of(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


def test_a_lost_connection_is_made_again(postgres, store):
    version = store.version()
    postgres.stop()
    try:
        with pytest.raises(BadGallery) as caught:
            store.people()
        assert "geheim" not in str(caught.value)
        assert "OperationalError" not in str(caught.value)  # but what it says
    finally:
        postgres.start()
    assert store.put([photo(3, "Cy")], None) == [None]
    assert [one.name for one in store.people()] == ["Ann", "Bo", "Cy"]
    assert store.version() == version


def test_a_restart_between_two_calls_is_not_noticed(postgres, store):
    postgres.stop()
    postgres.start()
    assert [one.name for one in store.people()] == ["Ann", "Bo"]
    postgres.stop()
    postgres.start()
    assert store.remove("Bo") == 1


def test_a_gallery_made_again_with_as_many_changes_is_another(postgres, store, url):
    for _ in range(8):  # a query is prepared once it was asked five times
        version = store.version()
    postgres.run_sql("DROP SCHEMA facepairs CASCADE", database_of(url))
    other = open_store(url, write=True)
    other.set_model(MODEL)
    other.put([photo(7, "Cy"), photo(8, "Di")], None)
    other.close()
    assert store.put([photo(9, "Ed")], None) == [None]  # must not hide that others changed it
    assert store.version() != version
    assert sorted(store.load().people) == ["Cy", "Di", "Ed"]


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("DELETE FROM facepairs.photos WHERE name = 'Ann'", ["Bo"]),
        ("UPDATE facepairs.photos SET name = 'Zoe' WHERE name = 'Ann'", ["Bo", "Zoe"]),
        ("TRUNCATE facepairs.photos", []),
    ],
)
def test_changes_by_sql_are_noticed(postgres, store, url, change, left):
    version = store.version()
    postgres.run_sql("DELETE FROM facepairs.photos WHERE name = 'Nobody'", database_of(url))
    assert store.version() == version
    postgres.run_sql(change, database_of(url))
    assert store.version() != version
    assert sorted(store.load().people) == left


def test_one_made_again_with_a_passphrase_must_be_opened_again(postgres, store, url, monkeypatch):
    monkeypatch.setitem(COST, "n", 2**10)
    postgres.run_sql("DROP SCHEMA facepairs CASCADE", database_of(url))
    open_store(url, write=True, passphrase="some words").close()
    for use in (store.version, lambda: store.put([photo(3, "Plain")], None)):
        with pytest.raises(BadGallery):
            use()
    again = open_store(url, passphrase="some words")
    assert again.people() == []
    again.close()


def test_a_connection_lost_between_two_photos_leaves_neither(postgres, store, url):
    def photos():
        yield photo(7)
        postgres.run_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE application_name = 'facepairs' AND datname = '{database_of(url)}'"
        )
        yield photo(8)

    with pytest.raises(BadGallery):
        store.put(photos(), None)
    assert [one.name for one in store.people()] == ["Ann", "Bo"]
    assert store.put([photo(8)], None) == [None]


def test_two_writers_of_the_same_photos_share_them(store, url):
    others = [open_store(url, write=True) for _ in range(2)]
    ready = threading.Barrier(2)

    def add(number):
        ready.wait()
        return [
            others[number].put([photo(digest, f"W{number}")], None)[0] for digest in range(100, 130)
        ]

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(add, range(2)))
    for one, other in zip(*results, strict=True):
        assert {one, other} in ({None, "W0"}, {None, "W1"})
    for one in others:
        one.close()


def test_photos_that_expire_in_an_open_gallery_make_room(store):
    store.put([photo(5, "Guest")], 1e-9)  # zero seconds
    assert store.put([photo(5, "Host")], None) == [None]
    assert [one.name for one in store.people()] == ["Ann", "Bo", "Host"]


def test_settings_of_the_server_do_not_matter(postgres):
    postgres.run_sql("CREATE DATABASE odd TEMPLATE template0 ENCODING SQL_ASCII LC_COLLATE 'C' "
                     "LC_CTYPE 'C'")  # fmt: skip
    postgres.run_sql("ALTER DATABASE odd SET default_transaction_isolation = 'serializable'")
    postgres.run_sql("CREATE SCHEMA facepairs", "odd")
    stores = [open_store(postgres.url("odd"), write=True) for _ in range(2)]
    for store in stores:
        store.set_model(MODEL)
        assert store.model() == MODEL
    with ThreadPoolExecutor(2) as pool:
        for number in range(20):
            jobs = [pool.submit(store.put, [photo(2 * number + at, "王芳")], None)
                    for at, store in enumerate(stores)]  # fmt: skip
            assert [job.result() for job in jobs] == [[None], [None]]
    assert [(one.name, one.photos) for one in stores[0].people()] == [("王芳", 40)]
    for store in stores:
        store.close()


def test_who_may_only_read_cannot_change_it(postgres, store, url):
    reader = open_store(url)
    with pytest.raises(BadGallery):
        reader.remove("Ann")
    reader.close()
    for grant in (
        "CREATE ROLE guest LOGIN",
        "GRANT USAGE ON SCHEMA facepairs TO guest",
        "GRANT SELECT ON ALL TABLES IN SCHEMA facepairs TO guest",
    ):
        postgres.run_sql(grant, database_of(url))
    theirs = url.replace("tester", "guest")
    guest = open_store(theirs)
    assert len(guest.load()) == 2
    guest.close()
    with pytest.raises(BadGallery):
        open_store(theirs, write=True)
    assert len(store.people()) == 2


def test_a_database_without_a_gallery_stays_without(url):
    for write in (False, True):
        with pytest.raises(BadGallery):
            open_store(url, write, create=False)
    with pytest.raises(BadGallery):
        open_store(url)


def test_several_connections_may_make_it_at_once(url):
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: open_store(url, write=True), range(4)))
    for number, store in enumerate(stores):
        store.set_model(MODEL)
        store.put([photo(number)], None)
    assert {len(store.load()) for store in stores} == {4}
    for store in stores:
        store.close()


def test_what_others_wrote_into_the_tables_is_found(postgres, store, url):
    database = database_of(url)
    postgres.run_sql("UPDATE facepairs.photos SET vector = '\\x0102' WHERE name = 'Ann'", database)
    with pytest.raises(BadGallery):
        store.load()
    postgres.run_sql("UPDATE facepairs.state SET version = 99", database)
    with pytest.raises(BadData):
        open_store(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:geheim@h/d?none=1",
        "postgres://u:geheim@[h/d",
        "postgresql+psycopg2://u:ge/heim@h/d",
        "PostgreSQL://u:geheim/@h/d",
    ],
)
def test_urls_that_cannot_be_read_are_refused_without_their_password(url):
    with pytest.raises(BadConfig) as caught:
        open_store(url)
    assert "heim" not in str(caught.value)


@pytest.mark.parametrize("password", ["geheim?", "geheim#", "ge%40heim"])
def test_no_password_is_shown(postgres, url, password):
    with pytest.raises(BadGallery) as caught:
        open_store(url.replace("geheim", password).replace("postgresql:", "Postgres+asyncpg:"))
    assert f"postgresql://tester@/{database_of(url)}?host=" in str(caught.value)
    assert "heim" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:geheim@h:5433/d", "postgresql://u@h:5433/d"),
        ("postgresql://u@h/d?password=geheim", "postgresql://u@h/d"),
        ("postgresql://h:1,i:2/d", "postgresql://h,i:1,2/d"),
        ("postgresql://:7/d?host=/a/b", "postgresql://:7/d?host=%2Fa%2Fb"),
    ],
)
def test_a_database_is_called_by_its_address_without_the_password(url, shown):
    assert without_password(url) == shown


def test_other_addresses_are_no_places():
    with pytest.raises(BadData, match="mysql://host/name: is a web address"):
        open_store("mysql://u:geheim@host/name", write=True)


def test_the_commands_take_a_database(tmp_path, url):
    bundle = tiny_bundle(tmp_path / "b", **AMONG_LOOKALIKES).folder
    image = tmp_path / "ann.png"
    Image.fromarray(smooth(64, 64, 1).astype(np.uint8)).save(image)
    model = ("--bundle", bundle)
    words = ("gallery", "add", url, "--name", "Ann", image, "--any-quality", *model, "--json")
    added = json.loads(in_process(*words, check=0).stdout)
    assert (added["enrolled"], added["people"]) == (1, 1)
    done = in_process("gallery", "identify", url, image, *model, "--json", check=0)
    found = json.loads(done.stdout)
    assert found["gallery"].startswith(f"postgresql://tester@/{database_of(url)}?host=")
    assert found["faces"][0]["name"] == "Ann"
    assert "Ann" in in_process("gallery", "list", url, check=0).stdout
    assert len(in_process("gallery", "list", url, check=0).stdout.splitlines()) == 2
    in_process("gallery", "remove", url, "Ann", check=0)
    assert "Ann is not enrolled" in in_process("gallery", "remove", url, "Ann", check=2).stderr
