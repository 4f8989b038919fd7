"""The Fisher tower: its descriptors, its vectors against a slow reference, and its projection."""

import keras
import numpy as np
import pytest

from facepairs.fisher.descriptors import (
    MIRROR_ORDER,
    SCALES,
    View,
    describe,
    descriptors_per_line,
    positions,
)
from facepairs.fisher.network import FisherNetwork
from facepairs.fisher.tower import (
    MIRROR,
    PROJECTOR,
    FisherMember,
    MirroredVector,
    encode,
    fisher_tower,
    fold_descriptors,
    mirror_signs,
)
from facepairs.models.losses import EmbeddingLoss


def faces(count, px=96, seed=0):
    """Smooth random images: float32 in [0, 1]."""
    coarse = np.random.default_rng(seed).random((count, 12, 12, 3), np.float32)
    return np.asarray(keras.ops.image.resize(coarse, (px, px), "bilinear"))


def test_the_descriptor_of_an_edge_has_the_orientation_of_its_gradient():
    image = np.zeros((1, 96, 96, 3), np.float32)
    image[:, :, 48:] = 1  # brighter to the right: only orientation 0
    found = np.asarray(describe(image))[0].reshape(-1, 16, 8)
    edge = found[np.linalg.norm(found, axis=(1, 2)) > 0.5]
    assert len(edge) > 10
    assert (edge.argmax(axis=2)[edge.max(axis=2) > 0.05] == 0).all()
    for step in (1, 1 / 30):  # cells have a sum of 1.5 steps, and .05 more makes faint edges short
        longest = np.square(np.asarray(describe(image * step))).sum(axis=2).max()
        assert longest == pytest.approx(1.5 * step / (1.5 * step + 0.05), abs=2e-3)


def test_colours_count_by_their_luma():
    images = faces(1)
    gray = images @ np.float32([0.299, 0.587, 0.114])
    expected = np.asarray(describe(np.repeat(gray[..., None], 3, axis=3)))
    np.testing.assert_allclose(describe(images), expected, rtol=0, atol=1e-4)


