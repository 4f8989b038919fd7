"""Every changed byte and every truncation of a cache is found, and never trained on."""

import numpy as np
import pytest
import tensorflow as tf
from drawn.crop_plans import whole_plan
from PIL import Image

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadData
from facepairs.pipeline.records import build
from facepairs.pipeline.records.build import CachePlan, build_cache
from facepairs.pipeline.records.store import RecordStore

SHARD = "pairs-00001-of-00002.tfrecord"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Six pairs of crops of 4 by 4 pixels, in two shards."""
    for person in range(4):
        for photo in range(2):
            path = tmp_path / "faces" / f"P{person}" / f"{photo}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            colours = np.random.default_rng([person, photo]).integers(0, 256, (8, 8, 3), np.uint8)
            Image.fromarray(colours).save(path)
    index = FaceIndex.scan(tmp_path / "faces")
    plan = whole_plan(index, 4, 8)
    sampler = PairSampler(index.first, range(4), 0)
    monkeypatch.setattr(build, "SMALL_SHARD_PAIRS", 3)
    build_cache(tmp_path / "cache", CachePlan(index, plan, sampler, 6))
    return tmp_path / "cache"


@pytest.mark.parametrize("step", [131, pytest.param(1, marks=pytest.mark.slow)])
def test_changed_bytes_are_reported_and_never_trained_on(cache, step):
    path = cache / SHARD
    whole = path.read_bytes()
    reading = RecordStore.open(cache).batches(3, None).take(2)
    for at in range(0, len(whole), step):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with pytest.raises(tf.errors.OpError):
            list(reading)
    path.write_bytes(whole)
    assert len(list(reading)) == 2


@pytest.mark.parametrize("step", [131, pytest.param(1, marks=pytest.mark.slow)])
def test_truncations_are_reported_and_never_trained_on(cache, step):
    path = cache / SHARD
    whole = path.read_bytes()
    reading = RecordStore.open(cache).batches(3, None).take(2)
    for size in range(0, len(whole), step):
        path.write_bytes(whole[:size])
        with pytest.raises(BadData, match=SHARD):
            RecordStore.open(cache)
        with pytest.raises(tf.errors.OpError):
            list(reading)


def test_a_link_to_nothing_is_a_finding(cache, tmp_path):
    shard = min(cache.glob("*.tfrecord*"))
    shard.unlink()
    shard.symlink_to(tmp_path / "gone")
    with pytest.raises(BadData, match=shard.name):
        RecordStore.open(cache)
    with pytest.raises(BadData, match="absent"):
        RecordStore.open(tmp_path / "absent")
