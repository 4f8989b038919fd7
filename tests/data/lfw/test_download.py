"""Downloads are whole or refused, and every failure is named."""

import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from storage.file_server import Remote, serving

from facepairs.data.lfw.fetch import download
from facepairs.errors import BadTransfer

BODY = hashlib.shake_256(b"body").digest(300_000)


@pytest.fixture
def remote() -> Iterator[Remote]:
    with serving() as server:
        yield server


@pytest.mark.parametrize("tells_length", [True, False])
def test_a_server_need_not_state_the_length(
    remote: Remote, tmp_path: Path, tells_length: bool
) -> None:
    remote.files["f"], remote.tells_length = BODY, tells_length
    download(f"{remote.url}/f", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == BODY


def test_a_transfer_that_ends_early_is_refused(remote: Remote, tmp_path: Path) -> None:
    remote.files["f"], remote.cut_after = BODY, [100_000]
    with pytest.raises(BadTransfer):
        download(f"{remote.url}/f", tmp_path / "f")


@pytest.mark.parametrize("tells_length", [True, False])
def test_a_file_far_too_large_is_refused(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tells_length: bool
) -> None:
    monkeypatch.setattr("facepairs.data.lfw.fetch.MAX_BYTES", len(BODY) - 1)
    remote.files["f"], remote.tells_length = BODY, tells_length
    with pytest.raises(BadTransfer):
        download(f"{remote.url}/f", tmp_path / "f")


@pytest.mark.parametrize("statuses", [[], [503]])
def test_what_the_server_refuses_is_reported(
    remote: Remote, tmp_path: Path, statuses: list[int]
) -> None:
    remote.statuses = statuses  # without one: 404
    with pytest.raises(BadTransfer):
        download(f"{remote.url}/f", tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


def test_a_refused_connection_is_reported(tmp_path: Path) -> None:
    with socket.socket() as held:  # bound but not listening: nobody else can take the port
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/f"
        with pytest.raises(BadTransfer):
            download(url, tmp_path / "f")
