"""Fetching LFW: every file once, checked, and nothing half finished left behind."""

import hashlib
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from processes.command_line import in_process
from storage.archives import tgz, tree, zipped
from storage.file_server import Remote, serving, sha256

from facepairs.data.lfw.fetch import (
    IMAGES,
    LISTS,
    RemoteFile,
    content_sha256,
    fetch_lfw,
    fetch_lists,
)
from facepairs.errors import BadData, BadTransfer

PHOTOS = {
    "Ann_Bo/Ann_Bo_0001.jpg": b"one" * 3000,
    "Ann_Bo/Ann_Bo_0002.jpg": b"two" * 2000,
    "Zed/Zed_0001.jpg": bytes(range(256)) * 40,
}
WORDS = {source.file: f"official {source.file}\n".encode() for source in LISTS}


@pytest.fixture
def remote() -> Iterator[Remote]:
    with serving() as server:
        yield server


def below(top: str) -> dict[str, bytes]:
    return {f"{top}/{name}": data for name, data in PHOTOS.items()}


def content() -> str:
    digest = hashlib.sha256()
    for name, data in PHOTOS.items():
        digest.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
    return digest.hexdigest()


def offer(
    remote: Remote, kind: str, data: bytes, sha256_of_content: str = ""
) -> Callable[[Path], Path]:
    """Put the lists and an archive on the server; return a function that fetches them."""
    remote.files = {**WORDS, "images": data}
    lists = [RemoteFile(name, f"{remote.url}/{name}", sha256(text)) for name, text in WORDS.items()]
    images = RemoteFile(f"faces.{kind}", f"{remote.url}/images", sha256_of_content or content())
    return lambda out: fetch_lfw(out, lists=lists, images=images)


def test_every_published_file_has_a_secure_address_and_a_checksum() -> None:
    assert [source.file for source in LISTS] == [
        "pairs.txt", "pairsDevTest.txt", "pairsDevTrain.txt",
        "people.txt", "peopleDevTest.txt", "peopleDevTrain.txt",
    ]  # fmt: skip
    for source in (*LISTS, IMAGES):
        assert source.url.startswith("https://")
        assert len(bytes.fromhex(source.sha256)) == 32


@pytest.mark.parametrize("kind", ["zip", "tgz"])
@pytest.mark.parametrize("top", ["lfw-deepfunneled", "a/b"])
def test_every_file_is_downloaded_once(remote: Remote, tmp_path: Path, kind: str, top: str) -> None:
    files = {**below(top), "__MACOSX/x/._y": b"junk", f"{top}/.DS_Store": b"junk"}
    fetch = offer(remote, kind, zipped(files) if kind == "zip" else tgz(files))
    out = tmp_path / "new" / "lfw"
    assert fetch(out) == out / "faces"
    assert tree(out) == {**WORDS, **below("faces")}
    assert content_sha256(out / "faces") == content()
    asked = len(remote.asked)
    assert asked == 7
    fetch(out)
    assert len(remote.asked) == asked


def test_lists_alone_complete_those_that_are_there(remote: Remote, tmp_path: Path) -> None:
    remote.files = dict(WORDS)
    lists = [RemoteFile(name, f"{remote.url}/{name}", sha256(text)) for name, text in WORDS.items()]
    (tmp_path / "pairs.txt").write_bytes(WORDS["pairs.txt"])
    (tmp_path / "people.txt").write_bytes(b"of another data set")
    with pytest.raises(BadTransfer):
        fetch_lists(tmp_path, lists)
    assert (tmp_path / "people.txt").read_bytes() == b"of another data set"
    (tmp_path / "people.txt").unlink()
    fetch_lists(tmp_path, lists)
    assert tree(tmp_path) == WORDS
    assert len(remote.asked) == 5


def test_a_folder_that_lost_a_photo_is_refused(remote: Remote, tmp_path: Path) -> None:
    for kind, data in (("zip", zipped(below("x"))), ("tgz", tgz(below("x")))):
        out = tmp_path / kind
        fetch = offer(remote, kind, data)
        (fetch(out) / "Zed/Zed_0001.jpg").unlink()
        with pytest.raises(BadTransfer):
            fetch(out)
        assert (out / "faces/Ann_Bo").is_dir()


