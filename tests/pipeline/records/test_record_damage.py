"""Every changed byte and every truncation of a cache is found, and never trained on."""

import pytest
import tensorflow as tf
from drawn.caches import build
from drawn.crop_plans import whole_plan
from drawn.photos import noise_photos

from facepairs.data.index import FaceIndex
from facepairs.errors import BadData
from facepairs.pipeline.records.store import RecordStore

SHARD = "pairs-00001-of-00002.tfrecord"


@pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.slow)])
def test_changed_bytes_and_truncations_are_reported_and_never_trained_on(tmp_path, step):
    for person in range(4):
        noise_photos(tmp_path / "faces" / f"P{person}", 2, (8, 8))
    index = FaceIndex.scan(tmp_path / "faces")
    plan = whole_plan(index, 4, 8)
    cache = build(tmp_path / "cache", index, plan, pairs=6, encoding="raw", shards=2)
    path = cache / SHARD
    whole = path.read_bytes()
    reading = RecordStore.open(cache).batches(3, None).take(2)
    for at in range(0, len(whole), step):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with pytest.raises(tf.errors.OpError):
            list(reading)
    path.write_bytes(whole)
    assert len(list(reading)) == 2

    for size in range(0, len(whole), step):
        path.write_bytes(whole[:size])
        with pytest.raises(BadData, match=SHARD):
            RecordStore.open(cache)
        with pytest.raises(tf.errors.OpError):
            list(reading)
