"""An output folder must be new, empty, or an older output of the same kind."""

import contextlib
from pathlib import Path

import pytest

from facepairs.errors import BadConfig, BadData
from facepairs.support.atomic import atomic_file, atomic_folder
from facepairs.support.lock import lock_beside
from facepairs.support.places import (
    check_output_file,
    check_output_folder,
    is_foreign,
    is_free,
    is_leftover,
    is_remote,
    listed_files,
    refuse_url,
)


def files_of(folder):
    return listed_files(folder / "manifest.json")


def test_new_and_empty_folders_are_free(tmp_path):
    (tmp_path / "empty").mkdir()
    for out in (tmp_path / "new", tmp_path / "empty"):
        assert is_free(out)
        check_output_folder(out)


def test_only_an_older_output_of_the_same_kind_may_be_replaced(tmp_path):
    (tmp_path / "manifest.json").write_text('{"files": ["deep/a", "b"]}')
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a").touch()
    check_output_folder(tmp_path, "a bundle", files_of)
    with pytest.raises(BadData, match="exists and is not an empty folder;"):
        check_output_folder(tmp_path)
    (tmp_path / "manifest.json").rename(tmp_path / "photo.jpg")
    with pytest.raises(BadConfig, match="neither a bundle nor an empty folder;"):
        check_output_folder(tmp_path, "a bundle", files_of, error=BadConfig)
    with pytest.raises(BadData):
        check_output_folder(tmp_path / "photo.jpg", "a bundle", lambda folder: ["photo.jpg"])


@pytest.mark.parametrize(
    "record", ["{}", "[]", "", '{"files": 3}', '{"manifest_version": 3}', '{"files": [["x"]]}']
)
def test_a_file_of_the_right_name_makes_no_folder_ours(tmp_path, record):
    (tmp_path / "manifest.json").write_text(record)
    with pytest.raises(BadData):
        check_output_folder(tmp_path, "a bundle", files_of)


@pytest.mark.parametrize("name", ["notes.txt", "deep/c", ".hidden"])
def test_a_file_that_is_not_on_the_list_keeps_a_folder(tmp_path, name):
    (tmp_path / "manifest.json").write_text('{"files": ["b"]}')
    (tmp_path / "deep").mkdir()
    (tmp_path / name).symlink_to("nowhere")
    with pytest.raises(BadData, match=f"{name} does not belong to it;"):
        check_output_folder(tmp_path, "a bundle", files_of)


@pytest.mark.parametrize("name", [".DS_Store", "deep/Thumbs.db", "._b", "@eaDir/b/small.jpg"])
def test_what_systems_leave_in_a_folder_does_not_keep_it(tmp_path, name):
    (tmp_path / "manifest.json").write_text('{"files": ["b"]}')
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).touch()
    check_output_folder(tmp_path, "a bundle", files_of)


def test_an_output_among_the_inputs_is_refused(tmp_path):
    with pytest.raises(BadData):
        check_output_folder(tmp_path / "photos" / "out", inputs=tmp_path / "photos")
    check_output_folder(tmp_path / "out", inputs=tmp_path / "photos")


def test_a_loop_of_links_is_refused(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(BadData):
        check_output_folder(tmp_path / "loop" / "out", inputs=tmp_path)


@pytest.mark.parametrize(
    ("content", "mark", "is_replaced"),
    [
        (b"text", None, True),
        (4095 * b" " + b"\0", None, False),
        (4096 * b" " + b"\0", None, True),  # the beginning decides
        (b"a page of ours", b"ours", True),
        (b"a page", b"ours", False),
    ],
)
def test_an_output_file_replaces_text_or_what_bears_our_mark(tmp_path, content, mark, is_replaced):
    (tmp_path / "out").write_bytes(content)
    is_not = "an earlier output" if mark else "a text file"
    refused = pytest.raises(BadData, match=f"is not {is_not};")
    with contextlib.nullcontext() if is_replaced else refused:
        check_output_file(tmp_path / "out", mark)
    check_output_file(tmp_path / "new", mark)
    with pytest.raises(BadData):
        check_output_file(tmp_path, mark)


def test_leftovers_hidden_files_and_what_may_be_deleted():
    assert [is_leftover(name) for name in (".x", "@eaDir", "LOST+FOUND", "@ann", "x.")] == [
        True, True, True, False, False
    ]  # fmt: skip
    paths = ("a/.DS_Store", "Thumbs.db/x", "a/._b", "a/b", ".hidden", "lost+found")
    assert [is_foreign(path) for path in paths] == [False, False, False, True, True, True]


def test_remote_places_are_storage_not_pages():
    places = ("gs://b/x", "S3://b", "https://h/a", "FILE:///a", "photos", "C:/photos")
    assert [is_remote(place) for place in places] == [True, True, False, False, False, False]


@pytest.mark.parametrize("place", [".", "/"])
def test_an_output_without_a_name_is_refused(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    for write in (atomic_file, atomic_folder):
        with pytest.raises(BadData), write(Path(place)):
            pass
    with pytest.raises(BadData):
        lock_beside(Path(place))


@pytest.mark.parametrize("place", ["https://u:secret@h.example/a.jpg", "s3://bucket/x", "-"])
def test_an_address_is_no_path(place):
    with pytest.raises(BadData) as caught:
        refuse_url(place)
    assert "secret" not in str(caught.value)
    assert ("h.example/a.jpg" in str(caught.value)) == ("h.example" in place)


def test_a_path_is_one_whether_it_exists_or_looks_like_an_address(tmp_path, monkeypatch):
    for place in (tmp_path, tmp_path / "none", "none", Path("a:b")):
        refuse_url(place)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd:").mkdir()
    (tmp_path / "odd:" / "x").touch()
    refuse_url("odd://x")
