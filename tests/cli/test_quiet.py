"""Output of libraries is shown with --verbose only; our own messages unless --quiet."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image, features
from processes.command_line import command, facepairs, in_process

from facepairs.data.synth.folder import write_synthetic_faces

CHATTER = """
import logging, os, sys, warnings
from facepairs.cli.shared.quiet import silence_libraries
silence_libraries()
os.write(2, b"from C\\n")
warnings.warn("from Python", DeprecationWarning)
logging.getLogger("library").warning("from a log")
print("ours", file=sys.stderr)
"""


def run(code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_warnings_logs_and_prints_of_libraries_need_verbose():
    assert run(CHATTER).stderr == "ours\n"
    heard = run(CHATTER, FACEPAIRS_VERBOSE="1").stderr
    for line in ("from C", "DeprecationWarning: from Python", "from a log", "ours"):
        assert line in heard


def test_bugs_and_crashes_in_c_have_a_traceback():
    begin = "from facepairs.cli.shared.quiet import silence_libraries\nsilence_libraries()\n"
    bug = run(begin + "raise RuntimeError('a bug')")
    assert bug.stderr.splitlines()[-1] == "RuntimeError: a bug"
    crash = run(begin + "import os\nos.abort()")
    assert crash.returncode < 0
    assert crash.stderr.startswith("Fatal Python error: Aborted")


def test_a_closed_stderr_is_no_error():
    done = subprocess.run(
        command("info", "default", "--json"),
        stdout=subprocess.PIPE,
        preexec_fn=lambda: os.close(2),
        check=True,
    )
    assert done.stdout.startswith(b"{")


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A compressed TIFF at which libtiff complains in C."""
    pixels = np.random.default_rng(0).integers(0, 255, (250, 250, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "TIFF", compression="tiff_lzw")
    data = bytearray(buffer.getvalue())
    data[200:-200:97] = bytes(len(data[200:-200:97]))
    path = tmp_path_factory.mktemp("broken") / "photo.tif"
    path.write_bytes(data)
    return path


@pytest.mark.skipif(not features.check("libtiff"), reason="this Pillow has no libtiff")
def test_libtiff_prints_with_verbose_only(broken):
    words = ("verify", broken, broken)
    message = facepairs(*words, check=2).stderr
    assert message.startswith(f"facepairs: error: {broken}: damaged or truncated")
    assert message.count("\n") == 1
    for verbose in (
        facepairs("--verbose", *words, check=2),
        facepairs(*words, check=2, env={**os.environ, "FACEPAIRS_VERBOSE": "1"}),
    ):
        assert message in verbose.stderr
        assert len(verbose.stderr) > len(message)


COMMANDS = """
import json, sys
from facepairs.cli.main import main
for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as ended:
        assert ended.code == 0, words
    print("END")
"""


def test_verbose_and_quiet_go_before_and_after_the_command():
    words = ("info", "default")
    lines = [words]
    for option in ("--verbose", "--quiet"):
        lines += [(option, *words), (*words, option), (words[0], option, words[1])]
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(lines)],
        capture_output=True,
        text=True,
        check=True,
    )
    expected, *others = done.stdout.split("END\n")[:-1]
    assert expected.startswith("model")
    assert others == [expected] * 6


def test_quiet_prints_errors_only(tmp_path, monkeypatch):
    write_synthetic_faces(tmp_path / "faces", people=2, images=1, seed=1)
    photo = next((tmp_path / "faces").glob("*/*.jpg"))
    Image.new("L", (250, 250)).save(photo.with_name("blank.jpg"))
    words = ("search", photo, tmp_path / "faces")
    heard = facepairs(*words, check=1)
    assert "blank.jpg" in heard.stderr
    hushed = facepairs(*words, "--quiet", check=1)
    assert hushed.stderr == ""
    assert hushed.stdout == heard.stdout
    absent = in_process("info", tmp_path / "none", "--quiet", check=2).stderr
    assert absent.startswith(f"facepairs: error: {tmp_path}/none/manifest.json: missing")
    monkeypatch.setenv("FACEPAIRS_QUIET", "1")
    assert in_process(*words, check=1).stderr == ""


def test_quiet_of_beam_is_beams_own(tmp_path):
    words = ("cache", "build", tmp_path, "--out", tmp_path / "cache", "--pair-count", 4)
    done = facepairs(*words, "--", "--quiet", check=2)
    assert "unexpected without a Beam runner (--runner)" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("train", "https://x.org/faces"),
        ("train", "faces", "--out", "s3://bucket/run"),
        ("data", "check", "https://x.org/faces"),
        ("data", "synth", "--out", "http://x.org/out"),
        ("cache", "build", "https://x.org/a", "--out", "cache", "--pair-count", "4"),
        ("cache", "build", "faces", "--out", "http://x.org/cache", "--pair-count", "4"),
        ("info", "https://x.org/bundle"),
        ("export", "default", "--out", "gs://bucket/out"),
        ("evaluate", "default", "https://x.org/faces"),
        ("evaluate", "default", "faces", "--report", "https://x.org/report.html"),
        ("calibrate", "default", "faces", "--out", "gs://bucket/out"),
        ("bench", "https://x.org/faces"),
    ],
)
def test_a_url_where_a_path_is_wanted(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = in_process(*words, check=2)
    url = next(word for word in words if "://" in word)
    assert done.stderr.startswith(f"facepairs: error: {url}: a web address, where a path"), words
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
