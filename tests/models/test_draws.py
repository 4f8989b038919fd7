"""Parts of a batch together draw, and lose, what one device with the whole batch does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from facepairs.models.augment import RandomFace
from facepairs.models.step_random import StepRandom, parts


@given(st.integers(1, 500), st.integers(1, 64))
def test_parts_follow_each_other_and_differ_by_one_pair_at_most(pairs, replicas):
    found = parts(pairs, replicas)
    sizes = [part.end - part.begin for part in found]
    assert [part.begin for part in found] == [0, *np.cumsum(sizes)[:-1]]
    assert sum(sizes) == pairs
    assert max(sizes) - min(sizes) <= 1


def joined(pieces):
    """Join lefts-then-rights of the parts as those of the whole batch."""
    sides = [np.split(np.asarray(piece), 2) for piece in pieces]
    return np.concatenate([left for left, _ in sides] + [right for _, right in sides])


@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
def test_parts_draw_what_the_whole_batch_draws(replicas):
    whole = StepRandom(7, 12)
    dealt = [StepRandom(7, 12, part) for part in parts(11, replicas)]
    rows = [2 * (draws.part.end - draws.part.begin) for draws in dealt]
    values = np.random.default_rng(0).random((22, 40), np.float32)
    own = [draws.part.rows(values) for draws in dealt]
    uniform = [draws.uniform(0, (n, 9), -1, 1) for draws, n in zip(dealt, rows, strict=True)]
    assert np.array_equal(joined(uniform), np.asarray(whole.uniform(0, (22, 9), -1, 1)))
    dropped = [draws.dropout(1, some, 0.2) for draws, some in zip(dealt, own, strict=True)]
    assert np.array_equal(joined(dropped), np.asarray(whole.dropout(1, values, 0.2)))


def test_draws_differ_by_seed_step_and_number():
    drawn = [
        np.asarray(StepRandom(seed, step).uniform(number, (4, 4))).tobytes()
        for seed, step, number in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    ]
    assert len(set(drawn)) == 3  # the next step's first draw is this one's second
    assert drawn[2] == drawn[3]


def test_faces_are_augmented_by_their_place_in_the_whole_batch():
    faces = np.random.default_rng(1).random((10, 32, 32, 3), np.float32)
    layer = RandomFace(1.0, 0.2)
    whole = np.asarray(layer(faces, draws=StepRandom(3, 5)))
    dealt = [layer(part.rows(faces), draws=StepRandom(3, 5, part)) for part in parts(5, 2)]
    assert joined(dealt) == pytest.approx(whole, abs=1e-6)
