"""Remote files are listed, read, and written completely or not at all, in both kinds of storage."""

import sys

import pytest

pytest.importorskip("apache_beam")

from storage.memory_files import FILES

from facepairs.beam.build_cache import index_place
from facepairs.beam.paths import (
    BeamPath,
    files_below,
    parse_place,
    reading,
    remote_errors,
    remove,
    writing,
)
from facepairs.data.index import FaceIndex
from facepairs.errors import BadConfig, BadData

NAMES = (
    "Ann/1.jpg",
    "Ann/2.PNG",
    "Ann-Lee/1.jpg",
    "Ann/.hidden.jpg",
    "Ann/notes.txt",
    "Ann/old/3.jpg",
    "Bob/1.dng",
    ".trash/1.jpg",
    "Zoë/photo 1.bmp",
    "readme.md",
)


@pytest.fixture(params=["mem", "memdir"])
def folder(request):
    FILES.clear()
    yield parse_place(f"{request.param}://bucket/faces")
    FILES.clear()


@pytest.fixture
def faces(folder):
    for number, name in enumerate(NAMES):
        FILES[f"{folder}/{name}"] = bytes(number)
    return folder


def test_local_paths_stay_paths_and_unknown_schemes_are_refused(tmp_path, folder):
    assert parse_place(str(tmp_path)) == tmp_path
    assert str(folder / "Ann" / "1.jpg") == f"{folder}/Ann/1.jpg"
    with pytest.raises(BadConfig, match=r"nowhere://.*apache-beam\[gcp\]"):
        parse_place("nowhere://bucket/faces")
    with pytest.raises(BadConfig, match="hdfs"):
        parse_place("hdfs://faces")


def test_without_beam_the_error_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam.io.filesystems", None)
    with pytest.raises(BadConfig):
        parse_place("gs://bucket/faces")


def test_the_same_files_give_the_same_index_locally_and_remotely(faces, tmp_path):
    for number, name in enumerate(NAMES):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(number))
    here, there = FaceIndex.scan(tmp_path), index_place(faces)
    assert list(there.names()) == list(here.names())
    assert there.sizes.tolist() == here.sizes.tolist()
    assert there.fingerprint == here.fingerprint
    assert {("Ann/notes.txt", "not_image"), ("Bob/1.dng", "unsupported")} <= set(there.skipped)


def test_errors_name_the_remote_folder_instead_of_its_local_stand_in(faces):
    index = index_place(faces)
    with pytest.raises(BadData, match=f"^{faces}/Ann/1.jpg: damaged$"), remote_errors(faces):
        raise BadData(f"{index.path(0)}: damaged")


def test_a_folder_without_images_is_refused(folder):
    for files in ({}, {f"{folder}/readme.md": b""}):
        FILES.update(files)
        with pytest.raises(BadData):
            index_place(folder)


def test_a_file_gets_its_name_when_it_is_complete(folder):
    target = folder / "out" / "scores.csv"
    for content in (b"old", b"new"):
        with writing(target) as handle:
            handle.write(content)
            assert FILES.get(str(target)) != content
        assert folder.read_file("out/scores.csv") == content
    with pytest.raises(ZeroDivisionError), writing(target) as handle:
        handle.write(b"half")
        raise ZeroDivisionError
    assert dict(FILES) == {str(target): b"new"}


def test_a_part_of_a_file_can_be_read(folder):
    FILES[f"{folder}/items"] = bytes(range(100))
    with reading(folder / "items") as handle:
        handle.seek(40)
        assert handle.read(3) == b"\x28\x29\x2a"
    with pytest.raises(OSError, match="none"), reading(folder / "none"):
        pass


def test_remove_deletes_what_is_below_and_nothing_else(faces):
    FILES["mem://bucket/faces-two/1.jpg"] = b""
    remove(faces / "Ann")
    assert [name for name, _ in files_below(faces) if name.startswith("Ann/")] == []
    assert f"{faces}/Ann-Lee/1.jpg" in FILES
    remove(faces / "none")
    remove(faces)
    assert list(FILES) == ["mem://bucket/faces-two/1.jpg"]


def test_local_files_are_written_and_removed_the_same_way(tmp_path):
    file = BeamPath(str(tmp_path / "a"))
    with writing(file) as handle:
        handle.write(b"1")
    with reading(file) as handle:
        assert handle.read() == b"1"
    with pytest.raises(ZeroDivisionError), writing(file):
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert BeamPath(str(tmp_path)).read_file("a") == b"1"
    remove(file)
    remove(file)
    assert list(tmp_path.iterdir()) == []


def test_errors_of_a_file_system_become_errors_of_the_file(folder):
    with pytest.raises(OSError, match=r"none\.jpg") as caught:
        folder.read_file("none.jpg")
    assert caught.value.filename == f"{folder}/none.jpg"
