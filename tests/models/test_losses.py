"""The objectives, against values computed by hand from angles on a plane."""

import numpy as np
import pytest

from facepairs.models.losses import BinaryLogit, InBatchContrastive


def on_circle(*degrees):
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype("float32")


def slow_contrastive(left, right, genuine, temperature):
    total = 0.0
    for i in range(len(left)):
        rows = np.array([left[i] @ other for other in right]) / temperature
        columns = np.array([other @ right[i] for other in left]) / temperature
        own = left[i] @ right[i] / temperature
        both = np.log(np.exp(rows).sum()) + np.log(np.exp(columns).sum())
        total += genuine[i] * (both / 2 - own)
    return total / genuine.sum()


@pytest.mark.parametrize("genuine", [[1, 1, 1], [1, 0, 1]])
def test_contrastive_by_hand(genuine):
    left, right = on_circle(0, 90, 200), on_circle(20, 100, 120)
    labels = np.array(genuine, "float32")
    loss = float(InBatchContrastive(0.5)(left, right, labels))
    assert loss == pytest.approx(slow_contrastive(left, right, labels, 0.5), rel=1e-5)


def test_contrastive_of_one_pair_is_zero_and_order_of_sides_is_no_matter():
    left, right = on_circle(0, 90), on_circle(10, 70)
    one = np.ones(1, "float32")
    assert float(InBatchContrastive(0.1)(left[:1], right[:1], one)) == pytest.approx(0, abs=1e-5)
    both = np.ones(2, "float32")
    forth = float(InBatchContrastive(0.1)(left, right, both))
    assert forth == pytest.approx(float(InBatchContrastive(0.1)(right, left, both)), rel=1e-5)


def test_contrastive_falls_when_partners_are_near():
    left, labels = on_circle(0, 120, 240), np.ones(3, "float32")
    near = float(InBatchContrastive(0.1)(left, on_circle(5, 125, 245), labels))
    far = float(InBatchContrastive(0.1)(left, on_circle(60, 180, 300), labels))
    assert near < 0.01 < far


def test_a_batch_without_genuine_pairs_has_no_loss():
    left = on_circle(0, 90)
    assert float(InBatchContrastive(0.1)(left, left, np.zeros(2, "float32"))) == 0


def test_binary_logit_by_hand_and_without_overflow():
    scores = np.array([0.0, 2.0, -3.0, 500.0, -500.0], "float32")
    genuine = np.array([1, 1, 0, 1, 0], "float32")
    expected = (np.log(2) + np.log1p(np.exp(-2)) + np.log1p(np.exp(-3))) / 5
    assert float(BinaryLogit()(scores, genuine)) == pytest.approx(expected, rel=1e-5)
    assert float(BinaryLogit()(scores[3:], 1 - genuine[3:])) == pytest.approx(500, rel=1e-5)
