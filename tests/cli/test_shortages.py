"""A machine that runs out of something is told in one line, with exit code 2."""

import errno
import resource

import pytest
from command_line import facepairs

from facepairs.cli import main as cli
from facepairs.data.synth import synth_faces


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    root = tmp_path_factory.mktemp("short") / "faces"
    synth_faces(root, people=2, images=2, seed=1)
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
    ],
)
def test_a_shortage_anywhere_is_one_line(monkeypatch, capsys, error):
    def raising(names):
        raise error

    monkeypatch.setattr(cli, "build_app", raising)
    with pytest.raises(SystemExit) as caught:
        cli.main(["info"])
    assert caught.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith("facepairs: error: ")
    assert told.count("\n") == 1


def test_a_bug_is_still_one(monkeypatch):
    def raising(names):
        raise OSError(errno.EINVAL, "no shortage")

    monkeypatch.setattr(cli, "build_app", raising)
    with pytest.raises(OSError, match="no shortage"):
        cli.main(["info"])


def test_a_file_size_limit(faces, tmp_path):
    photos = sorted(faces.glob("*/*.jpg"))
    rows = [
        f"{one.relative_to(faces)},{two.relative_to(faces)}" for one in photos for two in photos
    ]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("\n".join(["left,right", *rows]) + "\n")
    out = tmp_path / "scores.csv"
    done = facepairs("verify", "--pairs", pairs, "--root", faces, "--out", out, check=2,
                     preexec_fn=limited(resource.RLIMIT_FSIZE, 0))  # fmt: skip
    assert done.stderr.count("\n") == 1
    assert {entry.name for entry in tmp_path.iterdir()} <= {"pairs.csv", "scores.csv.partial"}
    again = ["--resume"] if (tmp_path / "scores.csv.partial").exists() else []
    facepairs("verify", "--pairs", pairs, "--root", faces, "--out", out, *again, check=0)
    assert {entry.name for entry in tmp_path.iterdir()} == {"pairs.csv", "scores.csv"}
