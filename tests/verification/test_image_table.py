"""Names by number, as in a list and a dictionary, but on disk."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facepairs.errors import BadData
from facepairs.verification.image_table import ImageTable

NAMES = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(["\udcff", "a\udc80b"])


@settings(max_examples=40)
@given(st.lists(st.lists(NAMES)))
def test_names_are_numbered_in_the_order_of_adding(parts):
    images, expected = ImageTable(), {}
    for names in parts:
        images.add(names)
        for name in names:
            expected.setdefault(name, len(expected))
    assert list(images) == images[:] == list(expected)
    assert len(images) == len(expected)
    assert [images.number(name) for name in expected] == list(expected.values())
    with pytest.raises(KeyError):
        images.number("never added: \n")


def test_errors_are_stored_by_number():
    images = ImageTable()
    images.add(["a", "b", "c"])
    images.add_errors({1: "b: no face", 2: "c: \udcff"})
    images.add_errors({})
    images.add_errors({1: "b: gone"})
    assert [images.error(number) for number in (-1, 0, 1, 2)] == ["", "", "b: gone", "c: \udcff"]
    assert images.failed == 2
    with pytest.raises(IndexError):
        images[3]


def test_a_full_disk_is_reported():
    images = ImageTable()
    images._database.execute("PRAGMA max_page_count = 10")
    with pytest.raises(BadData, match=r"no room for the names of the images .*SQLITE_TMPDIR"):
        images.add(f"{number:0999}.jpg" for number in range(100))
