"""Properties of every objective on embeddings."""

from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny.circle import batch

from facepairs.models.losses import LOSSES, EmbeddingLoss

PEOPLE = 6
ANGLES = st.lists(st.floats(0, 360), min_size=2 * PEOPLE, max_size=2 * PEOPLE)
every = pytest.mark.parametrize("name", LOSSES)


def value_and_gradients(loss, given_batch):
    sides = [tf.constant(side) for side in given_batch[:2]]
    with tf.GradientTape() as tape:
        tape.watch(sides)
        value = loss(*sides, *given_batch[2:])
    return float(value), tape.gradient(value, sides)


@every
@settings(max_examples=5, deadline=None)
@given(angles=ANGLES, seed=st.integers(0, 99))
def test_order_and_sides_do_not_matter(name, angles, seed):
    loss = LOSSES[name]
    pairs = batch(angles[:PEOPLE], angles[PEOPLE:], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 5, 4])
    value = float(loss(*pairs))
    order = np.random.default_rng(seed).permutation(PEOPLE)
    left, right, genuine = (array[order] for array in pairs)
    for given_batch in ((left, right, genuine), (right, left, genuine)):
        assert float(loss(*given_batch)) == pytest.approx(value, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_with_centre_the_batch_mean_is_taken_out_first(shift):
    rows = np.random.default_rng(0).normal(size=(6, 2, 16)).astype("float32") + shift
    genuine = np.array([1, 0, 1, 1, 0, 1], "float32")
    plain, centred = EmbeddingLoss(), EmbeddingLoss(centre=True)
    moved = rows - rows.mean(axis=(0, 1))
    moved /= np.linalg.norm(moved, axis=-1, keepdims=True)
    assert float(centred(genuine, rows)) == pytest.approx(float(plain(genuine, moved)), rel=1e-5)
    assert float(centred(genuine, rows)) != pytest.approx(float(plain(genuine, rows)), rel=1e-3)
    again = EmbeddingLoss.from_config(centred.get_config())
    assert float(again(genuine, rows)) == float(centred(genuine, rows))


NEAR = ([0, 60, 120, 180, 240, 300], [2, 62, 122, 182, 242, 302])


@every
def test_the_loss_falls_as_partners_approach_and_others_move_apart(name):
    loss = LOSSES[name]
    if name == "triplet":  # wide: a semi-hard negative lies beyond the partner
        loss = partial(loss, margin=0.9)
    apart = float(loss(*batch(*NEAR, range(PEOPLE))))
    partners_far = float(loss(*batch(NEAR[0], np.add(NEAR[1], 40), range(PEOPLE))))
    others_near = float(loss(*batch(*(np.divide(side, 6) for side in NEAR), range(PEOPLE))))
    assert 0 <= apart < partners_far
    assert apart < others_near


@every
@pytest.mark.parametrize(
    ("left", "right"),
    [([0] * 6, [0] * 6), (NEAR[0], NEAR[0]), (NEAR[0], np.add(NEAR[0], 180)),
     ([0, 180] * 3, [180, 0] * 3), ([1e-5, 2e-5, 3e-5, 0, 0, 0], [0] * 6)],
    ids=["all equal", "pairs equal", "pairs opposite", "two points", "almost equal"],
)  # fmt: skip
@pytest.mark.parametrize("others", [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], [0, 1, 2, 9, 4, 11]])
def test_gradients_are_finite_in_extreme_batches(name, left, right, others):
    value, gradients = value_and_gradients(LOSSES[name], batch(left, right, range(6), others))
    assert np.isfinite(value)
    assert value >= -1e-5
    for gradient in gradients:
        assert np.isfinite(np.asarray(gradient)).all()
        assert np.abs(gradient).max() < 1e3


@every
@settings(max_examples=5, deadline=None)
@given(angles=ANGLES)
def test_gradients_are_finite_at_any_angles(name, angles):
    pairs = batch(angles[:PEOPLE], angles[PEOPLE:], range(PEOPLE))
    loss = partial(LOSSES[name], temperature=0.01) if name == "in-batch" else LOSSES[name]
    value, gradients = value_and_gradients(loss, pairs)
    assert np.isfinite(value)
    assert all(np.isfinite(np.asarray(gradient)).all() for gradient in gradients)


@pytest.mark.parametrize("name", ["in-batch", "triplet"])
def test_a_batch_with_nothing_to_learn_costs_nothing(name):
    loss = LOSSES[name]
    for pairs in (
        batch([0], [50], [0]),  # one genuine pair: nobody to tell it from
        batch([0], [50], [0], [1]),
        batch([0, 10, 20], [5, 15, 25], [0, 1, 2], [3, 4, 5]),  # no genuine pair
    ):
        value, gradients = value_and_gradients(loss, pairs)
        assert value == pytest.approx(0, abs=1e-5)
        assert all(np.asarray(gradient) == pytest.approx(0, abs=1e-5) for gradient in gradients)


@every
def test_a_loss_is_restored_from_its_configuration(name):
    loss = EmbeddingLoss(name, temperature=0.2, margin=0.3)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert type(again) is type(loss)
    left, right, genuine = batch([0, 40, 90], [20, 80, 200], [0, 1, 2])
    rows = np.stack([left, right], axis=1)
    assert float(again(genuine, rows)) == float(loss(genuine, rows))
    other = EmbeddingLoss(name, temperature=0.5, margin=0.9)
    assert float(other(genuine, rows)) != float(loss(genuine, rows))


@every
def test_losses_compute_in_float32_after_a_half_precision_network(name):
    left, right, genuine = batch([0, 40, 90], [20, 80, 200], [0, 1, 2])
    rows = np.stack([left, right], axis=1)
    value = EmbeddingLoss(name)(genuine, tf.cast(rows, tf.bfloat16))
    assert value.dtype == tf.float32
    assert float(value) == pytest.approx(float(LOSSES[name](left, right, genuine)), abs=0.1)


@every
def test_the_defaults_of_a_loss_are_those_of_its_function(name):
    left, right, genuine = batch([0, 40, 90], [20, 80, 200], [0, 1, 2])
    rows = np.stack([left, right], axis=1)
    wanted = float(LOSSES[name](left, right, genuine))
    assert float(EmbeddingLoss(name)(genuine, rows)) == pytest.approx(wanted, rel=1e-6)
