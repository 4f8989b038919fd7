import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.scores import ScoredPairs, read_scores, write_scores
from facepairs.verification.provenance import Provenance

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "Zoë_Ångström/1.jpg",
        'O"Neil, Tom/1.jpg',
        "two\nlines",
        "a\rb",
        "\r\n",
        " spaced ",
        "李/1.png",
    ]
)
ROWS = st.tuples(
    NAMES,
    NAMES,
    st.booleans(),
    st.integers(0, 32767),
    st.floats(allow_nan=False, allow_infinity=False),
)


def scores_of(rows: list[tuple[str, str, bool, int, float]]) -> ScoredPairs:
    left, right, genuine, fold, score = map(list, zip(*rows, strict=True))
    return ScoredPairs(
        left, right, np.array(genuine, bool), np.array(fold, np.int16), np.array(score, float)
    )


def written(folder: Path, text: str) -> Path:
    path = folder / "scores.csv"
    path.write_text(text, encoding="utf-8")
    return path


@settings(deadline=None, max_examples=60)
@given(st.lists(ROWS, min_size=1, max_size=8))
def test_a_round_trip_is_exact(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("scores") / "scores.csv"
    before = scores_of(rows)
    write_scores(path, before)
    after = read_scores(path)
    assert list(after.left) == before.left
    assert list(after.right) == before.right
    assert after.genuine.tolist() == before.genuine.tolist()
    assert after.fold.tolist() == before.fold.tolist()
    assert after.score.tobytes() == before.score.tobytes()  # bit for bit, -0.0 too
    assert (after.genuine.dtype, after.fold.dtype, after.score.dtype) == (bool, "int16", float)


def test_the_file_is_plain_csv(tmp_path):
    write_scores(tmp_path / "s.csv", scores_of([("A/1.jpg", 'B"/2.jpg', True, 3, -0.5)]))
    text = (tmp_path / "s.csv").read_bytes().decode()
    assert text == 'left,right,genuine,fold,score\r\nA/1.jpg,"B""/2.jpg",1,3,-0.5\r\n'


def test_scores_of_another_system_need_only_genuine_and_score(tmp_path):
    path = written(tmp_path, "score,model,genuine\n1e-3,x,same\n-2,y,impostor\n 7 ,z,TRUE\n")
    scores = read_scores(path)
    assert scores.score.tolist() == [0.001, -2, 7]
    assert scores.genuine.tolist() == [True, False, True]
    assert scores.fold.tolist() == [0, 0, 0]
    assert list(scores.left) == list(scores.right) == ["", "", ""]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_scores_with_decimal_commas_are_read(tmp_path, separator):
    lines = "genuine;score\n1;0,25\n0;-1,5e-1\n1;3\n0;0.75\n"
    scores = read_scores(written(tmp_path, lines.replace(";", separator)))
    assert scores.score.tolist() == [0.25, -0.15, 3, 0.75]


def test_one_side_and_empty_folds_may_be_missing(tmp_path):
    scores = read_scores(written(tmp_path, "\ufeffleft,genuine,fold,score\na,1,,1\nb,0,4,0\n"))
    assert list(scores.left) == ["a", "b"]
    assert list(scores.right) == ["", ""]
    assert scores.fold.tolist() == [0, 4]


@pytest.mark.parametrize(
    ("row", "cell"),
    [
        ("1,0,nan", "'nan'"),
        ("1,0,-1e999", "'-1e999'"),
        ("1,0,", "''"),
        ("1,0,1_000", "'1_000'"),
        ('1,0,"0,5,1"', "'0,5,1'"),
        ('1,0,"1,000.5"', "'1,000.5'"),
        ("maybe,0,1", "'maybe'"),
        ("1,-1,1", "'-1'"),
        ("1,1.5,1", "'1.5'"),
        ("1,32768,1", "'32768'"),
        (f"1,{'9' * 5000},1", "9999"),
    ],
)
def test_a_bad_cell_is_quoted_with_file_and_line(tmp_path, row, cell):
    path = written(tmp_path, f"genuine,fold,score\n0,0,1\n{row}\n")
    with pytest.raises(BadData) as caught:
        read_scores(path)
    assert str(caught.value).startswith(f"{path}: line 3: ")
    assert cell in str(caught.value)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'left,genuine,score\n"a\nb\nc",1,1\nd,1,x\n', "line 5: "),  # of lines, not of rows
        (b"", ""),
        (b"left,right,score\na,b,1\n", "line 1: "),
        (b"genuine,score\n1\n", "line 2: "),
        (b"genuine,score,Score\n1,2,3\n", "line 1: "),
        (b"genuine,score\n1,2,3\n", "line 2: "),
        (b'genuine,score\n1,"2\n', ""),
        (b"genuine,score\n1," + struct.pack("d", -1.0), ""),
        (None, ""),  # no such file
    ],
)
def test_files_that_are_no_scores_files_are_refused(tmp_path, content, place):
    path = tmp_path / "scores.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadData) as caught:
        read_scores(path)
    assert f"{path}: {place}" in str(caught.value)


