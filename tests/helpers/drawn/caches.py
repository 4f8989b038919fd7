"""Small pair caches of drawn photos, for the tests of what writes and what reads them."""

import os
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from PIL import Image

from drawn.crop_plans import whole_plan
from facepairs.data.index import FaceIndex
from facepairs.data.sampler import PairSampler
from facepairs.photos.crop import CropPlan
from facepairs.pipeline.records import build as records_build
from facepairs.pipeline.records.build import CachePlan, build_cache

FRAME_PX, CROP_PX = 40, 24
PAIRS, SHARDS, SEED, SHARE = 70, 4, 3, 0.4
SHARD = "pairs-00001-of-00004.tfrecord"
needs_posix = pytest.mark.skipif(os.name != "posix", reason="POSIX signals and limits")


def draw(path: Path, seed: int, size: tuple[int, int] = (FRAME_PX, FRAME_PX)) -> None:
    coarse = np.random.default_rng(seed).integers(0, 256, (5, 5, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(path, quality=90)


def cache_plan(index: FaceIndex, crops: CropPlan | None = None, **changes: Any) -> CachePlan:
    people = range(1, len(index.people))
    sampler = PairSampler(index.first, people, changes.pop("seed", SEED), SHARE)
    crops = crops or whole_plan(index, CROP_PX, FRAME_PX)
    return CachePlan(index, crops, sampler, **{"pairs": PAIRS, **changes})


def build(out: Path, index: FaceIndex, crops: CropPlan | None = None, **changes: Any) -> Path:
    """Write a small cache of several shards."""
    with mock.patch.object(records_build, "SMALL_SHARD_PAIRS", PAIRS // SHARDS):
        build_cache(out, cache_plan(index, crops, **changes))
    return out
