"""Building a pair cache: what is refused, and what failures and kills leave behind."""

import pytest
from drawn.caches import CROP_PX, FRAME_PX, build, draw, needs_posix
from drawn.crop_plans import whole_plan

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadConfig, BadData, BadImage, NotEnough
from facepairs.pipeline.records.manifest import read_manifest


def test_only_a_cache_is_replaced(index, cache, tmp_path):
    build(cache, index, seed=9)
    assert read_manifest(cache).seed == 9
    (tmp_path / "empty").mkdir()
    build(tmp_path / "empty", index)
    photos = tmp_path / "photos"
    draw(photos / "Ann" / "1.jpg", 1)
    (cache / "notes.txt").touch()
    (tmp_path / "file").touch()
    for taken in (photos, cache, tmp_path / "file"):
        with pytest.raises(BadData, match=str(taken)):
            build(taken, index)
    assert (photos / "Ann" / "1.jpg").is_file()
    assert (cache / "notes.txt").is_file()


def test_invalid_arguments_are_refused(index, tmp_path):
    out = tmp_path / "c"
    for change in ({"pairs": 0}, {"seed": -1}):
        with pytest.raises(BadConfig, match="|".join(change)):
            build(out, index, **change)
    with pytest.raises(NotEnough):
        PairSampler(index.first, [1], 0)
    assert list(tmp_path.iterdir()) == []


def test_the_error_names_a_file_that_is_damaged_or_disappeared(tmp_path):
    root = tmp_path / "faces"
    for name in ("A/1", "B/1", "B/2", "C/1"):
        draw(root / f"{name}.jpg", len(name))
    index = FaceIndex.scan(root)
    plan = whole_plan(index, CROP_PX, FRAME_PX)
    (root / "B" / "2.jpg").write_bytes(b"\xff\xd8\xff not an image")
    with pytest.raises(BadImage, match=r"B/2\.jpg"):
        build(tmp_path / "c", FaceIndex.scan(root), plan)
    (root / "B" / "2.jpg").unlink()
    with pytest.raises(BadData, match=r"B/2\.jpg: No such file"):
        build(tmp_path / "c", index, plan)
    assert [entry.name for entry in tmp_path.iterdir()] == ["faces"]


@needs_posix
def test_a_full_disk_raises_bad_data_and_leaves_no_file(index, tmp_path):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, limits[1]))
    try:
        with pytest.raises(BadData):
            build(tmp_path / "c", index)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
