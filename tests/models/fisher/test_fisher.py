"""The Fisher tower: descriptors, vectors as an independent slow version computes them, a start."""

import keras
import numpy as np
import pytest

from facepairs.models.build import build_network
from facepairs.models.export.onnx import export_onnx, keras_bytes
from facepairs.models.fisher.descriptors import (
    MIRRORED,
    SCALES,
    DenseDescriptors,
    points,
    positions,
)
from facepairs.models.fisher.tower import (
    FisherVector,
    MirroredVector,
    fisher_tower,
    folded,
    set_projection,
    signs,
)
from facepairs.models.step_random import StepRandom


def faces(count, px=96, seed=0):
    """Smooth random images: float32 in [0, 1]."""
    coarse = np.random.default_rng(seed).random((count, 12, 12, 3), np.float32)
    return np.asarray(keras.ops.image.resize(coarse, (px, px), "bilinear"))


@pytest.mark.parametrize("px", [96, 112, 128, 224])
def test_there_is_a_descriptor_for_each_place(px):
    found = np.asarray(DenseDescriptors()(faces(2, px)))
    places = positions(px)
    assert found.shape == (2, len(places), 128)
    assert DenseDescriptors().compute_output_shape((None, px, px, 3)) == (None, len(places), 128)
    assert np.abs(places).max() < 1
    assert places.mean(axis=0) == pytest.approx([0, 0], abs=1e-6)
    lengths = np.linalg.norm(found, axis=2)
    assert lengths.max() <= 1 + 1e-5
    assert found.min() >= 0


def test_a_patch_is_described_by_the_direction_of_its_edge():
    image = np.zeros((1, 96, 96, 3), np.float32)
    image[:, :, 48:] = 1  # grows brighter to the right: direction 0 alone
    found = np.asarray(DenseDescriptors()(image))[0].reshape(-1, 16, 8)
    edge = found[np.linalg.norm(found, axis=(1, 2)) > 0.5]
    assert len(edge) > 10
    assert (edge.argmax(axis=2)[edge.max(axis=2) > 0.05] == 0).all()


