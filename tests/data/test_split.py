"""Splits are by people, disjoint, and a function of names and seed alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facepairs.data.index import FaceIndex
from facepairs.data.minimums import MIN_PAIRS, MIN_PEOPLE
from facepairs.data.split import MIN_VALIDATION_PEOPLE, split_people
from facepairs.errors import NotEnough


def index_of(people, photos=3):
    return FaceIndex.from_listing(f"{p}/{i}.jpg" for p in people for i in range(photos))


def sizes_of(split):
    return tuple(map(len, (split.training, split.calibration, split.test, split.validation)))


@pytest.mark.parametrize(
    ("people", "shares", "sizes"),
    [
        (30, (0.9, 0.3), (2, 26, 2, 0)),  # two are left to train on, and two to test
        (30, (0.5, 0.6), (2, 15, 13, 0)),
        (30, (0.2, 0.0), (23, 7, 0, 0)),  # no test is asked for
        (14, (0.15, 0.15, 0.5), (2, 7, 2, 3)),
        (12, (0.15, 0.15, 0.5), (3, 7, 2, 0)),  # one would be left to validate
        (60, (0.15, 0.15, 0.1), (42, 9, 9, 0)),  # at most a tenth, and that is too few
        (60, (0.15, 0.15, 0.11), (35, 9, 9, 7)),
    ],
)
def test_where_people_are_scarce_training_and_test_keep_two(people, shares, sizes):
    index = index_of([f"P{i:03}" for i in range(people)])
    assert sizes_of(split_people(index, range(people), 0, *shares)) == sizes


def test_a_split_is_golden():
    # It never changes: a seed means the same people everywhere, and bundles know who was tested.
    index = FaceIndex.from_listing(f"P{p:02}/{i}.jpg" for p in range(16) for i in range(p % 4 + 1))
    split = split_people(index, range(16), 7, 0.3, 0.2)
    assert [split.calibration.tolist(), split.test.tolist()] == [
        [1, 3, 4, 5, 7, 8, 11, 13, 14],
        [0, 6, 12, 15],
    ]


def test_a_split_depends_on_names_not_numbers():
    names = [f"P{i:03}" for i in range(40)]
    small, large = index_of(names), index_of([*names, "A_first", "Z_last"])
    one = split_people(small, range(40), 1, 0.25, 0.25)
    other = split_people(large, range(1, 41), 1, 0.25, 0.25)
    for a, b in zip(vars(one).values(), vars(other).values(), strict=True):
        assert [small.people[i] for i in a] == [large.people[i] for i in b]
    assert not np.array_equal(split_people(small, range(40), 2, 0.25, 0.25).test, one.test)


def test_validation_people_are_taken_from_the_training_people_alone():
    photos = [1, 2, 3] * 600
    index = FaceIndex.from_listing(
        f"P{p:04}/{i}.jpg" for p, n in enumerate(photos) for i in range(n)
    )
    without = split_people(index, range(1800), 3, 0.15, 0.15)
    split = split_people(index, range(1800), 3, 0.15, 0.15, 0.04)
    assert np.array_equal(split.calibration, without.calibration)
    assert np.array_equal(split.test, without.test)
    assert not len(without.validation)
    assert not np.intersect1d(split.training, split.validation).size
    assert np.array_equal(split.fitted, without.training)
    several = (index.image_counts[split.validation] >= 2).sum()
    assert (several, len(split.validation)) == (48, 48 + 24)  # 4 % of each kind


@pytest.mark.parametrize(("people", "validating"), [(60, 0), (500, 0), (600, 40), (1200, 48)])
def test_nobody_validates_where_people_are_too_few(people, validating):
    index = index_of([f"P{i:04}" for i in range(people)])
    split = split_people(index, range(people), 0, 0.15, 0.15, 0.04)
    assert len(split.validation) == validating
    assert validating == 0 or validating >= MIN_VALIDATION_PEOPLE
    assert len(split_people(index, range(people), 0, 0.15, 0.15, 0.2).validation) == people // 5


@pytest.mark.parametrize(
    ("people", "photos", "sizes"),
    [(10, 4, (2, 6, 2)), (20, 3, (10, 7, 3)), (24, 2, (2, 20, 2)), (60, 3, (42, 9, 9))],
)
def test_calibration_gets_the_people_it_needs(people, photos, sizes):
    index = index_of([f"P{i:03}" for i in range(people)], photos)
    split = split_people(index, range(people), 0, 0.15, 0.15)
    assert sizes_of(split) == (*sizes, 0)
    assert len(split.calibration) * photos * (photos - 1) // 2 >= MIN_PAIRS


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(0, 9), st.lists(st.integers(1, 6), min_size=1, max_size=40))
def test_every_part_can_form_pairs_or_there_are_too_few_people(share, seed, photos):
    index = FaceIndex.from_listing(
        f"P{p:03}/{i}.jpg" for p, n in enumerate(photos) for i in range(n)
    )
    try:
        split = split_people(index, range(len(photos)), seed, share / 50, 0.1)
    except NotEnough:
        # 20 people with one pair each calibrate, 2 test and 2 train: that is always enough.
        assert sum(count >= 2 for count in photos) < 24
        return
    counts = index.image_counts
    assert sorted(np.concatenate(list(vars(split).values()))) == list(range(len(photos)))
    assert (counts[split.calibration] >= 2).sum() >= MIN_PEOPLE
    assert (counts[split.calibration] * (counts[split.calibration] - 1) // 2).sum() >= MIN_PAIRS
    assert min((counts[part] >= 2).sum() for part in (split.training, split.test)) >= 2
