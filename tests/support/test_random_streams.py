"""Random streams: fixed numbers, no two uses alike, the same words on every machine."""

import numpy as np
import pytest

from facepairs.errors import BadConfig
from facepairs.support.random_streams import MAX_SEED, Stream, raw_words, unit


def test_streams_share_no_number() -> None:
    assert len({int(stream) for stream in Stream.__members__.values()}) == len(Stream.__members__)


def test_the_numbers_of_streams_stay_as_they_are_part_of_a_seeds_meaning() -> None:
    numbers = [0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 15, 19, 20, 21]
    assert sorted(Stream)[: len(numbers)] == numbers  # a new one is larger


def test_words_of_all_streams_differ() -> None:
    drawn = {raw_words(7, stream, 0, 0, 2).tobytes() for stream in Stream}
    assert len(drawn) == len(Stream)


def test_raw_words_are_golden() -> None:
    assert raw_words(42, Stream.PAIRS, 3, 5, 2).tolist() == [
        12367640064583638131,
        15008545511260009917,
    ]


def test_a_longer_block_begins_with_a_shorter_one() -> None:
    long = raw_words(1, Stream.FACE_NOISE, 2, 3, 100)
    assert np.array_equal(raw_words(1, Stream.FACE_NOISE, 2, 3, 7), long[:7])


def test_unit_maps_the_ends_of_the_range_into_the_half_open_interval() -> None:
    words = np.array([0, 2**64 - 1], np.uint64)
    assert unit(words).tolist() == [0.0, 1 - 2.0**-53]


@pytest.mark.parametrize("seed", [0, MAX_SEED])
def test_the_ends_of_the_range_are_seeds(seed: int) -> None:
    assert len(raw_words(seed, Stream.PAIRS, 0, 0, 3)) == 3


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    assert MAX_SEED == 2**63 - 1
    with pytest.raises(BadConfig, match=f"seed {seed}"):
        raw_words(seed, Stream.PAIRS, 0, 0, 1)
