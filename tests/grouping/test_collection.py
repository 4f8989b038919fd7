"""Collections: which files are photos, and faces of photos that lie elsewhere."""

from dataclasses import replace

import numpy as np
import pytest
from tiny.heaps import heap_of

from facepairs.errors import BadData
from facepairs.grouping.collection import NO_FACE, find_photos


def test_photos_come_in_the_order_of_their_names_and_other_kinds_are_counted(tmp_path):
    with pytest.raises(BadData):
        find_photos(tmp_path)
    (tmp_path / "b").mkdir()
    photos = ["a.jpg", "a copy.jpg", "b/1.HEIC"]
    names = (*reversed(photos), "1.mp4", "2.MOV", "b/3.cr2", "4.NEF", "notes.txt", ".x.jpg")
    for name in names:
        (tmp_path / name).touch()
    assert find_photos(tmp_path) == (photos, {"video": 2, "raw file": 2})


def test_photos_of_another_folder_are_added_with_their_whole_paths(tmp_path):
    one, other = (
        heap_of([0, 1], ["a.jpg", "a.jpg"]),
        replace(heap_of([2], ["b.jpg"]), root=tmp_path),
    )
    assert one.faces_of == {one.photos["a.jpg"]: [0, 1]}
    other.problems.update({"b.jpg": NO_FACE})
    both = one.with_photos(other)
    place = (tmp_path / "b.jpg").as_posix()
    assert both.photos == one.photos | {place: other.photos["b.jpg"]}
    assert [face.photo for face in both.faces] == ["a.jpg", "a.jpg", place]
    assert np.array_equal(both.embeddings[2:], other.embeddings)
    assert both.problems == {}
    other.problems.update({"b.jpg": "damaged"})
    assert one.with_photos(other).problems == {place: "damaged"}
