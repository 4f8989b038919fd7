"""The feature store holds what `describe` gives, image by image, wherever it keeps it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadData
from facepairs.pipeline import features
from facepairs.pipeline.dataset import image_batches, make_dataset
from facepairs.pipeline.features import FeatureStore, Share
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore

DIMENSIONS = 6


def describe(pixels):
    """Mean colour and its negative."""
    mean = tf.reduce_mean(tf.cast(pixels, tf.float32), axis=[1, 2])
    return tf.cast(tf.concat([mean, -mean], axis=1), tf.float16)


@pytest.fixture(scope="module")
def index(faces):
    return FaceIndex.scan(faces)


@pytest.fixture(scope="module")
def images(index):
    return MemoryStore.build(index, 250, 64)


@pytest.fixture(scope="module")
def expected(index, images):
    return describe(images.pixels(tf.range(len(index)))).numpy()


def build(index, images, path, **changes):
    return FeatureStore.build(images, (len(index), DIMENSIONS), describe, path, **changes)


@pytest.fixture
def no_memory(monkeypatch):
    monkeypatch.setattr(features, "SHARE_OF_FREE_MEMORY", 0)


def test_images_come_in_their_order_a_batch_at_a_time(index, images):
    wanted = np.array([5, 0, 95, 7, 7])
    batches = [images.pixels(batch).numpy() for batch in image_batches(images, wanted, 2)]
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert np.array_equal(np.concatenate(batches), images.pixels(wanted.astype(np.int32)).numpy())


def test_memory_holds_every_images_vectors(index, images, expected, tmp_path):
    ticks = []
    store = build(index, images, tmp_path / "v.npy", progress=lambda *at: ticks.append(at))
    assert not list(tmp_path.iterdir())
    assert np.array_equal(store.vectors, expected)
    assert np.array_equal(store.pixels(tf.constant([3, 90, 3])), expected[[3, 90, 3]])
    assert ticks == [(64, 96), (96, 96)]


def test_from_files_the_vectors_are_the_same(index, expected, tmp_path):
    store = build(index, FileStore(index, 250, 64), tmp_path / "v.npy")
    assert np.array_equal(store.vectors, expected)


def test_without_memory_they_lie_in_a_file_that_is_read_again(
    index, images, expected, tmp_path, no_memory
):
    path = tmp_path / "v.npy"
    assert np.array_equal(build(index, images, path).vectors, expected)
    assert np.array_equal(np.load(path), expected)
    before = path.stat().st_mtime_ns
    assert np.array_equal(build(index, images, path).vectors, expected)
    assert path.stat().st_mtime_ns == before
    np.save(path, expected + np.float16(1))  # nothing vouches for it
    assert np.array_equal(build(index, images, path).vectors, expected)


def test_a_file_of_another_shape_is_made_anew(index, images, expected, tmp_path, no_memory):
    path = tmp_path / "v.npy"
    np.save(path, expected[:-1])
    assert np.array_equal(build(index, images, path).vectors, expected)


def test_a_place_that_cannot_be_written_is_named(index, images, tmp_path, no_memory):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(BadData, match=r"cannot create .*/file: File exists"):
        build(index, images, tmp_path / "file" / "v.npy")


def test_an_image_that_cannot_be_decoded_is_narrowed_down(faces, tmp_path):
    index = FaceIndex.scan(faces)
    store = FileStore(index, 250, 64)
    sound = store._paths

    def with_one_that_is_none(images):
        paths, size = sound(images)
        return tf.where(images == 70, __file__, paths), size

    store._paths = with_one_that_is_none
    with pytest.raises(BadData, match="images 64 to 127 cannot be decoded; find it with"):
        build(index, store, tmp_path / "v.npy")


class Exchange:
    """Adds up what so many threads bring, as workers do over a network; `rows` counts who did."""

    def __init__(self, count):
        self.barrier = threading.Barrier(count, timeout=60)
        self.brought = [None] * count
        self.rows = []

    def share(self, number):
        def add(vectors):
            self.brought[number] = vectors
            self.barrier.wait()
            total = sum(self.brought)
            if number == 0:
                self.rows.append(sum(np.any(one, axis=1).astype(int) for one in self.brought))
            self.barrier.wait()
            return total

        return Share(number, len(self.brought), add)


@pytest.mark.parametrize(("batch", "count"), [(64, 2), (64, 3), (20, 2), (16, 4)])
def test_processes_that_share_the_work_have_what_one_makes(
    index, images, expected, tmp_path, monkeypatch, batch, count
):
    monkeypatch.setattr(features, "BATCH", batch)
    exchange, ticks = Exchange(count), [[] for _ in range(count)]

    def one(number):
        return build(
            index,
            images,
            tmp_path / f"{number}.npy",
            progress=lambda *at: ticks[number].append(at),
            share=exchange.share(number),
        )

    with ThreadPoolExecutor(count) as pool:
        for store in pool.map(one, range(count)):
            assert np.array_equal(store.vectors, expected)
    described = np.concatenate(exchange.rows)
    assert described[: len(index)].tolist() == [1] * len(index)  # by one of them, once
    assert not described[len(index) :].any()
    assert all(other == ticks[0] for other in ticks)
    assert ticks[0][-1] == (96, 96)


def test_sharing_what_does_not_fit_in_memory(index, images, expected, tmp_path, no_memory):
    exchange = Exchange(2)

    def one(number):
        path = tmp_path / str(number) / "v.npy"
        return build(index, images, path, share=exchange.share(number))

    with ThreadPoolExecutor(2) as pool:
        for store in pool.map(one, range(2)):
            assert np.array_equal(store.vectors, expected)


def test_batches_of_pairs_gather_vectors(index, images, expected, tmp_path):
    store = build(index, images, tmp_path / "v.npy")
    block = PairSampler(index.first, range(len(index.people)), 3).block(0, 0, 8)
    (batch,) = make_dataset(store, lambda: iter([block]), 8)
    both = np.concatenate([block.left, block.right])
    assert np.array_equal(store.pixels(batch["images"]), expected[both])
