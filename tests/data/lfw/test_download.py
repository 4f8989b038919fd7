"""Downloads resume, check what they resume, and name every failure."""

import hashlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from storage.range_server import Remote, serving

from facepairs.data.lfw.download import MAX_ATTEMPTS, download
from facepairs.errors import BadTransfer
from facepairs.support.console import showing

BODY = hashlib.shake_256(b"body").digest(300_000)


@pytest.fixture(autouse=True)
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the second attempt follow the first at once."""
    monkeypatch.setattr("facepairs.data.lfw.download.FIRST_WAIT_S", 0.0)


@pytest.fixture
def remote() -> Iterator[Remote]:
    with serving() as server:
        yield server


def test_an_interrupted_transfer_resumes_where_it_stopped(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"] = BODY
    remote.cut_after = [100_000, 50_000]
    part = download(f"{remote.url}/f", tmp_path / "f.part")
    assert part.read_bytes() == BODY
    assert remote.asked == [
        ("f", "", 100_000),
        ("f", "bytes=100000-", 50_000),
        ("f", "bytes=150000-", 150_000),
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["f.part"]


def test_the_next_run_resumes_after_a_kill(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"] = BODY

    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), showing(progress=lambda _: stop):
        download(f"{remote.url}/f", tmp_path / "f.part")
    have = (tmp_path / "f.part").stat().st_size
    assert 0 <= have < len(BODY)
    (tmp_path / "f.part").write_bytes(BODY[:1000])
    assert download(f"{remote.url}/f", tmp_path / "f.part").read_bytes() == BODY
    assert remote.asked[-1] == ("f", "bytes=1000-", len(BODY) - 1000)


def test_a_server_without_ranges_sends_the_whole_file_again(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"], remote.ranges, remote.cut_after = BODY, False, [100_000]
    assert download(f"{remote.url}/f", tmp_path / "f.part").read_bytes() == BODY
    assert remote.asked == [("f", "", 100_000), ("f", "bytes=100000-", len(BODY))]


@pytest.mark.parametrize("length", [500, 300_000, 300_001])
def test_a_complete_or_too_long_part_ends_as_the_whole_file(
    remote: Remote, tmp_path: Path, length: int
) -> None:
    remote.files["f"] = BODY
    (tmp_path / "f.part").write_bytes((BODY + b"x")[:length])
    assert download(f"{remote.url}/f", tmp_path / "f.part").read_bytes() == BODY


def test_a_file_far_too_large_is_refused_before_the_transfer(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("facepairs.data.lfw.download.MAX_BYTES", len(BODY) - 1)
    remote.files["f"] = BODY
    with pytest.raises(BadTransfer, match="300,000"):
        download(f"{remote.url}/f", tmp_path / "f.part")
    assert list(tmp_path.iterdir()) == []


def test_a_server_need_not_state_the_length(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"], remote.tells_length = BODY, False
    assert download(f"{remote.url}/f", tmp_path / "f.part").read_bytes() == BODY


def test_a_busy_server_is_asked_again(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"], remote.statuses = BODY, [503, 429, 500]
    assert download(f"{remote.url}/f", tmp_path / "f.part").read_bytes() == BODY
    assert len(remote.asked) == 4


def test_attempts_end_and_the_part_is_kept(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"], remote.ranges, remote.cut_after = BODY, False, [1000] * 99
    with pytest.raises(
        BadTransfer, match=r"ended after 1,000 of 300,000 .* \(1,000 bytes\) are kept"
    ):
        download(f"{remote.url}/f", tmp_path / "f.part")
    assert len(remote.asked) == MAX_ATTEMPTS
    assert (tmp_path / "f.part").read_bytes() == BODY[:1000]


def test_404_is_not_tried_again(remote: Remote, tmp_path: Path) -> None:
    with pytest.raises(BadTransfer, match=r"/f: the server answered 404 Not Found; check"):
        download(f"{remote.url}/f", tmp_path / "f.part")
    assert len(remote.asked) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_refused_connection_is_reported(tmp_path: Path) -> None:
    with socket.socket() as held:  # bound but not listening: nobody else can take the port
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/f"
        with pytest.raises(BadTransfer, match=r"no connection \(.*refused.*check the connection"):
            download(url, tmp_path / "f.part")


LIMITED = """
import resource, sys
from pathlib import Path
from facepairs.data.lfw.fetch import RemoteFile, fetch_lists
from facepairs.errors import BadTransfer
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    fetch_lists(Path(sys.argv[2]), [RemoteFile("f", sys.argv[1], "0" * 64)])
except BadTransfer as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs setrlimit")
def test_a_disk_that_becomes_full_is_reported_and_the_part_kept(
    remote: Remote, tmp_path: Path
) -> None:
    remote.files["f"] = BODY
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, f"{remote.url}/f", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"cannot write {tmp_path}")
    assert (tmp_path / "f.part").stat().st_size <= 100_000
    assert download(f"{remote.url}/f", tmp_path / "f.part").read_bytes() == BODY
    assert remote.asked[-1][1].startswith("bytes=")
