"""Drawn photos and pair caches of them, made once."""

import shutil
from pathlib import Path

import pytest
from drawn.caches import build, draw

from facepairs.data.index import FaceIndex


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> FaceIndex:
    """Eight people with one to three photos; one is a PNG, one larger than the others."""
    root = tmp_path_factory.mktemp("records") / "faces"
    for person in range(8):
        for photo in range(1 + person % 3):
            draw(root / f"Pérson_{person}" / f"{photo}.jpg", 10 * person + photo)
    draw(root / "Zed" / "1.png", 991)
    draw(root / "Zed" / "2.jpg", 992, (60, 50))
    return FaceIndex.scan(root)


@pytest.fixture(scope="session")
def built(index: FaceIndex, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that no test changes."""
    return build(tmp_path_factory.mktemp("caches") / "cache", index)


@pytest.fixture
def cache(built: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(built, tmp_path / "cache"))