def mirrored_positions(px):
    """Return, for each descriptor, the one at the mirrored position, from the grids alone."""
    order, first = [], 0
    for eighths, step in SCALES:
        count = descriptors_per_line(px * eighths // 8, step)
        order.append(first + np.arange(count**2).reshape(count, count)[:, ::-1].ravel())
        first += count**2
    return np.concatenate(order)


@pytest.mark.parametrize("px", [96, 112, 128, 224])
def test_a_mirror_image_has_the_same_descriptors_in_another_order(px):
    images, other = faces(1, px), mirrored_positions(px)
    assert positions(px)[other] == pytest.approx(positions(px) * [1, -1], abs=1e-6)
    own, mirrored = (np.asarray(describe(x)) for x in (images, images[:, :, ::-1]))
    reordered = mirrored[:, other][:, :, MIRROR_ORDER]
    np.testing.assert_allclose(reordered, own, rtol=0, atol=1e-5)
    assert np.abs(mirrored - own).max() > 0.1


def test_mirroring_keeps_the_sums_and_negates_the_differences():
    descriptors = np.random.default_rng(4).random((3, 128))
    own, mirrored = fold_descriptors(descriptors), fold_descriptors(descriptors[:, MIRROR_ORDER])
    assert own.shape == (3, 2, 64)
    assert mirrored == pytest.approx(own * np.float32([[1], [-1]]))
    assert np.square(own).sum(axis=(1, 2)) == pytest.approx(2 * np.square(descriptors).sum(axis=1))


def test_a_flat_image_has_empty_descriptors_and_a_defined_vector():
    flat = np.full((1, 96, 96, 3), 0.5, np.float32)
    assert np.abs(np.asarray(describe(flat))).max() < 0.01
    assert np.isfinite(np.asarray(fisher_tower(96, cohort=0)(flat))).all()


def mixture(gaussians, wide, seed=1):
    """Draw the first half of a mixture that is symmetric under mirroring."""
    rng = np.random.default_rng(seed)
    priors = rng.random(gaussians // 2) + 0.2
    return (
        rng.normal(size=(gaussians // 2, wide)),
        rng.random((gaussians // 2, wide)) + 0.3,
        priors / priors.sum() / 2,
    )


def slow_fisher_vector(x, means, variances, priors):
    """Compute by the definition, one descriptor and one Gaussian at a time."""
    to_means, to_variances = np.zeros_like(means), np.zeros_like(means)
    for point in x:
        density = np.array(
            [
                p * np.exp(-0.5 * ((point - m) ** 2 / v).sum()) / np.sqrt(v.prod())
                for m, v, p in zip(means, variances, priors, strict=True)
            ]
        )
        for k, share in enumerate(density / density.sum()):
            z = (point - means[k]) / np.sqrt(variances[k])
            to_means[k] += share * z / np.sqrt(priors[k])
            to_variances[k] += share * (z * z - 1) / np.sqrt(2 * priors[k])
    vector = np.concatenate([to_means, to_variances], axis=1).ravel() / len(x)
    vector = np.sign(vector) * np.sqrt(np.abs(vector))
    return vector / np.linalg.norm(vector)


@pytest.fixture(scope="module")
def small():
    """A member with six Gaussians and four components."""
    layer = FisherMember(View(), 96, gaussians=6, components=4)
    rng = np.random.default_rng(2)
    layer.set_mixture(rng.normal(size=(2, 64, 2)), rng.normal(size=2), *mixture(6, 6))
    return layer


def vectors(member, descriptors):
    projected = descriptors @ np.asarray(member.projection[0])
    return np.asarray(encode(projected.transpose(0, 2, 1)[:, None], [member]))


def random_descriptors(count, seed=2):
    rows = np.random.default_rng(seed).random((count, len(positions(96)), 128))
    return rows.astype(np.float32) / 11


def test_the_vector_follows_the_definition(small):
    descriptors = random_descriptors(2)
    got = vectors(small, descriptors)
    assert got.shape == (2, 2 * 6 * 6)
    means, variances, priors = mixture(6, 6)
    whole = (
        np.concatenate([means, means * [1, 1, -1, -1, 1, -1]]),
        np.concatenate([variances, variances]),
        np.concatenate([priors, priors]),
    )
    assert whole[2].sum() == pytest.approx(1)
    basis, offset = np.asarray(small.basis), np.asarray(small.offset)
    for vector, image in zip(got, descriptors, strict=True):
        sums, differences = np.moveaxis(fold_descriptors(image), 1, 0)
        parts = [sums @ basis[0] - offset, differences @ basis[1], positions(96)]
        x = np.concatenate(parts, axis=1)
        assert vector == pytest.approx(slow_fisher_vector(x, *whole), abs=1e-4)


def test_the_vector_of_a_mirrored_image_is_the_mirrored_vector(small):
    descriptors = random_descriptors(3)
    mirrored = np.empty_like(descriptors)
    mirrored[:, mirrored_positions(96)] = descriptors[:, :, MIRROR_ORDER]
    own, other = vectors(small, descriptors), vectors(small, mirrored)
    turn = MirroredVector(components=4, members=1)
    assert np.asarray(turn(own)) == pytest.approx(other, abs=1e-4)
    assert np.abs(own - other).max() > 0.01
    assert np.array_equal(turn(turn(own)), own)
    assert mirror_signs(4).tolist() == [1, 1, -1, -1, 1, -1]


def test_the_projection_starts_as_set_and_nothing_else_is_trained():
    tower = fisher_tower(96, ["face"], cohort=4)
    wide = tower.get_layer("describe").width
    rng = np.random.default_rng(3)
    mean, directions = rng.normal(size=wide) / 100, rng.normal(size=(7, wide))
    tower.get_layer(PROJECTOR).set_member(0, mean, directions)
    vector = np.asarray(tower.get_layer("describe")(faces(2)))
    expected = (vector - mean) @ directions.T
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    got = np.asarray(tower.get_layer("project")(vector))
    assert got[:, :7] == pytest.approx(expected, abs=1e-4)
    assert got[:, 7:] == pytest.approx(0, abs=1e-6)
    own = tower.get_layer(PROJECTOR).weights
    assert [w.path for w in tower.trainable_variables] == [w.path for w in own]


@pytest.fixture(scope="module")
def network():
    return FisherNetwork(96, 96, members=("face",), cohort=0)


def photos(count, seed=0):
    return (faces(count, seed=seed) * 255).astype(np.uint8)


def test_training_drops_a_fifth_of_the_numbers(network):
    sides = [np.repeat(row[None], 8, axis=0) for row in network.features(photos(2))]
    assert len(np.unique(network(sides, training=True)[:, 0], axis=0)) == 8
    assert len(np.unique(network(sides)[:, 0], axis=0)) == 1
    kept = np.asarray(network.dropout(np.ones((10, 10_000), np.float32), training=True))
    assert (kept == 0).mean() == pytest.approx(0.2, abs=0.005)


def test_training_sees_an_image_or_its_mirror_image(network, monkeypatch):
    monkeypatch.setattr(network.dropout, "rate", 0.0)
    network.mirroring.state.assign([0, 0])
    left, right = (np.repeat(row[None], 300, axis=0) for row in network.features(photos(2)))
    project, mirror = network.head.get_layer(PROJECTOR), network.head.get_layer(MIRROR)

    def as_is(rows, features):
        own = np.float32(features[:1])
        vectors = np.asarray(project(np.concatenate([own, mirror(own)])))
        return rows @ vectors[0] > rows @ vectors[1]

    rows = np.asarray(network((left, right), training=True))
    chosen = np.stack([as_is(rows[:, 0], left), as_is(rows[:, 1], right)])
    assert chosen.mean() == pytest.approx(0.5, abs=0.02)
    assert 0.4 < (chosen[0] == chosen[1]).mean() < 0.6
    twice = np.asarray(network((left, left), training=True))
    assert (as_is(twice[:, 0], left) != as_is(twice[:, 1], left)).all()


def test_the_loss_is_a_function_of_seed_and_step(network):
    features, genuine = np.asarray(network.features(photos(4))), np.ones(2, np.float32)

    def loss(seed, step):
        network.seed = seed
        network.compile(keras.optimizers.SGD(0.0), EmbeddingLoss())
        network.make_train_function(force=True)
        network.optimizer.iterations.assign(step)
        return network.train_on_batch((features[:2], features[2:]), genuine)

    assert loss(0, 3) == loss(0, 3)
    assert len({float(loss(*each)) for each in ((0, 3), (0, 4), (1, 3))}) == 3
