"""Downloads are whole and as published, or refused by name; broken-off ones go on."""

import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from storage.archives import tree
from storage.file_server import Remote, serving, sha256

from facepairs.data.download import downloaded
from facepairs.errors import BadConfig, BadData, BadTransfer
from facepairs.support.console import showing

BODY = hashlib.shake_256(b"body").digest(300_000)


@pytest.fixture
def remote() -> Iterator[Remote]:
    with serving() as server:
        server.files["f"] = BODY
        yield server


def fetch(remote: Remote, target: Path, **options: object) -> None:
    with downloaded(f"{remote.url}/f", target, [sha256(BODY)], **options) as part:
        part.replace(target)


def begin(remote: Remote, target: Path, content: bytes) -> Path:
    """Break off a download, and put something into its part."""
    remote.cut_after = [0]
    with pytest.raises(BadTransfer):
        fetch(remote, target)
    (part,) = target.parent.glob(f".{target.name}.*.part")
    part.write_bytes(content)
    remote.ranges.clear()
    return part


@pytest.mark.parametrize("tells_length", [True, False])
def test_a_server_need_not_state_the_length(
    remote: Remote, tmp_path: Path, tells_length: bool
) -> None:
    remote.tells_length = tells_length
    steps: list[tuple[int, int]] = []
    remote.files["f"] = 10 * BODY
    with (
        showing(progress=lambda _: lambda *step: steps.append(step)),
        downloaded(f"{remote.url}/f", tmp_path / "new" / "f") as part,
    ):
        part.replace(tmp_path / "new" / "f")
    assert tree(tmp_path) == {"new/f": 10 * BODY}
    assert steps[-1] == (2, 2)  # MB
    assert steps[0] == ((0, 2) if tells_length else (0, 0))


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_broken_off_download_goes_on(remote: Remote, tmp_path: Path, knows_ranges: bool) -> None:
    remote.cut_after, remote.knows_ranges = [100_000, 50_000, 0], knows_ranges
    for done in (100_000, 150_000 if knows_ranges else 50_000, 150_000 if knows_ranges else 0):
        with pytest.raises(
            BadTransfer, match=f"broke off after {done:,} of 300,000 bytes; .*again"
        ):
            fetch(remote, tmp_path / "f")
    fetch(remote, tmp_path / "f")
    assert tree(tmp_path) == {"f": BODY}
    kept = [None, 100_000, 150_000, 150_000] if knows_ranges else [None, 100_000, 50_000, None]
    assert remote.ranges == [at and f"bytes={at}-" for at in kept]


def test_a_download_that_was_killed_at_its_end_is_not_repeated(
    remote: Remote, tmp_path: Path
) -> None:
    begin(remote, tmp_path / "f", BODY)
    fetch(remote, tmp_path / "f")
    assert tree(tmp_path) == {"f": BODY}
    assert remote.ranges == ["bytes=300000-"]


def test_what_began_as_another_file_is_dropped(remote: Remote, tmp_path: Path) -> None:
    begin(remote, tmp_path / "f", BODY + b"more")  # longer than the file
    fetch(remote, tmp_path / "f")
    assert remote.ranges == ["bytes=300004-", None]
    (tmp_path / "f").unlink()
    begin(remote, tmp_path / "f", b"other")
    with pytest.raises(BadTransfer):
        fetch(remote, tmp_path / "f")
    assert tree(tmp_path) == {}


def test_each_source_has_a_part_of_its_own(remote: Remote, tmp_path: Path) -> None:
    part = begin(remote, tmp_path / "f", BODY[:70])
    remote.files["mirror"] = b"another"
    for url, sums in ((f"{remote.url}/mirror", [sha256(b"another")]), (f"{remote.url}/f", [])):
        with downloaded(url, tmp_path / "f", sums):
            pass
    assert tree(tmp_path) == {part.name: BODY[:70]}
    fetch(remote, tmp_path / "f")
    assert remote.ranges == [None, None, "bytes=70-"]
    assert tree(tmp_path) == {"f": BODY}


