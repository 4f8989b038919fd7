"""Precomputed features are those of the backbone, in memory, in a file and across processes."""

import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from drawn.crop_plans import whole_plan

from facepairs.data.index import FaceIndex
from facepairs.errors import BadData, BadImage
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.support.console import showing
from facepairs.training import features
from facepairs.training.cluster import Cluster
from facepairs.training.distributed import DistributedContext
from facepairs.training.features import precompute


class MeanColour:
    """A backbone whose features are the mean colour and its negative."""

    feature_count = 6

    def features(self, pixels):
        mean = tf.reduce_mean(tf.cast(pixels, tf.float32), axis=[1, 2])
        return tf.cast(tf.concat([mean, -mean], axis=1), tf.float16)


@pytest.fixture(scope="module")
def index(faces):
    return FaceIndex.scan(faces)


@pytest.fixture(scope="module")
def images(index):
    return MemoryStore.build(index, whole_plan(index, 64))


@pytest.fixture(scope="module")
def expected(index, images):
    return MeanColour().features(images.gather(tf.range(len(index)))).numpy()


def build(index, images, path, **options):
    return precompute(MeanColour(), images, len(index), path, **options)


@pytest.fixture
def no_memory(monkeypatch):
    monkeypatch.setattr(features, "SHARE_OF_FREE_MEMORY", 0)


def test_features_in_memory_are_those_of_every_image(index, images, expected, tmp_path):
    calls = []
    with showing(progress=lambda _: lambda *counts: calls.append(counts)):
        store = build(index, images, tmp_path / "v.npy")
    assert not list(tmp_path.iterdir())
    assert np.array_equal(store.rows, expected)
    assert np.array_equal(store.gather(tf.constant([3, 90, 3])), expected[[3, 90, 3]])
    assert calls == [(64, 96), (96, 96)]


def test_features_from_the_files_store_are_the_same(index, expected, tmp_path):
    store = build(index, FileStore(index, whole_plan(index, 64)), tmp_path / "v.npy")
    assert np.array_equal(store.rows, expected)


def test_without_memory_features_are_in_a_file_that_is_reused(
    index, images, expected, tmp_path, no_memory
):
    path = tmp_path / "v.npy"
    assert np.array_equal(build(index, images, path).rows, expected)
    assert np.array_equal(np.load(path), expected)
    before = path.stat().st_mtime_ns
    assert np.array_equal(build(index, images, path).rows, expected)
    assert path.stat().st_mtime_ns == before
    np.save(path, expected[:-1])  # another shape
    assert np.array_equal(build(index, images, path).rows, expected)


def test_the_error_names_a_folder_that_cannot_be_created(index, images, tmp_path, no_memory):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(BadData):
        build(index, images, tmp_path / "file" / "v.npy")


def test_the_error_names_an_undecodable_image(faces, tmp_path):
    root = shutil.copytree(faces, tmp_path / "faces")
    index = FaceIndex.scan(root)
    store = FileStore(index, whole_plan(index, 64))
    index.path(70).write_bytes(b"damaged since it was inspected")
    with pytest.raises(BadImage, match=re.escape(index.name(70))):
        build(index, store, tmp_path / "v.npy")


class Worker(DistributedContext):
    """A worker that exchanges arrays with others in threads of one process."""

    def __init__(self, number, count, add):
        super().__init__(cluster=Cluster(number, count))
        self.add = add

    def sum(self, values, dtype=np.float64):
        return self.add(np.asarray(values, dtype))


class Exchange:
    """Sums the arrays of several threads; `rows` counts how many of them computed each row."""

    def __init__(self, count):
        self.barrier = threading.Barrier(count, timeout=60)
        self.arrays = [None] * count
        self.rows = []

    def worker(self, number):
        def add(features):
            self.arrays[number] = features
            self.barrier.wait()
            total = sum(self.arrays)
            if number == 0:
                self.rows.append(sum(np.any(one, axis=1).astype(int) for one in self.arrays))
            self.barrier.wait()
            return total

        return Worker(number, len(self.arrays), add)


@pytest.mark.parametrize(("batch", "count"), [(64, 2), (64, 3), (20, 2), (16, 4)])
def test_processes_that_share_the_work_get_the_features_of_one_process(
    index, images, expected, tmp_path, monkeypatch, batch, count
):
    monkeypatch.setattr(features, "BATCH", batch)
    exchange, rounds = Exchange(count), [0] * count

    def one(number):
        def count_round():
            rounds[number] += 1

        path, context = tmp_path / f"{number}.npy", exchange.worker(number)
        return build(index, images, path, context=context, after_round=count_round)

    with ThreadPoolExecutor(count) as pool:
        for store in pool.map(one, range(count)):
            assert np.array_equal(store.rows, expected)
    computed = np.concatenate(exchange.rows)
    assert computed[: len(index)].tolist() == [1] * len(index)  # by exactly one process
    assert not computed[len(index) :].any()
    assert rounds == [-(-96 // (batch * count))] * count


def test_processes_share_features_that_exceed_the_memory(
    index, images, expected, tmp_path, no_memory
):
    exchange = Exchange(2)

    def one(number):
        path = tmp_path / str(number) / "v.npy"
        return build(index, images, path, context=exchange.worker(number))

    with ThreadPoolExecutor(2) as pool:
        for store in pool.map(one, range(2)):
            assert np.array_equal(store.rows, expected)
