"""Encrypted galleries: without the passphrase, nothing can be read or moved."""

import getpass
import io
import json
import sqlite3
import sys

import numpy as np
import pytest
from drawn.photos import smooth
from PIL import Image
from processes.command_line import in_process
from processes.gallery_jobs import MODEL, photo
from tiny.bundles import AMONG_LOOKALIKES, embedding_network, tiny_bundle

from facepairs.errors import BadConfig, BadData, MissingExtra
from facepairs.gallery import encryption
from facepairs.gallery.encryption import VARIABLE
from facepairs.gallery.stores.sqlite import SqliteStore
from facepairs.support import extras

COST = dict(encryption.COST)
PASSPHRASE = "one of several wörds"
PEOPLE = {"Secretname": [1, 2], "王芳": [3]}


def fill(store):
    store.set_model(MODEL)
    for name, numbers in PEOPLE.items():
        store.put([photo(number, name) for number in numbers], None)


def test_a_guess_costs_half_a_second():
    assert COST == {"n": 2**17, "r": 8, "p": 1}


@pytest.fixture(autouse=True)
def cheap_guesses(monkeypatch):
    """Make keys in no time."""
    monkeypatch.setitem(encryption.COST, "n", 2**10)


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "g", write=True, passphrase=PASSPHRASE)
    fill(store)
    yield store
    store.close()


def test_nothing_can_be_read_in_the_files(store):
    content = b"".join(path.read_bytes() for path in store.path.parent.glob("g*"))
    for number in (1, 2, 3):
        vector = photo(number).vector
        for secret in (vector.astype("<f2").tobytes(), vector.tobytes(), photo(number).digest):
            assert secret not in content
            assert secret.hex().encode() not in content
    for secret in (*PEOPLE, PASSPHRASE):
        assert secret.encode() not in content
    assert b"landmarks-5" in content  # the model is no secret


def test_the_passphrase_is_asked_for_in_a_terminal_and_twice_for_a_new_gallery(
    tmp_path, monkeypatch
):
    bundle = tiny_bundle(tmp_path / "b", **AMONG_LOOKALIKES).folder
    image = tmp_path / "1.png"
    Image.fromarray(smooth(64, 64, 1)).save(image)
    asked = []
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(getpass, "getpass", lambda text: asked.append(text) or PASSPHRASE)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    words = ("gallery", "add", tmp_path / "g", "--name", "Ann", image, "--bundle", bundle)
    in_process(*words, "--any-quality", "--encrypt", check=2)
    assert asked == []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    in_process(*words, "--any-quality", "--encrypt", check=0)
    assert len(asked) == 2
    listed = in_process("gallery", "list", tmp_path / "g", check=0)
    assert len(asked) == 3
    assert listed.stdout.startswith("name ")  # the question is not there
    monkeypatch.setenv(VARIABLE, PASSPHRASE)
    in_process("gallery", "list", tmp_path / "g", check=0)
    in_process(*words[:2], tmp_path / "h", *words[3:], "--any-quality", "--encrypt", check=0)
    assert len(asked) == 3


def test_only_the_passphrase_opens_it(store, monkeypatch):
    for write in (False, True):
        with pytest.raises(BadData):
            SqliteStore(store.path, write)
        with pytest.raises(BadData):
            SqliteStore(store.path, write, "one of several words")
    SqliteStore(store.path, passphrase=lambda: PASSPHRASE).close()
    decomposed = PASSPHRASE.replace("ö", "o\u0308")
    monkeypatch.setenv(VARIABLE, decomposed)
    SqliteStore(store.path).close()
    with pytest.raises(BadData):
        SqliteStore(store.path, passphrase="x")


def test_without_the_package_nothing_is_created_or_opened(store, tmp_path, monkeypatch):
    monkeypatch.setitem(extras.EXTRAS, "encrypt", ("no_such_module",))
    for path in (store.path, tmp_path / "new"):
        with pytest.raises(MissingExtra):
            SqliteStore(path, write=True, passphrase=PASSPHRASE)
    with pytest.raises(MissingExtra):
        SqliteStore(store.path, passphrase=lambda: PASSPHRASE)
    assert not (tmp_path / "new").exists()


def test_a_plain_gallery_stays_plain(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, PASSPHRASE)
    SqliteStore(tmp_path / "plain", write=True).close()
    monkeypatch.delenv(VARIABLE)
    SqliteStore(tmp_path / "plain").close()
    with pytest.raises(BadData):
        SqliteStore(tmp_path / "plain", passphrase=PASSPHRASE)
    with pytest.raises(BadConfig):
        SqliteStore(tmp_path / "new", write=True, passphrase="")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE photos SET name = (SELECT max(name) FROM photos)",  # given to somebody else
        "UPDATE photos SET vector = (SELECT vector FROM photos ORDER BY rowid DESC LIMIT 1)",
        "UPDATE photos SET name = (SELECT sha256 FROM photos LIMIT 1)",
    ],
)
def test_changes_without_the_passphrase_are_found(store, change):
    with sqlite3.connect(store.path) as database:
        database.execute(change)
    database.close()
    with pytest.raises(BadData):
        store.load()


def test_the_commands_take_it_from_the_environment(tmp_path, monkeypatch):
    bundle = tiny_bundle(tmp_path / "b", **AMONG_LOOKALIKES).folder
    image = tmp_path / "ann.png"
    Image.fromarray(smooth(64, 64, 1).astype(np.uint8)).save(image)
    place, model = tmp_path / "known.gallery", ("--bundle", bundle)
    words = ("gallery", "add", place, "--name", "Secretname", image, "--any-quality", *model)
    words += ("--encrypt",)
    assert f"the passphrase is missing; set {VARIABLE}" in in_process(*words, check=2).stderr
    monkeypatch.setenv(VARIABLE, PASSPHRASE)
    in_process(*words, check=0)
    in_process(*words, check=0)
    found = in_process("gallery", "identify", place, image, *model, "--json", check=0)
    assert json.loads(found.stdout)["faces"][0]["name"] == "Secretname"
    monkeypatch.setenv(VARIABLE, "wrong")
    assert "passphrase is wrong" in in_process("gallery", "list", place, check=2).stderr
    monkeypatch.delenv(VARIABLE)
    done = in_process("gallery", "list", place, check=2)
    assert f"is encrypted; set {VARIABLE}" in done.stderr
    assert done.stderr.count("\n") == 1
    assert b"Secretname" not in place.read_bytes()
    monkeypatch.setenv(VARIABLE, PASSPHRASE)
    assert len(in_process("gallery", "list", place, check=0).stdout.splitlines()) == 2
    other = tiny_bundle(tmp_path / "o", "embedding", embedding_network(width=12)).folder
    words = ("gallery", "migrate", place, tmp_path / "new", "--bundle", other, "--photos", tmp_path)
    done = in_process(*words, check=0)
    assert "people lost     none" in done.stdout.splitlines()
    monkeypatch.setenv(VARIABLE, "wrong")
    assert "passphrase is wrong" in in_process("gallery", "list", words[3], check=2).stderr
    monkeypatch.setenv(VARIABLE, PASSPHRASE)
    in_process("gallery", "remove", place, "Secretname", check=0)
