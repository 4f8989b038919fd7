"""Precomputed features are those of the backbone."""

import re
import shutil

import numpy as np
import psutil
import pytest
import tensorflow as tf
from drawn.crop_plans import whole_plan

from facepairs.data.index import FaceIndex
from facepairs.errors import BadImage, NotEnough
from facepairs.fisher.fit import precompute
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.support.console import showing


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


def test_features_are_refused_only_if_they_exceed_the_free_memory(index, images, monkeypatch):
    needed = images.rows.shape[0] * MeanColour.feature_count * 2  # float16
    free = psutil.virtual_memory()._replace(available=needed)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    assert build(index, images).rows.nbytes == needed
    free = free._replace(available=needed - 1)
    with pytest.raises(NotEnough):
        build(index, images)


def test_the_error_names_an_undecodable_image(faces, tmp_path):
    root = shutil.copytree(faces, tmp_path / "faces")
    index = FaceIndex.scan(root)
    store = FileStore(index, whole_plan(index, 64))
    index.path(70).write_bytes(b"damaged since it was inspected")
    with pytest.raises(BadImage, match=re.escape(index.name(70))):
        build(index, store)


def test_what_is_raised_after_a_batch_stops(index, images):
    calls = []

    def stop():
        calls.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(index, images, after_batch=stop)
    assert calls == [1]
