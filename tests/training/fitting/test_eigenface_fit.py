"""Eigenfaces are the whitened principal components of exactly the images they are fitted to."""

import numpy as np
import pytest
from drawn.crop_plans import whole_plan

from facepairs.data.index import FaceIndex
from facepairs.models.build import build_network
from facepairs.models.eigenfaces import PROJECTION, gray_pixels
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.training.fitting import eigenfaces
from facepairs.training.fitting.eigenfaces import fit_eigenfaces


@pytest.fixture(scope="module")
def index(faces):
    return FaceIndex.scan(faces)


@pytest.fixture(scope="module")
def store(index):
    return MemoryStore.build(index, whole_plan(index, 80))


def fitted(store, images, seed=0):
    network = build_network("eigenfaces", 80, 64, augment=1.0)
    counts = fit_eigenfaces(network, store, np.asarray(images), seed)
    return network, counts


def projected(network, store, images):
    """The coordinates before normalisation: float64[N, 150]."""
    gray = np.asarray(gray_pixels(network.head)(network.preprocess(store.gather(np.int32(images)))))
    kernel, bias = network.head.get_layer(PROJECTION).get_weights()
    return gray.astype(np.float64) @ kernel + bias


@pytest.fixture(scope="module")
def first_80(store):
    """Images, and what is fitted to them."""
    images = np.arange(80)
    return images, *fitted(store, images)


def test_coordinates_are_white_on_the_images_fitted_to(store, first_80):
    images, network, (count, components) = first_80
    assert (count, components) == (80, 20)
    at = projected(network, store, images)
    assert not at[:, components:].any()
    assert at.mean(axis=0) == pytest.approx(0, abs=1e-2)
    assert np.cov(at[:, :components].T) == pytest.approx(np.eye(components), abs=0.02)


def test_the_largest_directions_come_first(store, first_80):
    images, network, (_, components) = first_80
    gray = np.asarray(gray_pixels(network.head)(network.preprocess(store.gather(np.int32(images)))))
    _, singular, _ = np.linalg.svd(gray - gray.mean(axis=0), full_matrices=False)
    kernel = network.head.get_layer(PROJECTION).get_weights()[0][:, :components]
    lengths = 1 / np.linalg.norm(kernel, axis=0)  # whitening divides by the deviation
    assert lengths == pytest.approx(singular[:components] / np.sqrt(79), rel=0.02)


def test_other_images_have_no_influence(index, store, tmp_path):
    images = np.arange(40)
    network, _ = fitted(store, images)
    kernel, bias = network.head.get_layer(PROJECTION).get_weights()
    again = (
        fitted(FileStore(index, whole_plan(index, 80)), images)[0]
        .head.get_layer(PROJECTION)
        .get_weights()
    )
    assert np.array_equal(kernel, again[0])
    assert np.array_equal(bias, again[1])
    others = fitted(store, np.arange(40, 80))[0].head.get_layer(PROJECTION).get_weights()
    assert np.abs(np.abs(kernel) - np.abs(others[0])).mean() > 0.1 * np.abs(kernel).mean()


def test_a_sample_of_too_many_images_depends_on_the_seed(store, monkeypatch):
    monkeypatch.setattr(eigenfaces, "MAX_IMAGES", 30)
    one, counts = fitted(store, np.arange(90), seed=1)
    again, _ = fitted(store, np.arange(90), seed=1)
    other, _ = fitted(store, np.arange(90), seed=2)
    assert counts == (30, 7)
    kernels = [n.head.get_layer(PROJECTION).get_weights()[0] for n in (one, again, other)]
    assert np.array_equal(kernels[0], kernels[1])
    assert not np.array_equal(kernels[0], kernels[2])
