"""FaceIndex: the same folder gives the same arrays, whatever the file system's order."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from facepairs.data.index import READABLE, FaceIndex, photos_below
from facepairs.errors import BadData


def touch(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * len(name))


def test_people_and_images_are_sorted(tmp_path):
    touch(tmp_path, "Zoë/b.jpg", "Zoë/a.png", "Ada/2.JPG", "Ada/1.bmp", "Bo/x.jpeg")
    index = FaceIndex.scan(tmp_path)
    assert list(index.people) == ["Ada", "Bo", "Zoë"]
    assert list(index.names()) == ["Ada/1.bmp", "Ada/2.JPG", "Bo/x.jpeg", "Zoë/a.png", "Zoë/b.jpg"]
    assert index.person_of.tolist() == [0, 0, 1, 2, 2]
    assert list(index.images_of(2)) == [3, 4]
    assert index.find("Zoë/a.png") == 3
    assert index.path(4).read_bytes() == b"x" * len("Zoë/b.jpg")


def test_every_readable_suffix_is_indexed_in_either_case(tmp_path):
    touch(tmp_path, *(f"Ada/{one}" for end in READABLE for one in (f"1{end}", f"2{end.upper()}")))
    assert len(FaceIndex.scan(tmp_path)) == 2 * len(READABLE)


@pytest.mark.parametrize("name", ["", "Ada/1.dng", "1.jpg", "lfw/Ada/1.jpg"])
def test_a_folder_that_is_missing_or_without_people_is_refused_by_name(tmp_path, name):
    folder = tmp_path / "faces"
    if name:
        touch(folder, name)
    with pytest.raises(BadData, match=str(folder)):
        FaceIndex.scan(folder)


def test_the_fingerprint_depends_on_names_and_sizes(tmp_path):
    touch(tmp_path, "A/1.jpg", "B/1.jpg")
    before = FaceIndex.scan(tmp_path).fingerprint
    assert FaceIndex.scan(tmp_path).fingerprint == before
    (tmp_path / "A" / "1.jpg").write_bytes(b"longer than before")
    grown = FaceIndex.scan(tmp_path).fingerprint
    (tmp_path / "A" / "1.jpg").rename(tmp_path / "A" / "2.jpg")
    assert len({before, grown, FaceIndex.scan(tmp_path).fingerprint}) == 3


def test_without_drops_images_and_people_left_with_none(tmp_path):
    touch(tmp_path, "A/1.jpg", "A/2.jpg", "B/1.jpg", "C/1.jpg")
    index = FaceIndex.scan(tmp_path).without([0, 2])
    assert list(index.names()) == ["A/2.jpg", "C/1.jpg"]
    assert list(index.people) == ["A", "C"]
    assert (index.sizes.tolist(), index.content) == ([7, 7], None)
    read = replace(index, content=np.array([11, 22]))
    assert read.without([0]).content.tolist() == [22]
    assert read.fingerprint != index.fingerprint
    assert read.without([]).fingerprint == read.fingerprint


def test_files_that_lie_elsewhere_keep_their_place():
    places = {"Bo/1.jpg": "x/b.jpg", "Ada/2.jpg": "a.jpg"}
    index = FaceIndex.from_places(places, Path("/faces"))
    assert (index.name(1), index.place(1), index.path(0)) == (
        "Bo/1.jpg", "x/b.jpg", Path("/faces/a.jpg")
    )  # fmt: skip
    assert index.paths == [Path("/faces/a.jpg"), Path("/faces/x/b.jpg")]
    assert index.sizes.tolist() == [-1, -1]
    golden = "90dd7f11b3cb5fc7751ddfd7f6b8df5cfbc3df0cc4605185bb1e07e767b9c093"
    assert index.fingerprint == golden  # stored in caches and bundles


def test_what_is_no_photo_of_a_person_is_listed_with_its_reason(tmp_path):
    touch(tmp_path, "Ada/1.jpg", "Ada/a.txt", "Ada/2.CR2", "Ada/deep/1.jpg", "Bo/a.txt", "1.jpg",
          "a.txt", "2.cr2", "_apart/1.jpg", "Ada/.x.jpg")  # fmt: skip
    (tmp_path / "Ada" / "gone.jpg").symlink_to("none")
    (tmp_path / "Cy").symlink_to("none")
    index = FaceIndex.scan(tmp_path)
    assert list(index.names()) == ["Ada/1.jpg"]
    assert sorted(index.skipped) == [
        ("1.jpg", "stray_photo"), ("2.cr2", "stray_photo"), ("Ada/2.CR2", "unsupported"),
        ("Ada/a.txt", "not_image"), ("Ada/deep", "nested_folder"), ("Ada/gone.jpg", "unreadable"),
        ("Bo", "empty_person"), ("Bo/a.txt", "not_image"), ("Cy", "unreadable"),
        ("a.txt", "not_image"),
    ]  # fmt: skip
    assert sorted(photos_below(tmp_path)) == [
        "1.jpg", "Ada/1.jpg", "Ada/deep/1.jpg", "Ada/gone.jpg", "_apart/1.jpg"
    ]  # fmt: skip


@given(st.sets(st.tuples(st.integers(0, 20), st.integers(0, 9)), min_size=1))
def test_a_listing_gives_the_same_index_in_any_order(rows):
    names = [f"Person_{p}/{i}.jpg" for p, i in rows]
    index = FaceIndex.from_listing(names)
    again = FaceIndex.from_listing(reversed(names))
    assert list(index.names()) == list(again.names())
    assert sorted(index.names()) == sorted(names)
    assert index.first[-1] == len(names)
    assert all(
        index.name(i).startswith(index.people[p] + "/")
        for p in range(len(index.people))
        for i in index.images_of(p)
    )
    assert np.array_equal(
        np.repeat(np.arange(len(index.people)), index.image_counts), index.person_of
    )


def test_missing_images_and_people_are_not_found():
    index = FaceIndex.from_listing(["A/2.jpg", "A/4.jpg", "C é/1.jpg", "C/9.jpg"])
    for name in ("A/1.jpg", "A/3.jpg", "A/9.jpg", "B/2.jpg", "D/1.jpg", "A", "", "C/1.jpg"):
        assert index.find(name) is None
    assert [index.find_person(who) for who in ("A", "C", "C é", "B", "")] == [0, 1, 2, None, None]


def test_paths_are_available_by_number():
    index = FaceIndex.from_listing(["A/1.jpg", "B\udcff/Zoë.jpg"], Path("/faces"))
    assert index.paths[1] == index.path(1) == Path("/faces/B\udcff/Zoë.jpg")
    assert index.paths == [index.path(0), index.path(1)]
    assert index.people[:] == ["A", "B\udcff"]
    with pytest.raises(IndexError):
        index.people[2]