def test_a_list_with_the_wrong_checksum_is_removed(remote: Remote, tmp_path: Path) -> None:
    remote.files["pairs.txt"] = b"tampered"
    lists = [RemoteFile("pairs.txt", f"{remote.url}/pairs.txt", sha256(b"official"))]
    with pytest.raises(BadTransfer) as caught:
        fetch_lfw(tmp_path, lists=lists)
    assert "pairs.txt" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["zip", "tgz"])
def test_an_archive_with_the_wrong_checksum_leaves_nothing(
    remote: Remote, tmp_path: Path, kind: str
) -> None:
    files = below("x")
    fetch = offer(remote, kind, zipped(files) if kind == "zip" else tgz(files), "0" * 64)
    with pytest.raises(BadTransfer) as caught:
        fetch(tmp_path)
    assert "0" * 64 in str(caught.value)
    assert tree(tmp_path) == WORDS
    assert {path.name for path in tmp_path.iterdir()} == set(WORDS)


LINK = tarfile.TarInfo("x/Zed/link")
LINK.type, LINK.linkname = tarfile.SYMTYPE, "/etc/passwd"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("zip", b""),
        ("zip", b"<html>"),
        ("zip", zipped(below("x"))[:-30]),
        ("zip", zipped({"a.txt": b"x"})),
        ("tgz", tgz(below("x"), LINK)),
    ],
)
def test_what_is_no_archive_of_photos_is_removed(
    remote: Remote, tmp_path: Path, kind: str, data: bytes
) -> None:
    with pytest.raises(BadTransfer, match=rf"faces\.{kind}"):
        offer(remote, kind, data)(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(WORDS)


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadData) as caught:
        fetch_lfw(tmp_path / "file" / "lfw")
    assert str(tmp_path / "file") in str(caught.value)


def test_a_folder_in_the_place_of_a_list_is_reported(remote: Remote, tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").mkdir()
    with pytest.raises(BadTransfer):
        offer(remote, "zip", zipped(below("x")))(tmp_path)


def test_an_archive_that_was_there_before_is_used_and_kept(remote: Remote, tmp_path: Path) -> None:
    fetch = offer(remote, "zip", zipped(below("x")))
    (tmp_path / "faces.zip").write_bytes(remote.files.pop("images"))
    assert tree(fetch(tmp_path)) == PHOTOS
    assert (tmp_path / "faces.zip").exists()


def test_an_archive_of_the_user_is_kept_even_if_it_is_another(
    remote: Remote, tmp_path: Path
) -> None:
    (tmp_path / "faces.zip").write_bytes(zipped({"x/Ann/1.jpg": b"another"}))
    with pytest.raises(BadTransfer):
        offer(remote, "zip", b"")(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*WORDS, "faces.zip"}


def test_the_command_fetches_photos_unless_lists_alone_are_asked_for(remote, tmp_path, monkeypatch):
    remote.files = {**WORDS, "images": zipped(below("top"))}
    lists = [RemoteFile(name, f"{remote.url}/{name}", sha256(text)) for name, text in WORDS.items()]
    monkeypatch.setitem(fetch_lfw.__kwdefaults__, "lists", lists)
    images = RemoteFile("faces.zip", f"{remote.url}/images", content())
    monkeypatch.setitem(fetch_lfw.__kwdefaults__, "images", images)
    monkeypatch.setattr(fetch_lists, "__defaults__", (lists,))
    for words, expected in (((), {**WORDS, **below("faces")}), (("--lists-only",), WORDS)):
        out = tmp_path / f"out{len(words)}"
        done = in_process("data", "fetch", "lfw", "--out", out, "--json", *words, check=0)
        assert tree(out) == expected
        images_at = None if words else str(out / "faces")
        assert json.loads(done.stdout).get("images") == images_at
