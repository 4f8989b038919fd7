"""Running out of memory, disk or files gives one line and exit code 2."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from processes.command_line import command, facepairs, in_process

from facepairs.cli import main as cli
from facepairs.data.synth.folder import write_synthetic_faces


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    root = tmp_path_factory.mktemp("short") / "faces"
    write_synthetic_faces(root, people=2, images=2, seed=1)
    return root


def limited(number, value):
    return lambda: resource.setrlimit(number, (value, resource.getrlimit(number)[1]))


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOSPC, "full", "/x"),
        OSError(errno.EMFILE, "too many"),
        ImportError("a.so: failed to map segment from shared object"),
        FileNotFoundError(errno.ENOENT, "No usable temporary directory found in []"),
    ],
)
def test_a_shortage_anywhere_is_one_line(monkeypatch, capsys, error):
    def raising(names):
        raise error

    monkeypatch.setattr(cli, "build_app", raising)
    with pytest.raises(SystemExit) as caught:
        cli.main(["info"])
    assert caught.value.code == 2
    message = capsys.readouterr().err
    assert message.startswith("facepairs: error: ")
    assert message.count("\n") == 1


@pytest.mark.parametrize("words", [(), ("--json",), ("--quiet",)])
def test_a_bug_has_a_traceback_and_an_exit_code_of_its_own(monkeypatch, words):
    def raising(names):
        raise OSError(errno.EINVAL, "no shortage")

    monkeypatch.setattr(cli, "build_app", raising)
    done = in_process("info", *words, check=70)
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "OSError: [Errno 22] no shortage" in lines
    message = "this is a bug in facepairs (OSError); please report it"
    if words == ("--json",):
        error = json.loads(done.stdout)["error"]
        assert error["kind"] == "bug"
        assert error["message"].startswith(message)
    else:
        assert lines[-1].startswith(f"facepairs: error: {message}")
        assert done.stdout == ""


def test_a_shortage_in_a_list_of_local_pairs_is_not_a_matter_of_access(monkeypatch, tmp_path):
    def raising(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("facepairs.beam.score_list.ListScoring", raising)
    words = ("score", tmp_path / "pairs.csv", "--out", tmp_path / "out.csv")
    done = in_process(*words, check=2)
    assert done.stderr == "facepairs: error: Too many open files; raise the limit (ulimit -n)\n"


def test_a_file_size_limit(faces, tmp_path):
    photos = sorted(faces.glob("*/*.jpg"))
    rows = [
        f"{one.relative_to(faces)},{two.relative_to(faces)}" for one in photos for two in photos
    ]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("\n".join(["left,right", *rows]) + "\n")
    out = tmp_path / "scores.csv"
    done = facepairs("score", pairs, "--root", faces, "--out", out, check=2,
                     preexec_fn=limited(resource.RLIMIT_FSIZE, 0))  # fmt: skip
    assert done.stderr.splitlines()[-1].startswith("facepairs: error: ")
    assert {entry.name for entry in tmp_path.iterdir()} == {"pairs.csv"}
    facepairs("score", pairs, "--root", faces, "--out", out, check=0)
    left = {entry.name for entry in tmp_path.iterdir()}
    assert left == {"pairs.csv", "scores.csv", "scores.csv.json"}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("words", [("--help",), ("info", "default", "--json"), ("info", "default")])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_under_stdout_is_one_line(words, unbuffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command(*words), stdout=full, stderr=subprocess.PIPE, text=True, env=environment,
            check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("facepairs: error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_is_gone_is_no_verdict(unbuffered):
    """Exit code 1 would say: different people."""
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command("info", "default"), stdout=writer, stderr=subprocess.PIPE, text=True,
        env=environment, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (2, "")


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


def test_a_photo_that_is_cut_is_not_kept(tmp_path):
    """Pillow, writing to a file itself, would not notice."""
    out = tmp_path / "faces"
    words = ("data", "synth", "--out", out, "--people", 3, "--photos", 1)
    done = facepairs(*words, check=2, preexec_fn=limited(resource.RLIMIT_FSIZE, 4096))
    assert done.stderr.startswith(f"facepairs: error: cannot write {out}: File too large")
    assert list(tmp_path.iterdir()) == []


def test_training_does_not_begin_where_tensorflow_would_abort(many_faces, tmp_path):
    run = tmp_path / "run"
    done = facepairs("train", many_faces, "--out", run, check=2,
                     preexec_fn=limited(resource.RLIMIT_AS, 2 << 30))  # fmt: skip
    assert done.stderr.splitlines()[-1].startswith("facepairs: error: out of memory; free some")
    assert not run.exists()


NOWHERE = """
import sys, tempfile
places = sys.argv.pop().split(":")
tempfile._candidate_tempdir_list = lambda: places
from facepairs.cli.main import main
main(sys.argv[1:])
"""


def test_no_place_for_temporary_files_is_told_before_training(many_faces, tmp_path):
    words = ["train", many_faces, "--out", tmp_path / "run", "--model", "difference"]
    places = f"{tmp_path / 'none'}:/proc/self"
    done = subprocess.run(
        [sys.executable, "-c", NOWHERE, *map(str, words), places],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "facepairs: error: no folder for temporary files can be written; set TMPDIR to one that can"
    )
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_missing_folder_for_temporary_files_is_done_without(tmp_path):
    code = "import tempfile; from facepairs.support.atomic import own_temporaries as own; own(); "
    done = subprocess.run(
        [sys.executable, "-c", code + "print(tempfile.mkdtemp())"],
        env={**os.environ, "TMPDIR": str(tmp_path / "none")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert not done.stdout.startswith(str(tmp_path))
    assert not (tmp_path / "none").exists()
