"""Pair lists as CSV: correct rows are read, errors quote the cell."""

import pytest

from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList, person_name, person_of, read_pairs_csv
from facepairs.errors import BadData, NotEnough

INDEX = FaceIndex.from_listing(["A/1.jpg", "A/2.jpg", "B, the 2nd/1.jpg"])


def read(tmp_path, text):
    path = tmp_path / "pairs.csv"
    path.write_text(text, encoding="utf-8")
    return read_pairs_csv(path, INDEX)


def test_rows_are_read(tmp_path):
    pairs = read(
        tmp_path,
        "left,right,genuine,fold\nA/1.jpg,./A/2.jpg,genuine,3.0\n"
        'A/1.jpg,"B, the 2nd/1.jpg",0,\nA/2.jpg,"B, the 2nd/1.jpg",No,32767\n',
    )
    assert pairs.left.tolist() == [0, 0, 1]
    assert pairs.right.tolist() == [1, 2, 2]
    assert pairs.genuine.tolist() == [True, False, False]
    assert pairs.fold.tolist() == [3, 0, 32767]
    assert pairs.show_none_of([1]).tolist() == [False, True, False]
    assert pairs.show_none_of({0, 2}).tolist() == [False, False, False]


@pytest.mark.parametrize(
    ("photo", "person", "name"),
    [("a/B/1.jpg", "a/B", "B"), ("B\\1.jpg", "B", "B"), ("1.jpg", "", "")],
)
def test_the_person_of_a_photo_is_its_folder(photo, person, name):
    assert (person_of(photo), person_name(photo)) == (person, name)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("left,right\nA/1.jpg,A/2.jpg\n", "line 1: no column genuine"),
        ("left,right,genuine\nA/1.jpg,A/9.jpg,1\n", "line 2: no image 'A/9.jpg'"),
        ("left,right,genuine\nA/1.jpg,A/2.jpg,maybe\n", "line 2: genuine is 'maybe'"),
        ("left,right,genuine\nA/1.jpg,A/2.jpg\n", "line 2: expected 3 cells"),
        ("left,right,genuine\nA/1.jpg,A/2.jpg,1,9\n", "line 2: expected 3 cells"),
        ("left,right,genuine,fold\nA/1.jpg,A/2.jpg,1,x\n", "line 2: fold is .x."),
        ("left,right,genuine,fold\nA/1.jpg,A/2.jpg,1,-1\n", "line 2: fold is '-1'"),
        ("left,right,genuine,fold\nA/1.jpg,A/2.jpg,1,32768\n", "line 2: fold is '32768'"),
        ("", "no column"),
        ("left,right,genuine,Left\nA/1.jpg,A/2.jpg,1,x\n", "line 1: two columns are named left"),
        ("left,right,genuine\nA/1.jpg,./A/1.jpg,1\n", "line 2: a photo is paired with itself"),
        (
            "left,right,genuine\nA/1.jpg,A/2.jpg,1\nA/1.jpg,A/2.jpg,1\n",
            "line 3: line 2 is the same pair",
        ),
        (
            "left,right,genuine\nA/1.jpg,A/2.jpg,1\nA/2.jpg,A/1.jpg,1\n",
            "line 3: line 2 is the same pair",
        ),
        (
            "left,right,genuine\nA/1.jpg,A/2.jpg,1\nA/2.jpg,A/1.jpg,0\n",
            "line 3: line 2 has this pair with the other label",
        ),
    ],
)
def test_wrong_rows_are_quoted(tmp_path, text, why):
    with pytest.raises(BadData, match=why):
        read(tmp_path, text)


def test_without_a_row_there_is_not_enough(tmp_path):
    with pytest.raises(NotEnough):
        read(tmp_path, "left,right,genuine\n")


def test_masks_and_slices_select_pairs():
    pairs = PairList.of([0, 1, 2], [2, 0, 1], [True, False, True], 4)
    assert pairs.where(pairs.genuine).left.tolist() == [0, 2]
    assert pairs.where(slice(1, None)).fold.tolist() == [4, 4]
    assert pairs.images().tolist() == [0, 1, 2]
