"""The networks are symmetric, work at any size, and are the same in Keras and ONNX."""

import keras
import numpy as np
import pytest

from facepairs.evaluation.metrics.curves import auc
from facepairs.fisher.network import FisherNetwork
from facepairs.models.augment import (
    MAX_BRIGHTNESS,
    MAX_CONTRAST,
    MAX_ROTATION_RAD,
    MAX_SHIFT,
    MAX_ZOOM,
    RandomFace,
)
from facepairs.models.build import build_network
from facepairs.models.losses import EmbeddingLoss
from facepairs.models.metrics import pair_scores
from facepairs.models.network import EmbeddingNetwork


def images(count, px, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, px, px, 3), np.uint8)


@pytest.mark.parametrize("name", ["siamese", "difference", "difference-article"])
@pytest.mark.parametrize(("crop", "px"), [(112, 64), (112, 112), (64, 128), (80, 100)])
def test_scores_are_symmetric_at_any_size(name, crop, px):
    network = build_network(name, crop, px, augment=1.0)
    left, right = images(3, crop, 1), images(3, crop, 2)
    forth = np.asarray(pair_scores(network((left, right))))
    back = np.asarray(pair_scores(network((right, left))))
    assert forth.shape == (3,)
    if network.kind == "pair":
        assert np.array_equal(forth, back)
    else:  # an embedding is the same wherever it stands in the batch, but for float32 rounding
        assert forth == pytest.approx(back, abs=1e-6)


def test_the_difference_network_judges_the_difference_of_two_maps():
    head = build_network("difference", 64, 64, augment=0.0).head
    left, right = (images(3, 64, seed) / np.float32(255) for seed in (1, 2))
    shared = head.get_layer("shared")
    maps = [np.asarray(shared(side)) for side in (left, right)]
    assert maps[0].shape == (3, 16, 16, 48)
    after = keras.Model(head.get_layer("difference").output, head.output)
    wanted = np.asarray(head([left, right]))
    assert np.asarray(after(maps[0] - maps[1])) == pytest.approx(wanted, abs=1e-5)
    assert float(np.ptp(wanted)) > 1e-3


def test_the_articles_network_has_the_articles_layers():
    head = build_network("difference-article", 112, 112, augment=0.0).head
    convolutions = [layer for layer in head.layers if isinstance(layer, keras.layers.Conv2D)]
    assert [layer.filters for layer in convolutions] == [20, 40, 60, 80, 100]
    assert all(layer.kernel_size == (3, 3) for layer in convolutions)
    assert [layer.units for layer in head.layers if isinstance(layer, keras.layers.Dense)] == [
        200,
        1,
    ]


def test_the_difference_network_ignores_mirroring_and_light():
    network = build_network("difference", 112, 64, augment=0.0)
    left, right = images(4, 112, 1) // 2, images(4, 112, 2) // 2
    scores = np.asarray(network((left, right)))
    mirrored = np.asarray(network((left, right[:, :, ::-1])))
    assert mirrored == pytest.approx(scores, abs=1e-5)
    brighter = np.asarray(network((left + 90, right)))
    assert brighter == pytest.approx(scores, abs=0.01 * float(np.ptp(scores)) + 1e-4)


@pytest.mark.parametrize(
    ("name", "crop", "px", "wide"),
    [("siamese", 112, 64, 256), ("fisher", 96, 96, 385), ("resnet", 150, 150, 128)],
)
def test_a_face_and_its_mirror_image_have_the_same_embedding_of_length_one(name, crop, px, wide):
    fisher = name == "fisher"
    network = FisherNetwork(crop, px) if fisher else build_network(name, crop, px, 0.0)
    model, crops = network.inference_model(), images(2, crop)
    rows = np.asarray(model(crops))
    assert rows.shape == (2, wide)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert np.asarray(model(crops[:, :, ::-1])) == pytest.approx(rows, abs=1e-4)


def augment(layer, pixels, state=3):
    layer.seed_generator.state.assign([7, state])
    return np.asarray(layer(pixels, training=True))


@pytest.mark.parametrize("strength", [0.0, 1.0, 2.0])
def test_augmentation_is_a_function_of_its_seed_s_state(strength):
    pixels = images(6, 64).astype("float32") / 255
    layer = RandomFace(strength)
    first = augment(layer, pixels)
    assert np.array_equal(first, augment(layer, pixels))
    assert not np.array_equal(first, augment(layer, pixels, 4))
    assert np.array_equal(first, augment(RandomFace(strength), pixels))
    assert first.min() >= 0
    assert first.max() <= 1