def test_another_checksum_is_named_and_nothing_kept(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"] = b"tampered"
    with pytest.raises(BadTransfer) as caught:
        fetch(remote, tmp_path / "f")
    assert all(part in str(caught.value) for part in (sha256(BODY), sha256(b"tampered"), " 8 "))
    assert tree(tmp_path) == {}


def test_what_the_block_refuses_is_not_kept_and_what_fails_is(
    remote: Remote, tmp_path: Path
) -> None:
    for error, kept in ((BadTransfer("no archive"), []), (OSError("full"), [BODY])):
        with pytest.raises(type(error)), downloaded(f"{remote.url}/f", tmp_path / "f"):
            raise error
        assert list(tree(tmp_path).values()) == kept


@pytest.mark.parametrize("tells_length", [True, False])
@pytest.mark.parametrize("size", [len(BODY) - 1, len(BODY) + 1])
def test_a_file_of_another_size_is_refused(
    remote: Remote, tmp_path: Path, tells_length: bool, size: int
) -> None:
    remote.tells_length = tells_length
    with pytest.raises(BadTransfer, match=f"300,000 bytes, not {size:,}"):
        fetch(remote, tmp_path / "f", size=size)
    assert tree(tmp_path) == {}
    fetch(remote, tmp_path / "f", size=len(BODY))


def test_a_page_in_place_of_the_file_leaves_what_has_come(remote: Remote, tmp_path: Path) -> None:
    part = begin(remote, tmp_path / "f", BODY[:70])
    remote.files["f"], remote.knows_ranges = b"<html>", False
    with pytest.raises(BadTransfer, match="6 bytes, not 300,000"):
        fetch(remote, tmp_path / "f", size=len(BODY))
    assert tree(tmp_path) == {part.name: BODY[:70]}


def test_a_file_far_too_large_is_refused(remote: Remote, tmp_path: Path) -> None:
    remote.lengths = [2**31 + 1, 2**31]
    with pytest.raises(BadTransfer, match="larger than 2,147,483,648"):
        fetch(remote, tmp_path / "f")
    assert tree(tmp_path) == {}
    with pytest.raises(BadTransfer, match="broke off"):  # as large as may be
        fetch(remote, tmp_path / "f")


def test_a_file_that_the_disk_cannot_hold_unpacked_is_not_begun(
    remote: Remote, tmp_path: Path
) -> None:
    with pytest.raises(BadData) as caught:
        fetch(remote, tmp_path / "f", unpacked_bytes=10**17)
    assert caught.value.message.startswith(f"{tmp_path}: 100,000,000,000.3 MB are needed and ")
    assert not any(word in caught.value.message for word in ("http", "proxy", "network", "stopped"))
    assert tree(tmp_path) == {}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_disk_that_fills_meanwhile_is_named(remote: Remote, tmp_path: Path) -> None:
    part = begin(remote, tmp_path / "f", b"")
    part.unlink()
    part.symlink_to("/dev/full")
    with pytest.raises(BadData) as caught:
        fetch(remote, tmp_path / "f")
    assert caught.value.message == (
        f"{tmp_path}: No space left on device; free space or choose another folder, then run the "
        "command again"
    )


@pytest.mark.parametrize(
    ("status", "advice"),
    [(403, "address"), (404, "address"), (416, "address"), (500, "later"), (503, "later")],
)
def test_what_the_server_refuses_is_reported(
    remote: Remote, tmp_path: Path, status: int, advice: str
) -> None:
    remote.statuses = [status]
    with pytest.raises(BadTransfer, match=f"{status}.*{advice}"):
        fetch(remote, tmp_path / "f")
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("by_proxy", [False, True])
def test_a_refused_connection_is_reported(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_proxy: bool
) -> None:
    begun = begin(remote, tmp_path / "f", BODY[:70]) if by_proxy else None
    with socket.socket() as held:  # bound but not listening: nobody else can take the port
        held.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{held.getsockname()[1]}"
        if by_proxy:
            monkeypatch.setenv("http_proxy", f"http://user:secret@{place}")
        else:
            remote.url = f"http://{place}"
        with pytest.raises(BadTransfer) as caught:
            fetch(remote, tmp_path / "f")
    via, after, more = (
        (f" through the proxy {place}", " after 70 bytes", ": it goes on where it stopped")
        if begun
        else ("", "", "")
    )
    assert caught.value.message == (
        f"{remote.url}/f{via}: Connection refused{after}; check the network"
        f"{' and the proxy' if begun else ''}, then run the command again{more}"
    )


def test_the_proxy_of_the_environment_is_asked(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.files["http://publisher.invalid/f"] = BODY
    monkeypatch.setenv("http_proxy", remote.url)
    with downloaded("http://publisher.invalid/f", tmp_path / "f") as part:
        assert part.read_bytes() == BODY
    assert remote.asked == ["http://publisher.invalid/f"]


@pytest.mark.parametrize(
    "address",
    ["http://[::1/f", "http://127.0.0.1/é", "http://h:port/f", "http://127.0.0.1:0/f", "http://"],
)
def test_what_cannot_be_an_address_is_refused(tmp_path: Path, address: str) -> None:
    refused = pytest.raises(BadTransfer, match="cannot be an address")
    with refused, downloaded(address, tmp_path / "f"):
        pass
    assert tree(tmp_path) == {}


def test_an_address_of_another_kind_and_a_place_in_use_are_refused(
    remote: Remote, tmp_path: Path
) -> None:
    with pytest.raises(BadConfig), downloaded(f"file://{tmp_path}", tmp_path / "f"):
        pass
    with (
        downloaded(f"{remote.url}/f", tmp_path / "f"),
        pytest.raises(BadData, match="in use"),
        downloaded(f"{remote.url}/f", tmp_path / "f"),
    ):
        pass
