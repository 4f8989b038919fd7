"""The Fisher tower's frozen part: fitted to the images asked for, the same for the same seed."""

import numpy as np
import pytest

from facepairs.data.index import FaceIndex
from facepairs.models.network import DESCRIBE, PROJECT, build_network
from facepairs.pipeline.memory import MemoryStore
from facepairs.training import fisher
from facepairs.training.fisher import describe_images, fit_mixture, start_projection


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Fewer iterations: what is tested does not depend on a good fit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fisher, "ITERATIONS", 2)
        patch.setattr(fisher, "SAMPLE_IMAGES", 40)
        yield


@pytest.fixture(scope="module")
def store(faces):
    return MemoryStore.build(FaceIndex.scan(faces), 250, 128)


def fitted(store, images, seed=0):
    network = build_network("siamese", 128, 128, augment=1.0)
    fit_mixture(network, store, np.asarray(images), seed)
    return network


def frozen(network):
    return [np.asarray(w) for w in network.head.get_layer(DESCRIBE).weights]


def equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(frozen(one), frozen(other), strict=True))


@pytest.fixture(scope="module")
def network(store):
    return fitted(store, np.arange(60))


def test_the_same_seed_gives_the_same_mixture_another_seed_or_images_another(store, network):
    assert equal(network, fitted(store, np.arange(60)))
    assert not equal(network, fitted(store, np.arange(60), seed=1))
    assert not equal(network, fitted(store, np.arange(36, 96)))


@pytest.fixture(scope="module")
def vectors(store, network, tmp_path_factory):
    return describe_images(network, store, 96, tmp_path_factory.mktemp("vectors"))


def test_every_image_and_its_mirror_image_are_described(store, network, vectors):
    assert vectors.vectors.shape[:2] == (96, 2)
    some = np.int32([0, 41, 95])
    described = np.asarray(network.described(store.pixels(some)), np.float32)
    assert np.abs(vectors.vectors[some] - described).max() < 2e-3  # batches differ by rounding
    mirrored = network.described(store.pixels(some)[:, :, ::-1])
    assert np.asarray(mirrored, np.float32)[:, 0] == pytest.approx(described[:, 1], abs=2e-3)


def test_the_projection_starts_from_whitened_components(network, vectors):
    images = np.arange(60)
    start_projection(network, vectors, images, seed=0)
    project = network.head.get_layer(PROJECT)
    at = np.asarray(project(np.asarray(vectors.vectors[images, 0], np.float32)))
    assert at.shape == (60, fisher.DIMENSIONS)
    assert np.linalg.norm(at, axis=1) == pytest.approx(1, abs=1e-5)
    cosines = at @ at.T - np.eye(60)
    assert np.abs(cosines).mean() < 0.2  # whitened: no direction that all faces share is left
