"""Downloads resume, check what they resume, and name every failure."""

import hashlib
import socket
import sys
from pathlib import Path

import pytest
from storage.range_server import Remote

from facepairs.data.lfw.fetch import RemoteFile, download, fetch_lists
from facepairs.errors import BadTransfer

BODY = hashlib.shake_256(b"body").digest(300_000)


def test_an_interrupted_transfer_resumes_where_it_stopped(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"] = BODY
    remote.cut_after = [100_000, 50_000]
    for size in (100_000, 150_000):
        with pytest.raises(BadTransfer):
            download(f"{remote.url}/f", tmp_path / "f.part")
        assert (tmp_path / "f.part").read_bytes() == BODY[:size]
    part = download(f"{remote.url}/f", tmp_path / "f.part")
    assert part.read_bytes() == BODY
    assert remote.asked == [
        ("f", "", 100_000),
        ("f", "bytes=100000-", 50_000),
        ("f", "bytes=150000-", 150_000),
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["f.part"]


@pytest.mark.parametrize("length", [0, 500, 300_000, 300_001])
@pytest.mark.parametrize("ranges", [True, False])
def test_a_part_of_any_length_ends_as_the_whole_file(
    remote: Remote, tmp_path: Path, length: int, ranges: bool
) -> None:
    remote.files["f"], remote.ranges, remote.tells_length = BODY, ranges, ranges
    (tmp_path / "f.part").write_bytes((BODY + b"x")[:length])
    assert download(f"{remote.url}/f", tmp_path / "f.part").read_bytes() == BODY


def test_what_the_server_refuses_keeps_the_part(remote: Remote, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(BODY[:1000])
    with pytest.raises(BadTransfer):
        download(f"{remote.url}/f", tmp_path / "f.part")
    assert len(remote.asked) == 1
    assert (tmp_path / "f.part").read_bytes() == BODY[:1000]


@pytest.mark.parametrize("tells_length", [True, False])
def test_a_file_far_too_large_is_refused(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tells_length: bool
) -> None:
    monkeypatch.setattr("facepairs.data.lfw.fetch.MAX_BYTES", len(BODY) - 1)
    remote.files["f"], remote.tells_length = BODY, tells_length
    with pytest.raises(BadTransfer):
        download(f"{remote.url}/f", tmp_path / "f.part")
    assert not tells_length or list(tmp_path.iterdir()) == []  # before the transfer


@pytest.mark.skipif(sys.platform == "win32", reason="needs setrlimit")
def test_a_disk_that_becomes_full_is_reported_and_the_part_kept(
    remote: Remote, tmp_path: Path
) -> None:
    import resource

    remote.files["f"] = BODY
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(BadTransfer, match=str(tmp_path)):
            fetch_lists(tmp_path, [RemoteFile("f", f"{remote.url}/f", "0" * 64)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "f.part").stat().st_size <= 100_000


def test_a_refused_connection_is_reported(tmp_path: Path) -> None:
    with socket.socket() as held:  # bound but not listening: nobody else can take the port
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/f"
        with pytest.raises(BadTransfer):
            download(url, tmp_path / "f.part")
