"""Names of people: which ones a gallery takes."""

import pytest

from facepairs.errors import BadConfig
from facepairs.gallery.identity import LONGEST_NAME, clean_name


def test_a_name_is_composed_and_as_long_as_allowed():
    assert clean_name("  Zoe\u0308 ") == "Zoë"
    assert clean_name("a" * LONGEST_NAME) == "a" * LONGEST_NAME


@pytest.mark.parametrize("name", ["", " ", "a" * (LONGEST_NAME + 1), "a\nb", None])
def test_other_names_are_refused(name):
    with pytest.raises(BadConfig):
        clean_name(name)
