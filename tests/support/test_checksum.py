"""The checksum beside a file."""

import shutil
import subprocess
from pathlib import Path

import pytest

from facepairs.errors import BadData
from facepairs.support.checksum import checksum_path, file_sha256, verify_checksum

TEXT = "left,right\nAnn/1.jpg,Bé/2.jpg\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "some.csv"
    path.write_text(TEXT, "utf-8")
    checksum_path(path).write_text(f"{file_sha256(path)}  {path.name}\n")
    return path


def test_an_intact_file_passes_here_and_by_sha256sum(path: Path) -> None:
    verify_checksum(path)
    assert path.read_text("utf-8") == TEXT
    if shutil.which("sha256sum"):
        done = subprocess.run(
            ["sha256sum", "--check", "--strict", checksum_path(path).name],
            cwd=path.parent,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.stdout == "some.csv: OK\n"


def test_every_changed_bit_and_every_truncation_is_found(path: Path) -> None:
    for damaged in (path, checksum_path(path)):
        whole = damaged.read_bytes()
        changed = [
            whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
            for at in range(len(whole))
            for bit in range(8)
        ]
        for content in [*changed, *(whole[:size] for size in range(len(whole)))]:
            damaged.write_bytes(content)
            if damaged != path and content[:66] == whole[:66] and content[-1:] == b"\n":
                verify_checksum(path)  # the checksum's copy of the file's name is not compared
                continue
            with pytest.raises(BadData, match=r"some\.csv"):
                verify_checksum(path)
        damaged.write_bytes(whole)


def test_a_file_without_a_checksum_passes(path: Path) -> None:
    checksum_path(path).unlink()
    path.write_text("anything")
    verify_checksum(path)
