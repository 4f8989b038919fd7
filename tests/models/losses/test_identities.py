"""CosFace and ArcFace: values by hand, and people in any order and with any number of photos."""

import numpy as np
import pytest
from tiny.circle import batch, cosine, on_circle

from facepairs.models.losses.identity import ArcFace, CosFace

MARGIN, TEMPERATURE = 0.3, 0.25
both = pytest.mark.parametrize("kind", [CosFace, ArcFace])
CENTRES = [0, 100, 220]
PAIRS = ([10, 80, 200], [350, 130, 260], [0, 1, 2])


def build(kind, photos=(2, 3, 4), centres=CENTRES, margin=MARGIN, **options):
    loss = kind(photos, 2, TEMPERATURE, margin, **options)
    loss.directions.assign(3 * on_circle(*centres))  # their length is of no matter
    return loss


def with_margin(kind, angle, centre):
    if kind is CosFace:
        return cosine(angle, centre) - MARGIN
    apart = np.arccos(cosine(angle, centre))
    if apart + MARGIN < np.pi:
        return np.cos(apart + MARGIN)
    return np.cos(apart) - MARGIN * np.sin(MARGIN)


def slow(kind, angles, people, centres, strangers=()):
    """Compute the mean cost of the images whose people are classes (others are None)."""
    costs = []
    for angle, person in zip(angles, people, strict=True):
        if person is None:
            continue
        own = with_margin(kind, angle, centres[person])
        rest = [cosine(angle, c) for k, c in enumerate(centres) if k != person]
        rest += [cosine(angle, stranger) for stranger in strangers]
        costs.append(np.log(np.exp((np.array([own, *rest]) - own) / TEMPERATURE).sum()))
    return np.mean(costs)


@both
@pytest.mark.parametrize("turn", [0, 60, 175, 182])  # the last two beyond π with the margin
def test_losses_match_values_computed_by_hand(kind, turn):
    centres = np.add(CENTRES, turn)
    left, right, people = PAIRS
    value = float(build(kind, centres=centres)(*batch(*PAIRS)))
    expected = slow(kind, [*left, *right], people * 2, centres)
    assert value == pytest.approx(expected, rel=1e-4)


@both
def test_a_larger_margin_costs_more(kind):
    costs = [float(build(kind, margin=margin)(*batch(*PAIRS))) for margin in (0, 0.1, 0.5)]
    assert costs == sorted(costs)
    assert costs[0] < costs[1] < costs[2]


def test_without_a_margin_both_losses_are_equal():
    cos, arc = (float(build(kind, margin=0.0)(*batch(*PAIRS))) for kind in (CosFace, ArcFace))
    assert cos == pytest.approx(arc, rel=1e-5)


@both
@pytest.mark.parametrize("singletons", ["classes", "negatives", "left-out"])
def test_the_people_can_be_numbered_in_any_order(kind, singletons):
    photos, order = np.array([2, 1, 4, 3]), np.array([2, 0, 3, 1])  # new number → old number
    number = np.argsort(order)
    centres = {0: 0, 1: 100, 2: 220, 3: 300}
    left, right, people = [10, 80, 200, 310], [350, 80, 260, 290], np.arange(4)
    values = []
    for named, counts in ((people, photos), (number[people], photos[order])):
        who = range(4) if counts is photos else order
        kept = [p for p in who if photos[p] > 1 or singletons == "classes"]
        loss = build(kind, counts, [centres[p] for p in kept], singletons=singletons)
        values.append(float(loss(*batch(left, right, named))))
    assert values[0] == pytest.approx(values[1], rel=1e-5)


LEFT, RIGHT = [10, 150, 200], [350, 155, 260]  # person 1 has the one photo, twice


@both
def test_a_person_with_one_photo_can_be_a_class(kind):
    loss = build(kind, (2, 1, 2))
    assert loss.directions.shape == (3, 2)
    value = float(loss(*batch(LEFT, RIGHT, [0, 1, 2])))
    assert value == pytest.approx(slow(kind, LEFT + RIGHT, [0, 1, 2] * 2, CENTRES), rel=1e-4)


@both
def test_a_person_with_one_photo_can_be_left_out(kind):
    loss = build(kind, (2, 1, 2), [0, 220], singletons="left-out")
    value = float(loss(*batch(LEFT, RIGHT, [0, 1, 2])))
    expected = slow(kind, LEFT + RIGHT, [0, None, 1] * 2, [0, 220])
    assert value == pytest.approx(expected, rel=1e-4)
    elsewhere = float(loss(*batch([10, 20, 200], [350, 30, 260], [0, 1, 2])))
    assert elsewhere == pytest.approx(value, rel=1e-5)


@both
def test_a_person_with_one_photo_can_be_a_negative_only(kind):
    loss = build(kind, (2, 1, 2), [0, 220], singletons="negatives")
    value = float(loss(*batch(LEFT, RIGHT, [0, 1, 2])))
    expected = slow(kind, LEFT + RIGHT, [0, None, 1] * 2, [0, 220], strangers=[150, 155])
    assert value == pytest.approx(expected, rel=1e-4)


@both
@pytest.mark.parametrize("singletons", ["negatives", "left-out"])
def test_a_batch_of_people_without_a_class_costs_nothing(kind, singletons):
    loss = build(kind, (2, 1, 1), [0], singletons=singletons)
    assert float(loss(*batch([10, 50], [20, 60], [1, 2]))) == 0


@both
def test_no_person_to_be_a_class_is_an_error(kind):
    with pytest.raises(ValueError, match="2 photos"):
        kind((1, 1), 2, singletons="left-out")


@both
def test_the_seed_determines_the_initial_directions(kind):
    import keras

    starts = []
    for seed in (3, 3, 4):
        keras.utils.set_random_seed(seed)
        starts.append(np.asarray(kind([2] * 50, 16).directions))
    assert np.array_equal(starts[0], starts[1])
    assert not np.array_equal(starts[0], starts[2])
    assert np.linalg.norm(starts[0], axis=1).mean() == pytest.approx(1, abs=0.1)
