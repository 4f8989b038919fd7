"""Output of libraries is shown with --verbose only; our own messages unless --quiet."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image, features
from processes.command_line import facepairs, in_process

from facepairs.cli.shared.output import quiet, set_up_tensorflow, verbose

CHATTER = """
import logging, os, sys, warnings
from facepairs.cli.shared.output import silence_libraries
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


@pytest.mark.parametrize(
    ("loud", "hushed", "expected"),
    [("", "", (False, False)), ("0", "0", (False, False)), ("1", "", (True, False)),
     ("1", "0", (True, False)), ("1", "1", (False, True)), ("", "yes", (False, True))],
)  # fmt: skip
def test_quiet_counts_more_than_verbose(loud, hushed, expected, monkeypatch):
    monkeypatch.setenv("FACEPAIRS_VERBOSE", loud)
    monkeypatch.setenv("FACEPAIRS_QUIET", hushed)
    assert (verbose(), quiet()) == expected
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    for given in ("", "1"):
        monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
        if given:
            monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", given)
        set_up_tensorflow()
        assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == (given or ("0" if expected[0] else "3"))
        assert os.environ["KERAS_BACKEND"] == "tensorflow"


def test_crashes_in_c_have_a_traceback():
    begin = "from facepairs.cli.shared.output import silence_libraries\nsilence_libraries()\n"
    crash = run(begin + "import os\nos.abort()")
    assert crash.returncode < 0
    assert crash.stderr.startswith("Fatal Python error: Aborted")


@pytest.mark.skipif(not features.check("libtiff"), reason="this Pillow has no libtiff")
def test_libtiff_prints_with_verbose_only(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (250, 250, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "TIFF", compression="tiff_lzw")
    data = bytearray(buffer.getvalue())
    data[200:-200:97] = bytes(len(data[200:-200:97]))
    broken = tmp_path / "photo.tif"
    broken.write_bytes(data)
    words = ("verify", broken, broken)
    message = facepairs(*words, check=2).stderr
    assert message.startswith(f"facepairs: error: {broken}: damaged or truncated")
    assert message.count("\n") == 1
    verbose = facepairs("--verbose", *words, check=2).stderr
    assert message in verbose
    assert len(verbose) > len(message)


def test_verbose_and_quiet_go_before_and_after_the_command():
    words = ("info", "default")
    expected = facepairs(*words, check=0).stdout
    for option in ("--verbose", "--quiet"):
        for line in ((option, *words), (*words, option), (words[0], option, words[1])):
            assert in_process(*line, check=0).stdout == expected


def test_quiet_prints_errors_only(few_faces, tmp_path, monkeypatch):
    photo = tmp_path / "a.jpg"
    photo.write_bytes(next(few_faces.glob("*/*.jpg")).read_bytes())
    Image.new("L", (250, 250)).save(tmp_path / "blank.jpg")
    words = ("search", photo, tmp_path)
    heard = facepairs(*words, check=1)
    assert "blank.jpg" in heard.stderr
    hushed = facepairs(*words, "--quiet", check=1)
    assert (hushed.stderr, hushed.stdout) == ("", heard.stdout)
    absent = in_process("info", tmp_path / "none", "--quiet", check=2).stderr
    assert absent.startswith("facepairs: error: ")
    monkeypatch.setenv("FACEPAIRS_QUIET", "1")
    assert in_process(*words, check=1).stderr == ""
