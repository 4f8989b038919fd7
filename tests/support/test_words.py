"""Tables of text: aligned columns, and rows that end with a reason."""

import pytest

from facepairs.support.words import align_columns, counted, format_duration, printable


def test_numbers_have_their_noun():
    assert [counted(number, "copy", "copies") for number in (0, 1, 2)] == [
        "0 copies", "1 copy", "2 copies"
    ]  # fmt: skip
    assert [counted(number, "image") for number in (1, 1200)] == ["1 image", "1,200 images"]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(-5, "0:00"), (59.4, "0:59"), (59.6, "1:00"), (3599, "59:59"), (3600, "1:00:00"),
     (7325, "2:02:05")],
)  # fmt: skip
def test_durations(seconds, told):
    assert format_duration(seconds) == told


def test_bytes_that_are_no_text_are_escaped():
    assert (printable("Zoë"), printable("a\udcff")) == ("Zoë", "a\\udcff")


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
