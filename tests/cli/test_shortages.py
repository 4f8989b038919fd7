"""Running out of memory, disk or files gives one line and exit code 2."""

import errno
import json
import resource
import signal
import subprocess
import time

import pytest
from processes.command_line import command, facepairs, in_process

from facepairs.bundles import model
from facepairs.cli import app as cli
from facepairs.cli.shared.output import describe_failure


def limited(number, value):
    return lambda: resource.setrlimit(number, (value, resource.getrlimit(number)[1]))


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOSPC, "full", "/x"),
        OSError(errno.EMFILE, "too many"),
        FileNotFoundError(errno.ENOENT, "No usable temporary directory found in []"),
    ],
)
def test_a_shortage_anywhere_is_one_line(monkeypatch, capsys, error):
    def raising():
        raise error

    monkeypatch.setattr(cli, "build_command", raising)
    with pytest.raises(SystemExit) as caught:
        cli.main(["info"])
    assert caught.value.code == 2
    message = capsys.readouterr().err
    assert message.startswith("facepairs: error: ")
    assert message.count("\n") == 1
    file = getattr(error, "filename", None)
    assert message.startswith(f"facepairs: error: {file}: ") == (file is not None)
    assert "None" not in message


@pytest.mark.parametrize(
    ("text", "word"),
    [("{{node x}} /run/events.v2; No space left on device", "/run/events.v2: No space left"),
     ("OOM when allocating tensor with shape[9]", "out of memory")],
)  # fmt: skip
def test_tensorflow_calls_a_full_disk_exhausted_too(text, word):
    error = type("ResourceExhaustedError", (Exception,), {})(text)
    assert describe_failure(error).startswith(word)


@pytest.mark.parametrize("words", [(), ("--json",), ("--quiet",)])
def test_a_bug_has_a_traceback_and_an_exit_code_of_its_own(monkeypatch, words):
    def raising(model):
        raise RuntimeError("no shortage")

    monkeypatch.setattr(model, "open_model", raising)
    done = in_process("info", "default", *words, check=70)
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "RuntimeError: no shortage" in lines
    if words == ("--json",):
        assert json.loads(done.stdout)["error"]["kind"] == "bug"
    else:
        assert "this is a bug in facepairs (RuntimeError)" in lines[-1]
        assert done.stdout == ""


def test_a_file_size_limit(few_faces, tmp_path):
    names = [str(photo.relative_to(few_faces)) for photo in sorted(few_faces.glob("*/*.jpg"))[:4]]
    pairs, out = tmp_path / "pairs.csv", tmp_path / "scores.csv"
    rows = [f"{one},{two}" for one in names for two in names]
    pairs.write_text("\n".join(["left,right", *rows]) + "\n")
    for words in (("score", pairs, "--root", few_faces, "--out", out),
                  ("data", "synth", "--out", out, "--people", 3, "--photos", 1)):  # fmt: skip
        limit = limited(resource.RLIMIT_FSIZE, 0)
        done = facepairs(*words, check=2, preexec_fn=limit)
        assert done.stderr.splitlines()[-1].startswith("facepairs: error: ")
        assert {entry.name for entry in tmp_path.iterdir()} == {"pairs.csv"}


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_an_interrupt_is_one_line_and_leaves_nothing(tmp_path, words):
    process = subprocess.Popen(
        command("data", "synth", "--out", tmp_path / "faces", "--people", 2000, *words),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not list(tmp_path.glob("*/*/*.jpg")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    if words:
        assert json.loads(out)["error"]["kind"] == "interrupted"
    else:
        assert err == "facepairs: error: interrupted\n"
    assert list(tmp_path.iterdir()) == []
