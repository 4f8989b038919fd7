"""Fetching LFW: every file once, checked, and nothing half finished left behind."""

import hashlib
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from storage.archives import tgz, tree, zipped
from storage.range_server import Remote, sha256

from facepairs.data.lfw.fetch import (
    LISTS,
    RemoteFile,
    content_sha256,
    fetch_lfw,
    fetch_lists,
)
from facepairs.errors import BadTransfer

PHOTOS = {
    "Ann_Bo/Ann_Bo_0001.jpg": b"one" * 3000,
    "Ann_Bo/Ann_Bo_0002.jpg": b"two" * 2000,
    "Zed/Zed_0001.jpg": bytes(range(256)) * 40,
}
WORDS = {source.file: f"official {source.file}\n".encode() for source in LISTS}


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
    fetch = offer(remote, "zip", zipped(below("x")))
    (fetch(tmp_path) / "Zed/Zed_0001.jpg").unlink()
    with pytest.raises(BadTransfer):
        fetch(tmp_path)
    assert (tmp_path / "faces/Ann_Bo").is_dir()


def test_a_list_with_the_wrong_checksum_is_removed(remote: Remote, tmp_path: Path) -> None:
    remote.files["pairs.txt"] = b"tampered"
    lists = [RemoteFile("pairs.txt", f"{remote.url}/pairs.txt", sha256(b"official"))]
    with pytest.raises(BadTransfer, match=r"pairs\.txt"):
        fetch_lfw(tmp_path, lists=lists)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_with_the_wrong_checksum_leaves_nothing(remote: Remote, tmp_path: Path) -> None:
    with pytest.raises(BadTransfer, match="0" * 64):
        offer(remote, "zip", zipped(below("x")), "0" * 64)(tmp_path)
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
    with pytest.raises(BadTransfer, match=str(tmp_path / "file")):
        fetch_lfw(tmp_path / "file" / "lfw")


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


SLOW = """
import sys, time
from pathlib import Path
import facepairs.data.lfw.fetch as fetch

def wait(folder):
    print("unpacked", flush=True)
    time.sleep(60)

fetch.content_sha256 = wait
url, content, out = sys.argv[1:]
fetch.fetch_lfw(Path(out), lists=(), images=fetch.RemoteFile("faces.zip", url, content))
"""


def test_a_kill_while_unpacking_leaves_nothing_behind_the_next_run(
    remote: Remote, tmp_path: Path
) -> None:
    remote.files = {**WORDS, "images": zipped(below("x"))}
    words = [sys.executable, "-c", SLOW, f"{remote.url}/images", content(), str(tmp_path)]
    fetch = offer(remote, "zip", remote.files["images"])
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "unpacked\n"
        with pytest.raises(BadTransfer, match=f"process {child.pid}"):  # two never meet
            fetch(tmp_path)
        child.kill()
    left = {path.name for path in tmp_path.iterdir()}
    assert {"faces.zip.part", ".fetch.lock"} < left
    assert len([name for name in left if name.startswith(".faces.tmp-")]) == 1
    assert tree(fetch(tmp_path)) == PHOTOS
    assert {path.name for path in tmp_path.iterdir()} == {*WORDS, "faces"}
    assert remote.asked[-1][2] == 0  # the archive was complete
