import pytest

from facepairs.errors import MissingExtra
from facepairs.support import extras
from facepairs.support.extras import has_extra, require_extra


def test_the_extra_of_a_missing_module_is_named_and_no_other(monkeypatch):
    brought = {"here": ("json",), "gone": ("json", "no_such_module")}
    monkeypatch.setattr(extras, "EXTRAS", brought)
    require_extra("here", "a command")
    assert (has_extra("here"), has_extra("gone")) == (True, False)
    with pytest.raises(MissingExtra, match=r"^a command needs .*'\.\[gone\]'$"):
        require_extra("gone", "a command")
