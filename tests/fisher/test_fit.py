"""The Fisher backbone is fitted to the given images and is the same for the same seed."""

import numpy as np
import pytest
from drawn.crop_plans import whole_plan

from facepairs.data.index import FaceIndex
from facepairs.fisher import fit
from facepairs.fisher.fit import (
    fit_cohort,
    fit_mixture,
    precompute,
    start_projection,
)
from facepairs.fisher.network import FisherNetwork
from facepairs.fisher.tower import BACKBONE, COHORT, MIRROR, PROJECTOR
from facepairs.pipeline.memory import MemoryStore


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Fewer iterations: these tests do not depend on a good fit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "ITERATIONS", 2)
        patch.setattr(fit, "SAMPLE_IMAGES", 20)
        yield


@pytest.fixture(scope="module")
def store(faces):
    index = FaceIndex.scan(faces).without(range(48, 96))
    return MemoryStore.build(index, whole_plan(index, 96))


def fitted(store, images):
    network = FisherNetwork(96, 96, members=("face",), cohort=0)
    fit_mixture(network, store, images, seed=0)
    return network


def frozen(network):
    return [np.asarray(w) for w in network.head.get_layer(BACKBONE).weights]


def equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(frozen(one), frozen(other), strict=True))


@pytest.fixture(scope="module")
def network(store):
    return fitted(store, np.arange(36))


def test_the_mixture_depends_on_seed_and_images_alone(store, network):
    other = fitted(store, np.arange(36))
    assert equal(network, other)
    for images, seed in ((np.arange(36), 1), (np.arange(12, 48), 0)):
        fit_mixture(other, store, images, seed)
        assert not equal(network, other)


def test_the_mixture_fit_recovers_gaussians_and_their_mirror_images():
    random, turn = np.random.default_rng(0), np.float32([1, -1, 1, -1])
    centres = np.float32([[0, 1, 0.2, 0.8], [2, 0.5, -0.3, 0.4]])
    sides = np.where(random.random((4_000, 1)) < 0.8, 1, turn)  # most photos show one side
    drawn = random.choice(2, 4_000, p=[0.7, 0.3])
    points = ((centres[drawn] + random.normal(0, 0.1, (4_000, 4))) * sides).astype(np.float32)
    means, variances, priors = fit._mirrored_mixture(points, turn, 2, 0)
    order = np.argsort(means[:, 0])
    means = np.where(means[:, 3:] < 0, means * turn, means)  # either may be the mirror image
    assert means[order] == pytest.approx(centres, abs=0.03)
    assert variances[order] == pytest.approx(0.1**2 + 0.01, rel=0.04)
    assert priors[order] == pytest.approx([0.35, 0.15], abs=0.02)


@pytest.fixture(scope="module")
def vectors(store, network):
    return precompute(network, store, 48)


def test_features_of_every_image_and_of_its_mirror_image(store, network, vectors):
    assert len(vectors.rows) == 48
    some = np.int32([0, 21, 47])
    described = np.asarray(network.features(store.rows[some]), np.float32)
    assert np.abs(vectors.rows[some] - described).max() < 2e-3  # batches differ by rounding
    mirrored = np.asarray(network.features(store.rows[some][:, :, ::-1]), np.float32)
    turned = np.asarray(network.head.get_layer(MIRROR)(described))
    np.testing.assert_allclose(turned, mirrored, rtol=0, atol=2e-3)
    assert np.abs(mirrored - described).max() > 0.01


def test_the_projection_starts_from_whitened_principal_components(network, vectors):
    images = np.arange(36)
    start_projection(network, vectors, images, seed=0)
    project = network.head.get_layer(PROJECTOR)
    at = np.asarray(project(np.asarray(vectors.rows[images], np.float32)))
    assert at.shape == (36, fit.DIMENSIONS)
    assert np.linalg.norm(at, axis=1) == pytest.approx(1, abs=1e-5)
    cosines = at @ at.T - np.eye(36)
    assert np.abs(cosines).mean() < 0.2  # whitened: no direction that all faces share is left


def test_each_direction_of_the_projection_has_its_share_and_weak_ones_are_left_out(network):
    width = network.feature_count
    rng = np.random.default_rng(3)
    scales = np.array([8.0, 4.0, 2.0, 1.0, 1e-4])  # the last is below a thousandth of the first
    rows = np.zeros((200, width), np.float32)
    rows[:, :5] = rng.normal(size=(200, 5)) * scales
    start_projection(network, MemoryStore(rows), np.arange(200), seed=0)
    kernel, bias = (np.asarray(one) for one in network.head.get_layer(PROJECTOR).weights[:2])
    deviations = (rows @ kernel + bias).std(axis=0, ddof=1)
    expected = np.zeros(fit.DIMENSIONS)
    expected[:4] = 1 / np.sqrt(fit.DIMENSIONS)
    assert deviations == pytest.approx(expected, rel=0.01, abs=1e-4)


@pytest.fixture(scope="module")
def several(store):
    """A network of two members with a cohort of five, and the features of all images."""
    network = FisherNetwork(96, 96, members=("face", "eyes"), cohort=5)
    fit_mixture(network, store, np.arange(36), seed=0)
    features = precompute(network, store, 48)
    start_projection(network, features, np.arange(36), seed=0)
    return network, features


def test_every_member_has_its_own_mixture_and_projection(several, network):
    first, second = several[0].head.get_layer(BACKBONE).members
    for own, other in zip(first.get_weights(), frozen(network), strict=True):
        assert np.array_equal(own, other)  # the first one sees the whole image
    assert not np.array_equal(first.get_weights()[0], second.get_weights()[0])
    project = several[0].head.get_layer(PROJECTOR)
    at = np.asarray(project(np.asarray(several[1].rows[:36], np.float32)))
    for member in np.split(at, 2, axis=1):
        assert np.linalg.norm(member, axis=1) == pytest.approx(2**-0.5, abs=1e-5)
        assert np.abs(2 * member @ member.T - np.eye(36)).mean() < 0.2


def test_the_cohort_needs_enough_people(several):
    network, features = several
    layer = network.head.get_layer(COHORT)
    fit_cohort(network, features, np.arange(19), seed=0)
    assert not np.asarray(layer.cohort).any()
    fit_cohort(network, features, np.arange(20), seed=0)
    assert np.linalg.norm(layer.cohort, axis=0) == pytest.approx(1, abs=1e-5)
    cosines = np.asarray(network.embeddings(features.rows[:20]))
    assert cosines[:, -1].std() > 0
    assert cosines.shape == (20, 257)


def test_a_network_without_a_cohort_stays_as_it_is(network, vectors):
    before = network.head.get_weights()
    fit_cohort(network, vectors, np.arange(36), seed=0)
    assert all(map(np.array_equal, before, network.head.get_weights()))
