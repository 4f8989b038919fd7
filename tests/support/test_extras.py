import pytest
from processes.command_line import in_process

import facepairs
from facepairs.errors import MissingExtra
from facepairs.evaluation.calibrate import calibrate
from facepairs.evaluation.drift import drift
from facepairs.evaluation.evaluate import evaluate
from facepairs.evaluation.migration import compare_models
from facepairs.evaluation.planning import plan
from facepairs.evaluation.replay import replay
from facepairs.gallery.stores import open_store
from facepairs.support import extras
from facepairs.support.extras import has_extra, require_extra


def test_the_extra_of_a_missing_module_is_named_and_no_other(monkeypatch):
    brought = {"here": ("json",), "gone": ("json", "no_such_module")}
    monkeypatch.setattr(extras, "EXTRAS", brought)
    require_extra("here", "a command")
    assert (has_extra("here"), has_extra("gone")) == (True, False)
    with pytest.raises(MissingExtra, match=r"^a command needs .*'\.\[gone\]'$"):
        require_extra("gone", "a command")


NEEDS = {
    "evaluate": ("measure", lambda: evaluate("x")),
    "calibrate": ("measure", lambda: calibrate("x", "y", "z")),
    "drift": ("measure", lambda: drift("x", "y")),
    "replay": ("measure", lambda: replay("x")),
    "plan": ("measure", plan),
    "comparing": ("measure", lambda: compare_models(None, None)),
    "group": ("measure", lambda: facepairs.group("x", "y")),
    "train": ("train", lambda: facepairs.train("x", "y")),
    "crossval": ("train", lambda: facepairs.crossval("x", "y", "z")),
    "PostgreSQL": ("postgres", lambda: open_store("postgresql://x/y")),
}
COMMANDS = {
    "bench": ("train", "bench", "x"),
    "export": ("train", "export", "x", "--out", "y"),
    "demo": ("train", "demo"),
    "cache": ("train", "cache", "build", "x", "--out", "y", "--pair-count", "9"),
    "serve": ("serve", "serve"),
}


@pytest.mark.parametrize("name", NEEDS)
def test_functions_say_which_extra_they_need_before_anything_else(monkeypatch, name):
    extra, call = NEEDS[name]
    monkeypatch.setitem(extras.EXTRAS, extra, ("no_such_module",))
    with pytest.raises(MissingExtra, match=f"{extra} extra"):
        call()


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_say_which_extra_they_need_before_anything_else(monkeypatch, tmp_path, name):
    extra, *words = COMMANDS[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(extras.EXTRAS, extra, ("no_such_module",))
    assert f"needs the {extra} extra" in in_process(*words, check=2).stderr
    assert list(tmp_path.iterdir()) == []
