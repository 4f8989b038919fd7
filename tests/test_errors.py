"""An error message is one printable line, whatever name or value it quotes."""

import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import facepairs
from facepairs.errors import BadConfig, BadData, NoFace, one_line


@given(st.text(st.characters(codec=None)))
def test_a_message_is_one_printable_line(text: str) -> None:
    line = str(BadData(f"{text}: is wrong"))
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    assert line.encode()  # surrogates, which stand for bytes that are not UTF-8, are escaped too


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain, é 漢 …", "plain, é 漢 …"),
        ("two\nlines", r"two\nlines"),
        ("\x1b[2J\x07", r"\x1b[2J\x07"),
        ("\udcff", r"\udcff"),
        ("\u202egpj\u2028", r"\u202egpj\u2028"),
    ],
)
def test_only_unprintable_characters_are_escaped(text: str, line: str) -> None:
    assert one_line(text) == line


def test_an_error_can_be_pickled_and_names_its_arguments() -> None:
    no_face = pickle.loads(pickle.dumps(NoFace("a\nb")))
    assert (type(no_face), str(no_face), no_face.kind) == (NoFace, r"a\nb", "no_face")
    error = pickle.loads(pickle.dumps(BadConfig("leave such photos out", "skip_bad", "pairs")))
    assert (error.message, error.arguments) == ("leave such photos out", ("skip_bad", "pairs"))
    assert str(error) == "leave such photos out (skip_bad, pairs)"
    assert error.with_names(["--skip-bad"]) == "leave such photos out (--skip-bad)"


def test_the_library_names_no_options() -> None:
    """Whole commands to copy are allowed, and pip's; an error has `arguments` instead."""
    root = Path(facepairs.__file__).parent
    for path in root.rglob("*.py"):
        if path.relative_to(root).parts[0] in ("cli", "server"):  # which the command line runs
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            named = re.search(r"(?<![\w(-])--[a-z]", line)
            whole = "command_line(" in line or "pip install" in line or "tensorboard" in line
            assert whole or not named or "var(--" in line, (path, line)
