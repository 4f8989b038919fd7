"""The official lists: correct ones are read, errors quote the line."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import MAX_NAMED, read_pairs, read_people
from facepairs.errors import BadData, FacepairsError
from facepairs.support.console import showing

PEOPLE = {"Ada_B": 3, "Bo_C": 2, "Cy": 1, "Dé": 4}
INDEX = FaceIndex.from_listing(
    [f"{name}/{name}_{i + 1:04d}.jpg" for name, n in PEOPLE.items() for i in range(n)]
)


def write(tmp_path, *lines):
    path = tmp_path / "list.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_view1_pairs_are_read(tmp_path):
    path = write(tmp_path, "2", "Ada_B\t1\t3", "Dé\t2\t4", "Ada_B\t1\tCy\t1", "Bo_C\t2\tDé\t1")
    pairs, _ = read_pairs(path, INDEX)
    assert [INDEX.name(i) for i in pairs.right] == [
        "Ada_B/Ada_B_0003.jpg",
        "Dé/Dé_0004.jpg",
        "Cy/Cy_0001.jpg",
        "Dé/Dé_0001.jpg",
    ]
    assert pairs.genuine.tolist() == [True, True, False, False]
    assert set(pairs.fold) == {0}


def test_view2_pairs_keep_their_fold(tmp_path):
    fold = ["Ada_B\t1\t2", "Ada_B\t1\tCy\t1"]
    pairs, _ = read_pairs(write(tmp_path, "2\t1", *fold, *fold), INDEX)
    assert pairs.fold.tolist() == [1, 1, 2, 2]
    assert pairs.genuine.tolist() == [True, False, True, False]


def test_people_lists_are_read(tmp_path):
    (people,) = read_people(write(tmp_path, "2", "Dé\t4", "Ada_B\t3"), INDEX)
    assert [INDEX.people[p] for p in people] == ["Ada_B", "Dé"]
    folds = read_people(write(tmp_path, "2", "1", "Cy\t1", "2", "Ada_B\t3", "Bo_C\t2"), INDEX)
    assert [len(fold) for fold in folds] == [1, 2]


@pytest.mark.parametrize(
    ("read", "lines", "where", "why"),
    [
        (read_pairs, ["0"], 1, "not a number from 1"),
        (read_pairs, ["1", "Ada_B\t1\t1", "Ada_B\t1\tCy\t1"], 2, "with itself"),
        (read_pairs, ["1", "Ada_B\t1\t2", "Cy\t1\tCy\t1"], 3, "one person"),
        (read_pairs, ["1", "Ada_B\t0\t1", "Ada_B\t1\tCy\t1"], 2, "from 1 up"),
        (read_pairs, ["1", "Ada_B\t1\tCy\t1"], 2, "a genuine pair"),
        (read_pairs, ["1", "Ada_B\t1\t2", "Ada_B\t1\t2"], 3, "an impostor pair"),
        (read_pairs, ["1", "Ada_B\t1\t2", "Ada_B\t1\tCy\t1", "Cy\t1\t1"], 4, "more lines"),
        (read_pairs, ["1\t2\t3"], 1, "expected a count"),
        (read_people, ["1", "Ada_B\t2"], 2, "has 3 images, the list says 2"),
        (read_people, ["1", "Ada_B\t3\t4"], 2, "expected Name<tab>"),
        (read_people, ["1", "Ada_B\t3", "Cy\t1"], 3, "more lines"),
        (read_people, ["x"], 1, "not a number"),
        (read_people, ["1", "Cy\t5001"], 2, "at most 5,000"),
        (read_people, ["1", "Cy\t100000000"], 2, "at most 5,000"),
        (read_people, ["1", "Cy\t1000000000"], 2, "not a number"),
    ],
)
def test_a_wrong_line_of_a_list_is_quoted(tmp_path, read, lines, where, why):
    path = write(tmp_path, *lines)
    with pytest.raises(BadData) as caught:
        read(path, INDEX)
    message = str(caught.value)
    assert message.startswith(f"{path}: line {where}: ")
    assert why in message
    assert repr(lines[where - 1]) in message


LISTED = ("2\t1", "Ada_B\t1\t9", "Ada_B\t1\tCy\t2", "Ada_B\t1\t2", "Zed\t3\tCy\t1")


def test_all_missing_images_are_named(tmp_path):
    told = []
    with showing(told.append), pytest.raises(BadData, match=r"no image Ada_B/Ada_B_0009\.jpg, "):
        read_pairs(write(tmp_path, *LISTED), INDEX)
    assert told == [f"missing: {n}" for n in ("Ada_B/Ada_B_0009.jpg", "Cy/Cy_0002.jpg",
                                              "Zed/Zed_0003.jpg")]  # fmt: skip
    with showing(told.append), pytest.raises(BadData, match=r"Bo_C_0003\.jpg, Zed/Zed_0001\.jpg"):
        read_people(write(tmp_path, "2", "Bo_C\t3", "Zed\t1"), INDEX)


def test_of_many_missing_images_the_first_are_named(tmp_path):
    names = [f"Zed_{number}" for number in range(MAX_NAMED + 2)]
    told = []
    with showing(told.append), pytest.raises(BadData, match=rf"\({len(names)} in all\)"):
        read_people(write(tmp_path, len(names), *(f"{name}\t1" for name in names)), INDEX)
    assert told[0] == f"missing: {names[0]}/{names[0]}_0001.jpg"
    assert told[MAX_NAMED:] == ["missing: 2 more"]


def test_pairs_of_missing_images_are_left_out_and_others_keep_their_fold(tmp_path):
    pairs, missing = read_pairs(write(tmp_path, *LISTED), INDEX, skip_missing=True)
    assert missing == 3
    assert (pairs.genuine.tolist(), pairs.fold.tolist()) == ([True], [2])
    assert [INDEX.name(int(pairs.left[0])), INDEX.name(int(pairs.right[0]))] == [
        "Ada_B/Ada_B_0001.jpg", "Ada_B/Ada_B_0002.jpg"
    ]  # fmt: skip
    path = write(tmp_path, "1", "Zed\t1\t2", "Zed\t1\tCy\t1")
    with pytest.raises(BadData) as caught:  # none is left
        read_pairs(path, INDEX, skip_missing=True)
    assert caught.value.arguments == ()  # missing images are left out already
    path = write(tmp_path, "3", "Bo_C\t3", "Zed\t1", "Cy\t5000")
    (people,) = read_people(path, INDEX, skip_missing=True)
    assert [INDEX.people[p] for p in people] == ["Bo_C", "Cy"]
    with pytest.raises(BadData, match="has 3 images, the list says 2"):  # not of this data set
        read_people(write(tmp_path, "1", "Ada_B\t2"), INDEX, skip_missing=True)


@pytest.mark.parametrize("suffix", [".JPG", ".jpeg", ".PNG"])
def test_a_copy_may_have_other_suffixes(tmp_path, suffix):
    index = FaceIndex.from_listing(f"Cy/Cy_{i:04d}{suffix}" for i in (1, 2))
    pairs, _ = read_pairs(write(tmp_path, "1", "Cy\t1\t2", "Cy\t2\tAda\t1"),
                       FaceIndex.from_listing([*index.names(), "Ada/Ada_0001.jpg"]))  # fmt: skip
    assert len(pairs) == 2


def test_missing_and_binary_files_are_refused(tmp_path):
    with pytest.raises(BadData):
        read_pairs(tmp_path / "none.txt", INDEX)
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"\xff\xd8\xff")
    with pytest.raises(BadData):
        read_people(binary, INDEX)


def test_control_characters_in_names_are_escaped(tmp_path):
    with pytest.raises(BadData) as caught:
        read_pairs(write(tmp_path, "1", "\x0cA\u2028nn\t1\t2", "Ann\t1\tBob\t1"), INDEX)
    assert str(caught.value).isprintable()


@given(st.text(alphabet="\tAda_BoCy0123\nDé\x85\u2028", max_size=60))
def test_any_text_is_read_or_refused_with_our_own_error(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "fuzz.txt"
    path.write_bytes(text.encode())
    for read in (read_pairs, read_people):
        with contextlib.suppress(FacepairsError):
            read(path, INDEX)


@pytest.mark.lfw
def test_the_official_lists_are_read_whole(lfw: Path):
    index = FaceIndex.scan(lfw / "lfw-deepfunneled")
    counts = {
        path.name: len(read_pairs(path, index)[0]) for path in lfw.iterdir() if "pairs" in path.name
    }
    assert counts == {"pairs.txt": 6000, "pairsDevTrain.txt": 2200, "pairsDevTest.txt": 1000}
    people = {
        name: [len(fold) for fold in read_people(lfw / name, index)]
        for name in ("people.txt", "peopleDevTrain.txt", "peopleDevTest.txt")
    }
    assert sum(people["people.txt"]) == 5749
    assert len(people["people.txt"]) == 10
    assert people["peopleDevTrain.txt"] == [4038]
    assert people["peopleDevTest.txt"] == [1711]
