"""Random streams: fixed numbers, no two uses alike, the same words on every machine."""

import numpy as np
import pytest

from facepairs.errors import BadConfig
from facepairs.support.random_streams import MAX_SEED, Stream, raw_words, unit

PUBLISHED = {
    "PAIRS": 0,
    "FACE_IDENTITY": 1,
    "FACE_SHOT": 2,
    "FACE_MARKS": 3,
    "FACE_BACKDROP": 4,
    "FACE_NOISE": 5,
    "FACE_NAMES": 6,
    "FISHER_SAMPLE": 9,
    "PEOPLE_WITH_SEVERAL_PHOTOS": 10,
    "OWN_PEOPLE_STUDY": 11,
    "PEOPLE_WITH_ONE_PHOTO": 12,
    "PHOTOS_OF_DISTINCT_PEOPLE": 13,
    "EXPORT_CHECK": 15,
    "AUGMENTATION": 16,
    "DROPOUT": 17,
    "BOOTSTRAP_PEOPLE": 18,
    "FACE_FAMILY": 19,
    "FACE_CHANGES": 20,
    "IDENTIFICATION": 21,
}


def test_streams_keep_their_numbers_and_share_none() -> None:
    # A seed stands for the same data and the same training in every version.
    assert {name: int(stream) for name, stream in Stream.__members__.items()} == PUBLISHED
    assert len(set(PUBLISHED.values())) == len(PUBLISHED)


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


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    with pytest.raises(BadConfig, match=f"seed {seed}"):
        raw_words(seed, Stream.PAIRS, 0, 0, 1)
