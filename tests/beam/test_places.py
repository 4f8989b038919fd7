"""Files elsewhere: listed, read, and written whole or not at all, in either kind of file system."""

import sys

import pytest

pytest.importorskip("apache_beam")

from memory_files import FILES

from facepairs.beam.listing import index_place
from facepairs.beam.places import Uri, files_below, place, reading, remove, writing
from facepairs.data.index import FaceIndex
from facepairs.errors import BadConfig, BadData

NAMES = (
    "Ann/1.jpg",
    "Ann/2.PNG",
    "Ann-Lee/1.jpg",
    "Ann/.hidden.jpg",
    "Ann/notes.txt",
    "Ann/old/3.jpg",
    "Bob/1.webp",
    ".trash/1.jpg",
    "Zoë/photo 1.bmp",
    "readme.md",
)


@pytest.fixture(params=["mem", "memdir"])
def folder(request):
    FILES.clear()
    yield place(f"{request.param}://bucket/faces")
    FILES.clear()


@pytest.fixture
def faces(folder):
    for number, name in enumerate(NAMES):
        FILES[f"{folder}/{name}"] = bytes(number)
    return folder


def test_a_path_stays_a_path_and_a_scheme_must_be_known(tmp_path, folder):
    assert place(str(tmp_path)) == tmp_path
    assert str(folder / "Ann" / "1.jpg") == f"{folder}/Ann/1.jpg"
    assert (folder / "Ann").name == "Ann"
    assert (folder / "Ann").parent == folder
    with pytest.raises(BadConfig, match=r"knows nowhere://.*apache-beam\[gcp\]"):
        place("nowhere://bucket/faces")
    with pytest.raises(BadConfig, match="hdfs"):
        place("hdfs://faces")


def test_without_beam_the_command_that_installs_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam.io.filesystems", None)
    with pytest.raises(BadConfig, match=r"pip install 'facepairs\[beam\]'"):
        place("gs://bucket/faces")


def test_the_same_files_give_the_same_index_wherever_they_lie(faces, tmp_path):
    for number, name in enumerate(NAMES):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(number))
    here, there = FaceIndex.scan(tmp_path), index_place(faces)
    assert list(there.names()) == list(here.names())
    assert there.sizes.tolist() == here.sizes.tolist()
    assert there.fingerprint == here.fingerprint
    assert sorted(path for path, _ in there.skipped) == sorted(path for path, _ in here.skipped)
    if str(faces).startswith("mem:"):  # the other's listing does not tell a folder from a file
        assert sorted(there.skipped) == sorted(here.skipped)
    assert str(there.path(0)) == f"{faces}/{here.name(0)}"


def test_a_folder_without_images_is_told(folder):
    with pytest.raises(BadData, match="no images; expected"):
        index_place(folder)
    FILES[f"{folder}/readme.md"] = b""
    with pytest.raises(BadData, match="no images; expected"):
        index_place(folder)


def test_a_file_has_its_name_once_it_is_whole(folder):
    target = folder / "out" / "scores.csv"
    for content in (b"old", b"new"):
        with writing(target) as handle:
            handle.write(content)
            assert FILES.get(str(target)) != content
        assert target.read_bytes() == content
    with pytest.raises(ZeroDivisionError), writing(target) as handle:
        handle.write(b"half")
        raise ZeroDivisionError
    assert dict(FILES) == {str(target): b"new"}


def test_a_part_of_a_file_is_read(folder):
    FILES[f"{folder}/items"] = bytes(range(100))
    with reading(folder / "items") as handle:
        handle.seek(40)
        assert handle.read(3) == b"\x28\x29\x2a"
    with pytest.raises(FileNotFoundError), reading(folder / "none"):
        pass


def test_removing_takes_all_below_and_nothing_beside(faces):
    FILES["mem://bucket/faces-two/1.jpg"] = b""
    remove(faces / "Ann")
    assert [entry.name for entry in files_below(faces) if entry.name.startswith("Ann/")] == []
    assert f"{faces}/Ann-Lee/1.jpg" in FILES
    remove(faces / "none")
    remove(faces)
    assert list(FILES) == ["mem://bucket/faces-two/1.jpg"]


def test_local_files_go_the_same_way(tmp_path):
    with writing(tmp_path / "a") as handle:
        handle.write(b"1")
    with reading(tmp_path / "a") as handle:
        assert handle.read() == b"1"
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "a"):
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"1"
    remove(tmp_path / "a")
    remove(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_what_a_file_system_raises_is_an_error_of_the_file(folder):
    missing = Uri(f"{folder}/none.jpg")
    with pytest.raises(FileNotFoundError) as caught:
        missing.read_bytes()
    assert caught.value.filename == str(missing)
