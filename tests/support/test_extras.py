import pytest

from facepairs.errors import MissingExtra
from facepairs.support import extras
from facepairs.support.extras import require_extras


def test_the_extra_of_a_missing_module_is_named_and_no_other(monkeypatch):
    brought = {"here": ("json",), "gone": ("json", "no_such_module"), "far": ("none_either",)}
    monkeypatch.setattr(extras, "EXTRAS", brought)
    require_extras([], "a command")
    require_extras(["here"], "a command")
    with pytest.raises(MissingExtra, match=r"^a command needs .*'facepairs\[gone,far\]'$"):
        require_extras(["here", "gone", "far"], "a command")
