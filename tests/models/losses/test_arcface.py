"""ArcFace: values by hand, and people in any order."""

import numpy as np
import pytest
from tiny.circle import batch, cosine, on_circle

from facepairs.models.losses import ArcFace

MARGIN, TEMPERATURE = 0.3, 0.25
CENTRES = [0, 100, 220]
PAIRS = ([10, 80, 200], [350, 130, 260], [0, 1, 2])


def build(centres=CENTRES, margin=MARGIN):
    loss = ArcFace(len(centres), 2, TEMPERATURE, margin)
    loss.directions.assign(3 * on_circle(*centres))  # their length is of no matter
    return loss


def with_margin(angle, centre):
    apart = np.arccos(cosine(angle, centre))
    if apart + MARGIN < np.pi:
        return np.cos(apart + MARGIN)
    return np.cos(apart) - MARGIN * np.sin(MARGIN)


def slow(angles, people, centres):
    """Compute the mean cost of the images."""
    costs = []
    for angle, person in zip(angles, people, strict=True):
        own = with_margin(angle, centres[person])
        rest = [cosine(angle, c) for k, c in enumerate(centres) if k != person]
        costs.append(np.log(np.exp((np.array([own, *rest]) - own) / TEMPERATURE).sum()))
    return np.mean(costs)


@pytest.mark.parametrize("turn", [0, 60, 175, 182])  # the last two beyond π with the margin
def test_losses_match_values_computed_by_hand(turn):
    centres = np.add(CENTRES, turn)
    left, right, people = PAIRS
    value = float(build(centres=centres)(*batch(*PAIRS)))
    expected = slow([*left, *right], people * 2, centres)
    assert value == pytest.approx(expected, rel=1e-4)
    assert [v.name for v in build().trainable_variables] == ["directions"]


def test_the_seed_determines_the_initial_directions():
    import keras

    starts = []
    for seed in (3, 3, 4):
        keras.utils.set_random_seed(seed)
        starts.append(np.asarray(ArcFace(50, 16).directions))
    assert np.array_equal(starts[0], starts[1])
    assert not np.array_equal(starts[0], starts[2])
    assert np.linalg.norm(starts[0], axis=1).mean() == pytest.approx(1, abs=0.1)
