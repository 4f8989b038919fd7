"""The reference is what commands print as help and settings accept; completion knows them."""

import os
import subprocess
import sys

import pytest
from processes.script_runner import run_script

SCRIPT = "scripts/release/reference.py"


def test_the_pages_are_up_to_date():
    done = run_script(SCRIPT, "--check")
    assert done.returncode == 0, done.stderr  # the message names the command that mends it


def test_a_stale_page_is_found_and_rewritten_at_any_width(tmp_path, monkeypatch):
    copy = tmp_path / "cli.md"
    copy.write_text("before\n<!-- cli -->\nold\n<!-- /cli -->\nafter\n")
    done = run_script(SCRIPT, copy, "--check")
    assert done.returncode == 1
    assert "make reference" in done.stderr
    assert "\nold\n" in copy.read_text()
    monkeypatch.setenv("COLUMNS", "40")
    assert run_script(SCRIPT, copy).returncode == 0
    monkeypatch.setenv("COLUMNS", "200")
    assert run_script(SCRIPT, copy, "--check").returncode == 0
    text = copy.read_text()
    assert text.startswith(
        "before\n<!-- cli -->\n## `facepairs verify A B`\n\nDecide whether two photos"
    )
    assert "| `--epochs N` |" in text
    assert "facepairs data fetch" in text


@pytest.mark.parametrize(
    ("words", "position", "found"),
    [
        ("facepairs data ", 2, ["check", "fetch"]),
        ("facepairs train --store ", 3, ["auto", "files", "memory"]),
    ],
)
def test_bash_completes_commands_and_choices(words, position, found):
    done = subprocess.run(
        [sys.executable, "-m", "facepairs"], capture_output=True, text=True, check=True,
        env={**os.environ, "_FACEPAIRS_COMPLETE": "complete_bash", "COMP_WORDS": words,
             "COMP_CWORD": str(position)},
    )  # fmt: skip
    assert set(found) <= set(done.stdout.split())
    assert "train" not in done.stdout