def test_strangers_are_alike_in_up_to_64_rounds(tmp_path):
    head = "genuine,score,alike,alike_again\n1,2,1,\n"
    pairs = read_scores(written(tmp_path, f"{head}0,1,1,{'10' * 32}\n0,0,,0\n0,0, ,01\n"))
    assert pairs.alike.pairs.tolist() == [False, True, False, False]
    assert pairs.alike.again.shape == (64, 4)
    assert pairs.alike.again[:3].tolist() == [
        [False, True, False, False],
        [False, False, False, True],
        [False, True, False, False],
    ]
    for cell in ("1" * 65, "12"):
        with pytest.raises(BadData, match="line 3: alike_again"):
            read_scores(written(tmp_path, f"{head}0,1,1,{cell}\n"))


def test_without_pairs_there_is_not_enough(tmp_path):
    with pytest.raises(NotEnough):
        read_scores(written(tmp_path, "genuine,score\n"))
    nothing = ScoredPairs([], [], np.zeros(0, bool), np.zeros(0, np.int16), np.zeros(0))
    assert nothing.people is None
    assert not nothing.has_names


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("a", "b", True, 0, float("nan")), "score of pair 1 is nan"),
        (("a", "b", True, 0, float("inf")), "score of pair 1 is inf"),
        (("a\udcff", "b", True, 0, 0.0), r"name in .a\\udcff"),
    ],
)
def test_unreadable_values_are_not_written_and_the_old_file_stays(tmp_path, row, message):
    path = written(tmp_path, "old")
    with pytest.raises(BadData, match=message):
        write_scores(path, scores_of([("a", "b", True, 1, 1.0), row]))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_pairs_with_an_error_or_without_a_label_are_counted_and_left_out(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text(
        "left,right,genuine,score,probability,same,error\n"
        "a,b,1,0.5,0.9,1,\n"
        "a,c,,,,,c: No such file\n"
        "a,e,,0.3,0.4,0,\n"
        "a,d,0,0.1,0.2,0, \n"
    )
    scores = read_scores(path)
    assert (len(scores), scores.unscored) == (2, 2)
    assert list(scores.right) == ["b", "d"]
    assert scores.score.tolist() == [0.5, 0.1]


def test_with_a_checksum_every_changed_bit_and_every_cut_is_detected(tmp_path):
    path, rows = tmp_path / "scores.csv", [("A/1.jpg", "B/2.jpg", False, 1, -0.5)]
    origin = Provenance(model="default", pairs="held-out people")
    write_scores(path, replace(scores_of(rows), origin=origin))
    data = path.read_bytes()
    changed = [
        data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
        for at in range(len(data))
        for bit in range(8)
    ]
    for damaged in (*changed, *(data[:at] for at in range(len(data)))):
        path.write_bytes(damaged)
        with pytest.raises(BadData) as caught:
            read_scores(path)
        assert str(path) in str(caught.value)
    path.write_bytes(data)
    assert read_scores(path).score.tolist() == [-0.5]
