"""Building a pair cache on remote storage; tests/cli/test_cache.py compares the bytes."""

from pathlib import Path

import pytest

pytest.importorskip("apache_beam")

from drawn.caches import draw
from storage.memory_files import FILES

from facepairs.beam import build_cache
from facepairs.beam.build_cache import build_cache_at, upload_shard
from facepairs.choices import PHOTO_CACHE
from facepairs.config import TrainConfig
from facepairs.errors import BadData, BadImage
from facepairs.pipeline.records.manifest import MANIFEST
from facepairs.support.parallel import thread_map

CONFIG = TrainConfig(model="difference", align="none").resolve()


@pytest.fixture
def photos(tmp_path: Path):
    for person in range(16):
        for photo in range(3):
            draw(tmp_path / f"Person_{person:02}" / f"{photo}.jpg", 3 * person + photo, (250, 250))
    FILES.clear()
    yield tmp_path
    FILES.clear()


def build(data, out):
    build_cache_at(str(data), str(out), CONFIG, 40)


def test_a_failed_build_removes_the_remote_cache(photos, monkeypatch):
    out = "mem://bucket/cache"
    build(photos, out)
    assert f"{out}/{MANIFEST}" in FILES

    def damaging_map(work, items):
        if getattr(work, "func", None) is upload_shard:
            for photo in photos.rglob("*.jpg"):
                photo.write_bytes(b"another photo")
        return thread_map(work, items)

    monkeypatch.setattr(build_cache, "make_ordered_map", lambda runner, options: damaging_map)
    with pytest.raises(BadImage):
        build(photos, out)
    assert dict(FILES) == {}


def test_a_runner_keeps_nothing(photos, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(build_cache, "make_ordered_map", lambda runner, options: thread_map)
    place = tmp_path_factory.mktemp("place")
    out, kept = place / "cache", place / "photos.sqlite"
    monkeypatch.setenv(PHOTO_CACHE, str(kept))
    build_cache_at(str(photos), str(out), CONFIG, 40, runner="DirectRunner")
    assert (out / MANIFEST).exists()
    assert not kept.exists()


def test_errors_name_the_remote_folders(photos):
    with pytest.raises(BadData, match=r"^mem://bucket/none: no images"):
        build("mem://bucket/none", photos / "cache")
    for path in photos.rglob("*.jpg"):
        FILES[f"mem://bucket/photos/{path.relative_to(photos)}"] = path.read_bytes()
    FILES["mem://bucket/photos/Person_03/0.jpg"] = b"no photo"
    with pytest.raises(BadData, match=r"^mem://bucket/photos/Person_03/0.jpg: not a JPEG"):
        build("mem://bucket/photos", "mem://bucket/cache")
    FILES["mem://bucket/taken/notes.txt"] = b""
    with pytest.raises(BadData, match=r"^mem://bucket/taken: exists and is not a pair cache"):
        build("mem://bucket/photos", "mem://bucket/taken")
