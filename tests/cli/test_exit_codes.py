"""Whatever is closed, full or gone: a failure never ends with the exit code of a verdict."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from processes.command_line import command, facepairs

from facepairs.cli.app import main
from facepairs.cli.shared.output import can_print, report
from facepairs.errors import BadConfig, BadData, LostWorker, TooSmallFace

FULL = Path("/dev/full")
BUFFERED = {**os.environ, "PYTHONUNBUFFERED": ""}


@pytest.fixture(scope="module")
def photos(few_faces: Path) -> dict[str, Path]:
    first, other = sorted(few_faces.glob("*/*.jpg"))[0:2]
    last = max(few_faces.glob("*/*.jpg"))
    return {"A": first, "B": other, "C": last}


def run(photos: dict[str, Path], redirections: str, *words: str) -> tuple[int, list[str]]:
    """Run a command in a shell, with redirections such as `2>&-`; return its code and stderr."""
    line = " ".join(command("verify", *(photos.get(word, word) for word in words)))
    done = subprocess.run(
        ["bash", "-c", f"{line} {redirections}"],
        env=BUFFERED,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_verdict(photos, closed):
    assert run(photos, closed, "A", "A")[0] == 0
    assert run(photos, closed, "A", "C", "--threshold", "0.99")[0] == 1


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [("A", "A"), ("A", "no.jpg", "--json"), ("--help",)])
@pytest.mark.parametrize("where", [">/dev/full", ">/dev/full 2>&1", ">/dev/full 2>&-"])
def test_a_verdict_that_cannot_be_written_is_an_error(photos, words, where):
    code, lines = run(photos, where, *words)
    assert code == 2
    told = [line for line in lines if not line.startswith("warning: ")]
    is_told = where == ">/dev/full" and "no.jpg" not in words  # which is an error already
    assert len(told) == is_told
    assert all(line.startswith("facepairs: error: ") for line in told)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadData("a folder: is empty; choose another"), 2),
        (MemoryError(), 2),
        (OSError(28, "No space left on device", "a file"), 2),
        (TooSmallFace("a.jpg: its face is 20 pixels"), 3),
        (RuntimeError("unforeseen"), 70),
        (KeyboardInterrupt(), 130),
        (LostWorker("worker 1 has ended"), 138),
    ],
)
def test_each_kind_of_failure_has_the_code_that_the_reference_promises(error, code, capsys):
    assert report(error) == code
    assert capsys.readouterr().out == ""
    assert report(error, as_json=True) == code
    told = json.loads(capsys.readouterr().out)["error"]
    assert told["kind"]
    assert told["message"]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ({}, "x"),  # an argument that this command lacks
        ({"max_fmr": "--max-fmr"}, "x (--max-fmr)"),
        ({"config": "--config"}, "x (max_fmr)"),  # a setting of its file
    ],
)
def test_an_error_names_what_the_user_has_typed(names, told, capsys):
    assert report(BadConfig("x", "max_fmr"), names) == 2
    assert capsys.readouterr().err == f"facepairs: error: {told}\n"


@pytest.mark.parametrize(("encoding", "can"), [("ascii", False), ("utf-8", True)])
def test_what_standard_output_can_show(encoding, can, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding))
    assert (can_print("▏"), can_print("#")) == (can, True)


def test_what_standard_output_cannot_show_is_escaped(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    with mock.patch.dict(os.environ), pytest.raises(SystemExit) as ended:
        main(["info", "▏", "--json"])
    assert ended.value.code == 2
    assert b"\\u258f" in stream.buffer.getvalue()


@pytest.mark.parametrize("both", ["", "2>&1"])
def test_a_reader_that_is_gone_is_an_error(photos, both):
    line = " ".join(command("verify", photos["A"], photos["A"]))
    script = f"(sleep 0.01; {line} {both}; echo $? >&3) 3>&2 | true"
    pipe = subprocess.PIPE
    done = subprocess.run(["bash", "-c", script], env=BUFFERED, stderr=pipe, text=True, check=True)
    told = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert told == ["2"]


def test_no_arguments_show_the_help():
    assert "verify" in facepairs(check=2).stdout


@pytest.mark.parametrize("where", ["", "2>&-", ">&- 2>&-", "2>/dev/full", ">/dev/full 2>&1"])
def test_an_installation_that_is_damaged_is_an_error(tmp_path, where):
    if "full" in where and not FULL.exists():
        pytest.skip("needs /dev/full")
    (tmp_path / "typer.py").write_text("raise ImportError('damaged')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = ["bash", "-c", f"{sys.executable} -m facepairs info {where}"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert where or done.stderr.count("\n") == 1
