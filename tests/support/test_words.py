"""Tables of text: aligned columns, and rows that end with a reason."""

from facepairs.support.words import align_columns


def test_a_reason_does_not_widen_the_columns():
    rows = [["a", "b", "c"], ["long name", "skipped: a very long reason"], ["x", "1", "2"]]
    assert align_columns(rows, right=True) == [
        "a          b  c",
        "long name  skipped: a very long reason",
        "x          1  2",
    ]


def test_columns_are_aligned_to_either_side():
    rows = [["name", "pairs"], ["b", "10"]]
    assert align_columns(rows) == ["name  pairs", "b     10"]
    assert align_columns(rows, right=True) == ["name  pairs", "b        10"]
    assert align_columns([]) == []
