"""Building a pair cache on remote storage; tests/cli/test_cache.py compares the bytes."""

from pathlib import Path

import pytest

pytest.importorskip("apache_beam")

from drawn_caches import draw
from memory_files import FILES

from facepairs.beam.checks import check_remote_cache
from facepairs.beam.pair_cache import build_remote_cache
from facepairs.beam.paths import parse_place
from facepairs.errors import BadData
from facepairs.pipeline.records.manifest import MANIFEST
from facepairs.pipeline.records.shard import ShardWriter
from facepairs.support.parallel import thread_map

SETTINGS = {"model": "difference"}


@pytest.fixture
def photos(tmp_path: Path):
    for person in range(16):
        for photo in range(2):
            draw(tmp_path / f"Person_{person:02}" / f"{photo}.jpg", 2 * person + photo, (250, 250))
    FILES.clear()
    yield tmp_path
    FILES.clear()


def test_a_failed_build_removes_the_remote_cache(photos):
    out = parse_place("mem://bucket/cache")
    build_remote_cache(photos, out, 40, "jpeg", 2, SETTINGS, None)
    assert f"{out}/{MANIFEST}" in FILES
    assert check_remote_cache(out) == []

    def damaging_map(work, items):
        if isinstance(work, ShardWriter):
            for photo in photos.rglob("*.jpg"):
                photo.write_bytes(b"another photo")
        return thread_map(work, items)

    with pytest.raises(BadData, match="changed since the folder was read"):
        build_remote_cache(photos, out, 40, "jpeg", 2, SETTINGS, None, ordered_map=damaging_map)
    assert dict(FILES) == {}


def test_errors_name_the_remote_folders(photos):
    with pytest.raises(BadData, match=r"^mem://bucket/none: no images"):
        build_remote_cache(
            parse_place("mem://bucket/none"), photos / "cache", 40, "jpeg", 2, SETTINGS, None
        )
    (photos / "Person_03" / "0.jpg").write_bytes(b"no photo")
    for path in photos.rglob("*.jpg"):
        FILES[f"mem://bucket/photos/{path.relative_to(photos)}"] = path.read_bytes()
    remote = parse_place("mem://bucket/photos")
    with pytest.raises(BadData, match=r"^mem://bucket/photos/Person_03/0.jpg: is not an image"):
        build_remote_cache(remote, parse_place("mem://bucket/c"), 40, "jpeg", 2, SETTINGS, None)
    FILES["mem://bucket/taken/notes.txt"] = b""
    with pytest.raises(BadData, match=r"^mem://bucket/taken: exists and is no pair cache"):
        build_remote_cache(remote, parse_place("mem://bucket/taken"), 40, "jpeg", 2, SETTINGS, None)
