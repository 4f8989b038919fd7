"""Downloads resume, check what they resume, and name every failure."""

import hashlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from storage.range_server import Remote, serving, sha256

from facepairs.data.lfw.download import MAX_ATTEMPTS, download
from facepairs.errors import BadTransfer

BODY = hashlib.shake_256(b"body").digest(300_000)


@pytest.fixture(autouse=True)
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the second attempt follow the first at once."""
    monkeypatch.setattr("facepairs.data.lfw.download.FIRST_WAIT_S", 0.0)


@pytest.fixture
def remote() -> Iterator[Remote]:
    with serving() as server:
        yield server


@pytest.mark.parametrize("validator", ["etag", "modified", "none"])
def test_an_interrupted_transfer_resumes_where_it_stopped(
    remote: Remote, tmp_path: Path, validator: str
) -> None:
    remote.files["f"] = BODY
    remote.cut_after = [100_000, 50_000]
    remote.etag = None if validator == "etag" else ""
    remote.modified = "Mon, 01 Jan 2007 00:00:00 GMT" if validator == "modified" else ""
    part = download(f"{remote.url}/f", tmp_path / "f")
    assert part.read_bytes() == BODY
    assert remote.asked == [
        ("f", "", 100_000),
        ("f", "bytes=100000-", 50_000),
        ("f", "bytes=150000-", 150_000),
    ]
    expected = {"etag": f'"{sha256(BODY)[:12]}"', "modified": remote.modified, "none": ""}
    assert remote.if_range[1:] == [expected[validator]] * 2
    assert [path.name for path in tmp_path.iterdir()] == ["f.part"]


def test_the_next_run_resumes_after_a_kill(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"] = BODY

    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(f"{remote.url}/f", tmp_path / "f", stop)
    have = (tmp_path / "f.part").stat().st_size
    assert 0 <= have < len(BODY)
    (tmp_path / "f.part").write_bytes(BODY[:1000])
    assert download(f"{remote.url}/f", tmp_path / "f").read_bytes() == BODY
    assert remote.asked[-1] == ("f", "bytes=1000-", len(BODY) - 1000)


def test_a_weak_etag_is_not_sent_as_if_range(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"], remote.etag, remote.cut_after = BODY, 'W/"1"', [10]
    assert download(f"{remote.url}/f", tmp_path / "f").read_bytes() == BODY
    assert remote.if_range == ["", ""]


def test_a_server_without_ranges_sends_the_whole_file_again(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"], remote.ranges, remote.cut_after = BODY, False, [100_000]
    assert download(f"{remote.url}/f", tmp_path / "f").read_bytes() == BODY
    assert remote.asked == [("f", "", 100_000), ("f", "bytes=100000-", len(BODY))]


@pytest.mark.parametrize("etag", [None, ""])
def test_a_file_that_has_changed_is_downloaded_from_its_start(
    remote: Remote, tmp_path: Path, etag: str | None
) -> None:
    remote.files["f"], remote.etag = BODY, etag
    remote.cut_after, remote.statuses = [1000], [200, 404]
    with pytest.raises(BadTransfer):
        download(f"{remote.url}/f", tmp_path / "f")
    remote.files["f"] = BODY[::-1] + b"longer"
    assert download(f"{remote.url}/f", tmp_path / "f").read_bytes() == (BODY[::-1] + b"longer")


@pytest.mark.parametrize("length", [500, 300_000, 300_001])
def test_a_complete_or_too_long_part_ends_as_the_whole_file(
    remote: Remote, tmp_path: Path, length: int
) -> None:
    remote.files["f"] = BODY
    url = f"{remote.url}/f"
    (tmp_path / "f.part").write_bytes((BODY + b"x")[:length])
    state = {"url": url, "validator": "", "total": 0}
    (tmp_path / "f.part.json").write_text(json.dumps(state))
    assert download(url, tmp_path / "f").read_bytes() == BODY


def test_a_complete_part_is_not_requested_again(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"], remote.ranges = BODY, False
    url = f"{remote.url}/f"
    (tmp_path / "f.part").write_bytes(BODY)
    state = {"url": url, "validator": "", "total": len(BODY)}
    (tmp_path / "f.part.json").write_text(json.dumps(state))
    assert download(url, tmp_path / "f").read_bytes() == BODY
    assert remote.asked == []
    assert [path.name for path in tmp_path.iterdir()] == ["f.part"]


def test_a_file_far_too_large_is_refused_before_the_transfer(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("facepairs.data.lfw.download.MAX_BYTES", len(BODY) - 1)
    remote.files["f"] = BODY
    for copies in (1, 10**12):  # the reason is not the space on the disk
        with pytest.raises(BadTransfer, match=r"/f: 300,000 bytes are offered"):
            download(f"{remote.url}/f", tmp_path / "f", copies=copies)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("state", ["", "[]", "{}", '{"url": "http://other/", "total": 1}', "\0"])
def test_a_part_of_unknown_origin_is_not_resumed(
    remote: Remote, tmp_path: Path, state: str
) -> None:
    remote.files["f"] = BODY
    (tmp_path / "f.part").write_bytes(b"something else")
    (tmp_path / "f.part.json").write_text(state)
    assert download(f"{remote.url}/f", tmp_path / "f").read_bytes() == BODY
    assert remote.asked == [("f", "", len(BODY))]


def test_a_server_need_not_state_the_length(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"], remote.tells_length = BODY, False
    assert download(f"{remote.url}/f", tmp_path / "f").read_bytes() == BODY


def test_a_busy_server_is_asked_again(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"], remote.statuses = BODY, [503, 429, 500]
    assert download(f"{remote.url}/f", tmp_path / "f").read_bytes() == BODY
    assert len(remote.asked) == 4


def test_attempts_end_and_the_part_is_kept(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"], remote.ranges, remote.cut_after = BODY, False, [1000] * 99
    with pytest.raises(
        BadTransfer, match=r"ended after 1,000 of 300,000 .* \(1,000 bytes\) are kept"
    ):
        download(f"{remote.url}/f", tmp_path / "f")
    assert len(remote.asked) == MAX_ATTEMPTS
    assert (tmp_path / "f.part").read_bytes() == BODY[:1000]


def test_404_is_not_tried_again(remote: Remote, tmp_path: Path) -> None:
    with pytest.raises(BadTransfer, match=r"/f: the server answered 404 Not Found; check"):
        download(f"{remote.url}/f", tmp_path / "f")
    assert len(remote.asked) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_refused_connection_is_reported(tmp_path: Path) -> None:
    with socket.socket() as held:  # bound but not listening: nobody else can take the port
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/f"
        with pytest.raises(BadTransfer, match=r"no connection \(.*refused.*check the connection"):
            download(url, tmp_path / "f")


@pytest.mark.parametrize(
    "url", ["file:///etc/hosts", "ftp://127.0.0.1/f", "data:text/plain,x", "pairs.txt", "http:///f"]
)
def test_only_http_and_https_addresses_are_accepted(tmp_path: Path, url: str) -> None:
    with pytest.raises(BadTransfer, match="is not an http or https address"):
        download(url, tmp_path / "f")


@pytest.mark.parametrize("to", ["file:///etc/hosts", "ftp://127.0.0.1:1/f"])
def test_a_redirection_to_another_protocol_is_not_followed(
    remote: Remote, tmp_path: Path, to: str
) -> None:
    remote.redirect = to
    with pytest.raises(BadTransfer, match=r"302|redirects to ftp"):
        download(f"{remote.url}/f", tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


LIMITED = """
import resource, sys
from pathlib import Path
from facepairs.data.lfw.download import download
from facepairs.errors import BadTransfer
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    download(sys.argv[1], Path(sys.argv[2]))
except BadTransfer as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs setrlimit")
def test_a_disk_that_becomes_full_is_reported_and_the_part_kept(
    remote: Remote, tmp_path: Path
) -> None:
    remote.files["f"] = BODY
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, f"{remote.url}/f", str(tmp_path / "f")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"no room in {tmp_path}; free space")
    assert (tmp_path / "f.part").stat().st_size <= 100_000
    assert download(f"{remote.url}/f", tmp_path / "f").read_bytes() == BODY
    assert remote.asked[-1][1].startswith("bytes=")


def test_a_file_that_cannot_be_written_is_reported(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"] = BODY
    (tmp_path / "f.part").mkdir()
    with pytest.raises(BadTransfer, match=r"cannot write .*f\.part"):
        download(f"{remote.url}/f", tmp_path / "f")
