"""Every store returns the sampler's pairs, and the array in memory is kept in a file."""

import re
import shutil

import numpy as np
import pytest
from drawn.crop_plans import face_plan, turned_plan, whole_plan

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadImage
from facepairs.images.crop import CropSpec, load_crop
from facepairs.images.photo import open_photo
from facepairs.pipeline.dataset import image_batches, make_dataset
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.support.console import showing

CROP = 112


@pytest.fixture(scope="module")
def index(few_faces):
    return FaceIndex.scan(few_faces)


@pytest.mark.parametrize("plan_of", [whole_plan, face_plan])
def test_every_store_returns_the_samplers_pairs_and_the_crops_of_the_plan(index, tmp_path, plan_of):
    plan = plan_of(index, CROP)
    sampler = PairSampler(index.first, range(len(index.people)), 3)
    block = sampler.block(0, 0, 20)  # two whole batches and a short one
    stores = (
        FileStore(index, plan),
        MemoryStore.build(index, plan),
        MemoryStore.build(index, plan, tmp_path / "store.npy"),
    )
    for store in stores:
        batches = list(make_dataset(store, lambda: iter([block]), 8))
        assert [len(batch["genuine"]) for batch in batches] == [8, 8, 4]
        genuine = np.concatenate([batch["genuine"].numpy() for batch in batches])
        assert np.array_equal(genuine, block.genuine)
        pixels = [store.gather(batch["images"]).numpy() for batch in batches]
        left, right = (
            np.concatenate(sides)
            for sides in zip(*(np.split(part, 2) for part in pixels), strict=True)
        )
        for crops, images in ((left, block.left), (right, block.right)):
            assert (crops.shape, crops.dtype) == ((20, CROP, CROP, 3), np.uint8)
            expected = [plan.crop(open_photo(index.path(i)), i) for i in images.tolist()]
            distance = np.abs(crops.astype(int) - np.array(expected)).mean(axis=(1, 2, 3))
            assert distance.max() < (1 if plan.to_crop is not None else 1e-9)


def test_the_array_is_cached_and_mapped_again(index, tmp_path):
    plan = whole_plan(index, CROP)
    path = tmp_path / "store.npy"
    calls = []
    with showing(progress=lambda _: lambda *counts: calls.append(counts)):
        MemoryStore.build(index, plan, path)
    assert calls[-1] == (len(index), len(index))
    assert [p.name for p in tmp_path.iterdir()] == ["store.npy"]
    changed = path.stat().st_mtime_ns
    with showing(progress=lambda _: pytest.fail("built again")):
        again = MemoryStore.build(index, plan, path)
    assert path.stat().st_mtime_ns == changed
    assert np.array_equal(
        again.gather(np.array([5])).numpy()[0], load_crop(index.path(5), CropSpec(250, CROP))
    )
    path.write_bytes(path.read_bytes()[:-1])  # truncated: built again, not trusted
    messages = []
    with showing(messages.append):
        whole = MemoryStore.build(index, plan, path)
    assert whole.gather(np.array([len(index) - 1])).numpy().any()
    assert messages == [f"{path}: damaged (its checksum does not fit); it is built again"]


@pytest.mark.parametrize("plan_of", [whole_plan, turned_plan])
@pytest.mark.parametrize("content", [b"damaged since", b""])
def test_an_undecodable_image_raises_bad_data_with_its_name_and_leaves_no_file(
    tmp_path, few_faces, plan_of, content
):
    root = shutil.copytree(few_faces, tmp_path / "faces")
    index = FaceIndex.scan(root)
    plan = plan_of(index, CROP)
    index.path(20).write_bytes(content)
    with pytest.raises(BadImage, match=re.escape(index.name(20))):
        MemoryStore.build(index, plan, tmp_path / "store.npy")
    assert [p.name for p in tmp_path.iterdir()] == ["faces"]


def test_autotune_is_off_because_the_end_of_an_iterator_waits_for_its_thread(index):
    store = FileStore(index, whole_plan(index, CROP))
    block = PairSampler(index.first, range(len(index.people)), 3).block(0, 0, 8)
    for dataset in (
        make_dataset(store, lambda: iter([block]), 8),
        make_dataset(store, lambda: iter([block]), 8).take(1),
        image_batches(store, np.arange(4), 2),
    ):
        assert dataset.options().autotune.enabled is False
