"""A server for the tests of this folder, with a gallery, and drawn people to send to it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from drawn.scenes import Place, canvas, drawn_faces, paste
from processes.live_server import LiveServer, live_server


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three drawn people, two photos each, in order."""
    return drawn_faces(tmp_path_factory.mktemp("people"))


@pytest.fixture(scope="session")
def group(people: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A photo of the first person, large, and the second, smaller."""
    picture = paste(canvas(640, 400), people[0], Place(200, 200, 300))
    path = tmp_path_factory.mktemp("group") / "group.jpg"
    paste(picture, people[2], Place(500, 230, 200)).save(path, quality=95)
    return path


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    place = tmp_path_factory.mktemp("gallery") / "known.gallery"
    with live_server("--gallery", place, "--rate", 0) as running:
        yield running


@pytest.fixture(scope="session")
def client(server: LiveServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as opened:
        yield opened
