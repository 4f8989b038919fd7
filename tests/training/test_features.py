"""Precomputed features are those of the backbone, also across processes."""

import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from drawn.crop_plans import whole_plan

from facepairs.data.index import FaceIndex
from facepairs.errors import BadImage, NotEnough
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.support.console import showing
from facepairs.training import fisher
from facepairs.training.cluster import Cluster
from facepairs.training.distributed import DistributedContext
from facepairs.training.fisher import precompute


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
    return MeanColour().features(images.rows).numpy()


def build(index, images, **options):
    return precompute(MeanColour(), images, len(index), **options)


def test_features_in_memory_are_those_of_every_image(index, images, expected):
    calls = []
    with showing(progress=lambda _: lambda *counts: calls.append(counts)):
        store = build(index, images)
    assert np.array_equal(store.rows, expected)
    assert calls == [(64, 96), (96, 96)]


def test_features_from_the_files_store_are_the_same(index, expected):
    store = build(index, FileStore(index, whole_plan(index, 64)))
    assert np.array_equal(store.rows, expected)


def test_features_that_exceed_the_memory_are_refused(index, images):
    backbone = MeanColour()
    backbone.feature_count = 10**12
    with pytest.raises(NotEnough):
        precompute(backbone, images, len(index))


def test_the_error_names_an_undecodable_image(faces, tmp_path):
    root = shutil.copytree(faces, tmp_path / "faces")
    index = FaceIndex.scan(root)
    store = FileStore(index, whole_plan(index, 64))
    index.path(70).write_bytes(b"damaged since it was inspected")
    with pytest.raises(BadImage, match=re.escape(index.name(70))):
        build(index, store)


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
    index, images, expected, monkeypatch, batch, count
):
    monkeypatch.setattr(fisher, "BATCH_SIZE", batch)
    exchange, rounds = Exchange(count), [0] * count

    def one(number):
        def count_round():
            rounds[number] += 1

        return build(index, images, context=exchange.worker(number), after_round=count_round)

    with ThreadPoolExecutor(count) as pool:
        for store in pool.map(one, range(count)):
            assert np.array_equal(store.rows, expected)
    computed = np.concatenate(exchange.rows)
    assert computed[: len(index)].tolist() == [1] * len(index)  # by exactly one process
    assert not computed[len(index) :].any()
    assert rounds == [-(-96 // (batch * count))] * count
