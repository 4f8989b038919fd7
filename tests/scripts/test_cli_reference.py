"""README's reference of commands is what the commands say, and completion knows them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def script(*arguments, **environment):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "cli_reference.py"), *map(str, arguments)],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip


def test_readme_says_what_help_says():
    done = script("--check")
    assert done.returncode == 0, done.stderr  # the message names the command that mends it


def test_a_stale_readme_is_found_and_mended_at_any_width(tmp_path):
    copy = tmp_path / "README.md"
    copy.write_text("before\n<!-- cli -->\nold\n<!-- /cli -->\nafter\n")
    done = script(copy, "--check")
    assert done.returncode == 1
    assert "make reference" in done.stderr
    assert "\nold\n" in copy.read_text()
    assert script(copy, COLUMNS="40").returncode == 0
    assert script(copy, "--check", COLUMNS="200").returncode == 0
    text = copy.read_text()
    assert text.startswith(
        "before\n<!-- cli -->\n<details><summary><code>facepairs train DATA</code>"
    )
    assert text.endswith("</details>\n<!-- /cli -->\nafter\n")
    assert "| `--epochs N` |" in text
    assert "facepairs data fetch" in text
    copy.write_text("no markers\n")
    assert script(copy).returncode == 1


@pytest.mark.parametrize(
    ("words", "position", "found"),
    [("facepairs ver", 1, ["verify"]), ("facepairs data ", 2, ["check", "fetch"])],
)
def test_bash_completes_commands(words, position, found):
    done = subprocess.run(
        [sys.executable, "-m", "facepairs"], capture_output=True, text=True, check=True,
        env={**os.environ, "_FACEPAIRS_COMPLETE": "complete_bash", "COMP_WORDS": words,
             "COMP_CWORD": str(position)},
    )  # fmt: skip
    assert set(found) <= set(done.stdout.split())
    assert "train" not in done.stdout
