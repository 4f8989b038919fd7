"""The shards of a batch together draw the numbers that one device with the whole batch draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from facepairs.models.augment import RandomFace
from facepairs.models.replicas import StepRandom, split_batch
from facepairs.support.random_streams import Stream


@given(st.integers(1, 500), st.integers(1, 64))
def test_shards_are_contiguous_and_differ_by_at_most_one_pair(pairs, replicas):
    shards = split_batch(pairs, replicas)
    sizes = [shard.end - shard.begin for shard in shards]
    assert [shard.begin for shard in shards] == [0, *np.cumsum(sizes)[:-1]]
    assert sum(sizes) == pairs
    assert max(sizes) - min(sizes) <= 1


def join(pieces):
    """Join the rows of the shards in the order of the whole batch, lefts before rights."""
    sides = [np.split(np.asarray(piece), 2) for piece in pieces]
    return np.concatenate([left for left, _ in sides] + [right for _, right in sides])


@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
def test_shards_draw_the_numbers_of_the_whole_batch(replicas):
    whole = StepRandom(7, 12)
    parts = [StepRandom(7, 12, shard) for shard in split_batch(11, replicas)]
    rows = [2 * (part.shard.end - part.shard.begin) for part in parts]
    values = np.random.default_rng(0).random((22, 40), np.float32)
    own = [part.shard.take(values) for part in parts]
    uniform = [
        part.uniform(Stream.AUGMENTATION, (n, 9), -1, 1)
        for part, n in zip(parts, rows, strict=True)
    ]
    assert np.array_equal(
        join(uniform), np.asarray(whole.uniform(Stream.AUGMENTATION, (22, 9), -1, 1))
    )
    dropped = [
        part.dropout(Stream.DROPOUT, rows, 0.2) for part, rows in zip(parts, own, strict=True)
    ]
    assert np.array_equal(join(dropped), np.asarray(whole.dropout(Stream.DROPOUT, values, 0.2)))


def test_seeds_streams_and_nearby_steps_draw_different_numbers():
    drawn = {
        np.asarray(StepRandom(seed, step).uniform(stream, (4, 4))).tobytes()
        for seed in (0, 1)
        for step in range(40)
        for stream in (Stream.AUGMENTATION, Stream.DROPOUT)
    }
    assert len(drawn) == 2 * 2 * 40


def test_augmentation_depends_on_the_position_in_the_whole_batch():
    faces = np.random.default_rng(1).random((10, 32, 32, 3), np.float32)
    layer = RandomFace(1.0)
    whole = np.asarray(layer(faces, random=StepRandom(3, 5)))
    parts = [
        layer(shard.take(faces), random=StepRandom(3, 5, shard)) for shard in split_batch(5, 2)
    ]
    assert join(parts) == pytest.approx(whole, abs=1e-6)
