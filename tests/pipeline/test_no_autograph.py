"""AutoGraph must not translate our functions: its files stay behind when training is killed."""

import tempfile

import numpy as np
from drawn.crop_plans import face_plan

from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import PairSampler
from facepairs.pipeline.dataset import image_batches, make_dataset
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.pipeline.records.build import CachePlan, build_cache
from facepairs.pipeline.records.store import RecordStore

CROP_PX = 64


def test_no_store_writes_generated_code(few_faces, tmp_path, monkeypatch):
    index = FaceIndex.scan(few_faces)
    plan = face_plan(index, CROP_PX)
    sampler = PairSampler(index.first, np.arange(len(index.people)), 0)
    build_cache(tmp_path / "cache", CachePlan(index, plan, sampler, 24, shards=2))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    stores = (
        FileStore(index, plan),
        MemoryStore.build(index, plan, tmp_path / "store.npy"),
    )
    block = PairList.of(np.arange(8), np.arange(8, 16), np.arange(8) % 2 == 0)
    for store in stores:
        for batches in (
            image_batches(store, np.arange(10), 4),
            make_dataset(store, lambda: iter([block]), 4),
        ):
            assert len(list(batches)) > 1
    cached = RecordStore.open(tmp_path / "cache").batches(6, 1).take(4)
    assert len(list(cached)) == 4
    assert list(scratch.iterdir()) == []
