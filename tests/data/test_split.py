"""Splits are by people, disjoint, and a function of names and seed alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from facepairs.data.index import FaceIndex
from facepairs.data.split import split_people
from facepairs.errors import NotEnough


def index_of(people, photos=3):
    return FaceIndex.from_listing(f"{p}/{i}.jpg" for p in people for i in range(photos))


@given(st.integers(20, 80), st.integers(0, 1000))
def test_parts_are_disjoint_and_whole(people, seed):
    index = index_of([f"P{i:03}" for i in range(people)])
    split = split_people(index, range(people), seed, 0.2, 0.1)
    parts = [set(part.tolist()) for part in vars(split).values()]
    assert set.union(*parts) == set(range(people))
    assert sum(map(len, parts)) == people
    assert len(split.calibration) == max(2, round(people * 0.2))
    assert len(split.test) == max(2, round(people * 0.1))


def test_names_decide_not_numbers():
    names = [f"P{i:03}" for i in range(40)]
    small, large = index_of(names), index_of([*names, "A_first", "Z_last"])
    one = split_people(small, range(40), 1, 0.25, 0.25)
    other = split_people(large, range(1, 41), 1, 0.25, 0.25)
    for a, b in zip(vars(one).values(), vars(other).values(), strict=True):
        assert [small.people[i] for i in a] == [large.people[i] for i in b]


def test_another_seed_deals_otherwise():
    index = index_of([f"P{i:03}" for i in range(40)])
    one, other = (split_people(index, range(40), seed, 0.25, 0.25) for seed in (0, 1))
    assert not np.array_equal(one.test, other.test)


def test_too_few_people_are_refused_with_numbers():
    with pytest.raises(NotEnough, match="needs about 20 such people, and has 4"):
        split_people(index_of(["A", "B", "C", "D"]), range(4), 0, 0.2, 0.2)
    with pytest.raises(NotEnough, match="has 0"):
        split_people(index_of(["A", "B", "C", "D"], photos=1), range(4), 0, 0.2, 0.2)