def other_side(px):
    """Tell which descriptor stands where each one's mirror image does, from the grids alone."""
    found, first = [], 0
    for eighths, step in SCALES:
        count = points(px * eighths // 8, step)
        found.append(first + np.arange(count**2).reshape(count, count)[:, ::-1].ravel())
        first += count**2
    return np.concatenate(found)


@pytest.mark.parametrize("px", [96, 112, 128, 224])
def test_a_mirror_image_has_the_same_descriptors_in_another_order(px):
    images, other = faces(2, px), other_side(px)
    assert positions(px)[other] == pytest.approx(positions(px) * [1, -1], abs=1e-6)
    own, mirrored = (np.asarray(DenseDescriptors()(x)) for x in (images, images[:, :, ::-1]))
    assert mirrored[:, other][:, :, MIRRORED] == pytest.approx(own, abs=1e-5)
    assert np.abs(mirrored - own).max() > 0.1


def test_sums_and_differences_tell_a_descriptor_from_its_mirror_image():
    descriptors = np.random.default_rng(4).random((3, 128))
    own, mirrored = folded(descriptors), folded(descriptors[:, MIRRORED])
    assert own.shape == (3, 2, 64)
    assert mirrored == pytest.approx(own * np.float32([[1], [-1]]))
    assert np.square(own).sum(axis=(1, 2)) == pytest.approx(2 * np.square(descriptors).sum(axis=1))


def test_a_flat_image_has_empty_descriptors_and_a_defined_vector():
    flat = np.full((1, 96, 96, 3), 0.5, np.float32)
    assert np.abs(np.asarray(DenseDescriptors()(flat))).max() < 0.01
    assert np.isfinite(np.asarray(fisher_tower(96)(flat))).all()


def mixture(gaussians, wide, seed=1):
    """Draw the first half of a mixture that is its own mirror image."""
    rng = np.random.default_rng(seed)
    priors = rng.random(gaussians // 2) + 0.2
    return (
        rng.normal(size=(gaussians // 2, wide)),
        rng.random((gaussians // 2, wide)) + 0.3,
        priors / priors.sum() / 2,
    )


def slow_fisher_vector(x, means, variances, priors):
    """Follow the definition, one descriptor and one Gaussian at a time."""
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
    """Give a layer of six Gaussians, four components and a place."""
    layer = FisherVector(96, gaussians=6, components=4)
    layer.build((None, len(positions(96)), 128))
    rng = np.random.default_rng(2)
    layer.set_mixture(rng.normal(size=(2, 64, 2)), rng.normal(size=2), *mixture(6, 6))
    return layer


def random_descriptors(count, seed=2):
    rows = np.random.default_rng(seed).random((count, len(positions(96)), 128))
    return rows.astype(np.float32) / 11


def test_the_vector_is_that_of_the_definition(small):
    descriptors = random_descriptors(2)
    got = np.asarray(small(descriptors))
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
        sums, differences = np.moveaxis(folded(image), 1, 0)
        parts = [sums @ basis[0] - offset, differences @ basis[1], positions(96)]
        x = np.concatenate(parts, axis=1)
        assert vector == pytest.approx(slow_fisher_vector(x, *whole), abs=1e-4)


def test_a_mirror_images_vector_is_the_vector_mirrored(small):
    descriptors = random_descriptors(3)
    mirrored = np.empty_like(descriptors)
    mirrored[:, other_side(96)] = descriptors[:, :, MIRRORED]
    own, other = np.asarray(small(descriptors)), np.asarray(small(mirrored))
    turn = MirroredVector(components=4)
    assert np.asarray(turn(own)) == pytest.approx(other, abs=1e-4)
    assert np.abs(own - other).max() > 0.01
    assert np.array_equal(turn(turn(own)), own)
    assert signs(4).tolist() == [1, 1, -1, -1, 1, -1]


def test_the_projection_starts_where_it_is_told_and_is_all_that_is_trained():
    tower = fisher_tower(96)
    wide = tower.get_layer("describe").output_shape[-1]
    rng = np.random.default_rng(3)
    mean, directions = rng.normal(size=wide) / 100, rng.normal(size=(7, wide))
    set_projection(tower, mean, directions)
    vector = np.asarray(tower.get_layer("describe")(faces(2)))
    expected = (vector - mean) @ directions.T
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    got = np.asarray(tower.get_layer("project")(vector))
    assert got[:, :7] == pytest.approx(expected, abs=1e-4)
    assert got[:, 7:] == pytest.approx(0, abs=1e-6)
    assert [w.path for w in tower.trainable_variables] == [
        w.path for w in tower.get_layer("project").get_layer("projection").weights
    ]


@pytest.fixture(scope="module")
def network():
    return build_network("siamese", 96, 96, augment=0.0)


def photos(count, seed=0):
    return (faces(count, seed=seed) * 255).astype(np.uint8)


def test_scores_from_vectors_are_those_from_images(network):
    left, right = photos(3, 1), photos(3, 2)
    scores = np.asarray(network.scores(network.features(np.concatenate([left, right]))))
    model = network.inference_model()
    expected = (np.asarray(model(left)) * np.asarray(model(right))).sum(axis=1)
    assert scores == pytest.approx(expected, abs=1e-2)  # vectors are kept in half precision


def test_the_embedding_ignores_mirroring_and_exports(network):
    import onnxruntime

    model = network.inference_model()
    embedding = np.asarray(model(photos(2)))
    assert np.linalg.norm(embedding, axis=1) == pytest.approx(1, abs=1e-5)
    assert np.asarray(model(photos(2)[:, :, ::-1])) == pytest.approx(embedding, abs=1e-5)
    data, difference = export_onnx(model, "embedding")
    assert difference < 1e-3
    (got,) = onnxruntime.InferenceSession(data).run(None, {"image": photos(2)})
    assert got == pytest.approx(embedding, abs=5e-3)


def test_the_keras_file_loads_in_safe_mode(network, tmp_path):
    model = network.inference_model()
    path = tmp_path / "model.keras"
    path.write_bytes(keras_bytes(model))
    loaded = keras.saving.load_model(path, safe_mode=True)
    assert np.asarray(loaded(photos(2))) == pytest.approx(np.asarray(model(photos(2))), abs=1e-6)


def test_who_has_one_photo_meets_its_mirror_image(network):
    vectors = np.asarray(network.features(photos(2)))
    seen = []
    network_loss = network.objective

    class Spy(keras.Layer):
        def call(self, left, right, genuine, left_person, right_person):
            seen.append((np.asarray(left), np.asarray(right)))
            return network_loss(left, right, genuine, left_person, right_person)

    spied = type(network)(**{**vars(network), "objective": Spy()})
    batch = np.concatenate([vectors, vectors])  # each image paired with itself
    people = np.array([0, 1, 0, 1], np.int32)
    for step in range(5):
        spied.loss(batch, np.ones(2, np.float32), people, StepRandom(0, step))
    assert all(not np.allclose(left, right, atol=1e-3) for left, right in seen)


def test_the_loss_is_a_function_of_seed_and_step(network):
    vectors, people = network.features(photos(4)), np.arange(4, dtype=np.int32)

    def loss(seed, step):
        return float(network.loss(vectors, np.ones(2, np.float32), people, StepRandom(seed, step)))

    assert loss(0, 3) == loss(0, 3)
    assert len({loss(0, 3), loss(0, 4), loss(1, 3)}) == 3