def test_images_are_augmented_independently_and_not_at_inference():
    one = images(1, 64).astype("float32") / 255
    layer = RandomFace(1.0)
    many = augment(layer, np.repeat(one, 16, axis=0))
    assert len({image.tobytes() for image in many}) == 16
    assert np.array_equal(np.asarray(layer(one)), one)


def test_a_layer_made_from_its_settings_draws_the_same():
    layer = RandomFace(1.5, seed=7)
    again = RandomFace.from_config(layer.get_config())
    pixels = images(3, 32).astype("float32") / 255
    assert (again.strength, again.seed) == (1.5, 7)
    assert np.array_equal(np.asarray(again(pixels, training=True)), layer(pixels, training=True))


def test_strength_zero_only_mirrors():
    one = images(1, 64).astype("float32") / 255
    many = augment(RandomFace(0.0), np.repeat(one, 32, axis=0))
    kinds = {image.tobytes() for image in many}
    assert kinds == {one[0].tobytes(), np.ascontiguousarray(one[0, :, ::-1]).tobytes()}


@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_every_change_reaches_its_limits_and_none_goes_beyond(strength):
    count, px = 200, 64
    y, x = (np.indices((px, px)) / (px - 1)).astype("float32")
    slopes = np.stack([x, y, np.full_like(x, 0.5)], axis=2)
    out = augment(RandomFace(strength), np.repeat(slopes[None], count, axis=0))
    centre = out[:, px // 2 - 6 : px // 2 + 6, px // 2 - 6 : px // 2 + 6]
    down, right = (np.gradient(centre, axis=axis).mean(axis=(1, 2)) * (px - 1) for axis in (1, 2))
    angle = np.arctan2(down[:, 0], down[:, 1])
    grown = np.hypot(down[:, 0], down[:, 1])  # by contrast and zoom
    middle = centre.mean(axis=(1, 2))
    shift = (middle[:, :2] - middle[:, 2:]) / grown[:, None]
    assert 0.3 < (right[:, 0] < 0).mean() < 0.7  # mirrored
    for found, most, slack in (
        (np.abs(angle), MAX_ROTATION_RAD, 1.01),
        (np.abs(shift[:, 0]), MAX_SHIFT, 1 + 2 * MAX_ZOOM * strength),
        (np.abs(shift[:, 1]), MAX_SHIFT, 1 + 2 * MAX_ZOOM * strength),
        (np.abs(middle[:, 2] - 0.5), MAX_BRIGHTNESS, 1.1),
        (grown - 1, MAX_CONTRAST + MAX_ZOOM, 1 + MAX_CONTRAST * strength),
        (1 - grown, MAX_CONTRAST + MAX_ZOOM, 1.01),
    ):
        assert 0.7 * most * strength < found.max() < slack * most * strength


def test_every_random_layer_draws_by_seed_and_step():
    dropout = keras.layers.Dropout(0.5)
    built = build_network("siamese", 64, 64, augment=1.0)
    augment = keras.Sequential([RandomFace(1.0), dropout])
    network = EmbeddingNetwork("own", 64, 64, built.prepare, augment, built.head, seed=5)
    network.compile(keras.optimizers.SGD(0.0), EmbeddingLoss())
    sides, genuine = (images(3, 64, 1), images(3, 64, 2)), np.ones(3, np.float32)

    def losses(seed, *steps):
        network.seed = seed
        network.make_train_function(force=True)
        for step in steps:
            network.reset_metrics()
            network.optimizer.iterations.assign(step)
            yield float(network.train_on_batch(sides, genuine))

    first, again, later = losses(5, 9, 9, 10)
    assert first == again
    assert len({first, later, *losses(6, 9)}) == 3


def test_training_logs_the_loss_and_validation_the_auc_of_all_pairs():
    network = build_network("difference", 64, 64, augment=0.0)
    network.compile("sgd", keras.losses.BinaryCrossentropy(from_logits=True))
    left, right = images(40, 64, 1), images(40, 64, 2)
    genuine = np.random.default_rng(3).integers(0, 2, 40).astype(np.float32)
    found = network.fit((left, right), genuine, batch_size=20, verbose=0).history
    assert set(found) == {"loss"}
    figures = network.evaluate((left, right), genuine, batch_size=16, verbose=0, return_dict=True)
    scores = np.asarray(network((left, right)), np.float64).reshape(-1)
    assert figures == {"auc": pytest.approx(auc(genuine > 0, scores), abs=1e-6)}
