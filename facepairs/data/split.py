"""Splits by people, for folders without official lists."""

import hashlib
import os
import unicodedata
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from facepairs.data.index import FaceIndex
from facepairs.data.minimums import MAX_PAIRS_PER_PERSON, MIN_PAIRS, MIN_PEOPLE
from facepairs.errors import NotEnough
from facepairs.support.words import counted

MIN_OTHER_PEOPLE = 2  # with 2 photos or more, in the training part and in the test part
# With 2 photos or more, in a validation part. In trials with `difference` on 60 people of LFW,
# epochs chosen by 10 people were worse than the last one on average, those by 40 were not.
MIN_VALIDATION_PEOPLE = 40
MAX_VALIDATION_SHARE = 0.1  # of those who would be trained on: more of them would be missed there

People = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PeopleSplit:
    """Disjoint sets of people.

    Attributes:
        training: int64[N], sorted numbers of the people to train on.
        calibration: int64[N], sorted numbers of the people to calibrate on.
        test: int64[N], sorted numbers of the people to test on.
        validation: int64[N], sorted numbers of the people who choose the best epoch; may be empty.
    """

    training: People
    calibration: People
    test: People
    validation: People = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def fitted(self) -> People:
        """All people who influence the weights: training and validation people."""
        return np.union1d(self.training, self.validation)


def split_people(
    index: FaceIndex,
    people: npt.ArrayLike,
    seed: int,
    calibration_share: float,
    test_share: float,
    validation_share: float = 0.0,
) -> PeopleSplit:
    """Split people by a keyed hash of their names, whatever their order or number of photos.

    The shares apply separately to the people with two photos or more and to the others, so that
    each part can form genuine pairs. In a small folder the calibration part gets more than its
    share: as many people as a calibration needs (`data.minimums`). Validation people are taken from
    those who would be trained on, so the other two parts do not depend on their share. If their
    share is less than MIN_VALIDATION_PEOPLE, they are as many where that is at most
    MAX_VALIDATION_SHARE of those who would be trained on, else there are none. A share above
    MAX_VALIDATION_SHARE is taken as it is.

    Args:
        index: The index of the images.
        people: int[P], numbers of the people to split.
        seed: The key of the hash.
        calibration_share: Share of the people to calibrate on, in [0, 1].
        test_share: Share of the people to test on, in [0, 1].
        validation_share: Share of the people to choose the best epoch with, in [0, 1].

    Raises:
        NotEnough: A part would have too few people; the message has the numbers needed. Training,
            and a test part that is asked for, need two people with two photos each.
    """
    allowed = np.unique(np.asarray(people, np.int64))
    counts = index.image_counts[allowed]
    several, single = (
        _in_hash_order(index, group, seed) for group in (allowed[counts >= 2], allowed[counts < 2])
    )
    available = len(several) - MIN_OTHER_PEOPLE  # without the people that training needs
    min_test = MIN_OTHER_PEOPLE if test_share > 0 else 0
    calibration = min(_count(len(several), calibration_share), available - min_test)
    calibration = max(calibration, _calibration_minimum(index, several))
    test = max(min(_count(len(several), test_share), available - calibration), min_test)
    if available < calibration + test:
        raise NotEnough(
            f"{index.root}: {counted(len(several), 'person', 'people')} with 2 photos or more, in "
            f"{counted(int(_possible_pairs(index, several).sum()), 'genuine pair')}; "
            f"{calibration + test + MIN_OTHER_PEOPLE} people or more are needed: {calibration} to "
            f"calibrate ({MIN_PAIRS} genuine pairs of {MIN_PEOPLE} people at least), {test} to "
            f"test and {MIN_OTHER_PEOPLE} to train on; add people or photos"
        )
    validation = _validation_count(len(several), calibration + test, validation_share)
    shares = (calibration_share, test_share, validation_share if validation else 0.0)
    single_counts = (_count(len(single), share) for share in shares)
    parts = zip(
        _cut(several, calibration, test, validation), _cut(single, *single_counts), strict=True
    )
    return PeopleSplit(*(np.sort(np.concatenate(part)) for part in parts))


def _validation_count(people: int, others: int, share: float) -> int:
    """Return the number of validation people with two photos, 0 if there are too few."""
    wanted, available = _count(people, share), people - others
    if wanted >= MIN_VALIDATION_PEOPLE or share > MAX_VALIDATION_SHARE:
        count = min(wanted, available - MIN_OTHER_PEOPLE)
        return count if count >= MIN_OTHER_PEOPLE else 0
    enough = share > 0 and MAX_VALIDATION_SHARE * available >= MIN_VALIDATION_PEOPLE
    return MIN_VALIDATION_PEOPLE if enough else 0


def _cut(people: People, calibration: int, test: int, validation: int) -> tuple[People, ...]:
    """Cut people, in their order, into those to train, calibrate, test and validate on."""
    calibrating, testing, validating, training = np.split(
        people, np.cumsum([calibration, test, validation])
    )
    return training, calibrating, testing, validating


def _count(people: int, share: float) -> int:
    """Return the number of people in a share: at least two, if there are two."""
    return min(people, max(2, round(people * share))) if share > 0 and people >= 2 else 0


def _calibration_minimum(index: FaceIndex, people: People) -> int:
    """Return how many of the people, in this order, a calibration needs.

    If all of them have too few pairs, further people with one pair each are assumed.
    """
    pairs = _possible_pairs(index, people).cumsum()
    missing = MIN_PAIRS - (int(pairs[-1]) if len(pairs) else 0)
    needed = len(people) + missing if missing > 0 else int(np.searchsorted(pairs, MIN_PAIRS)) + 1
    return max(MIN_PEOPLE, needed)


def _possible_pairs(index: FaceIndex, people: People) -> npt.NDArray[np.int64]:
    """Return how many genuine pairs each person can contribute to a calibration."""
    counts = index.image_counts[people]
    return np.asarray(np.minimum(counts * (counts - 1) // 2, MAX_PAIRS_PER_PERSON), np.int64)


def _in_hash_order(index: FaceIndex, people: People, seed: int) -> People:
    """Return people in the order of a keyed hash of their names."""
    key = str(seed).encode()
    hashes = bytearray()
    for person in people:
        name = os.fsencode(unicodedata.normalize("NFC", index.people[int(person)]))
        hashes += hashlib.blake2b(name, digest_size=16, key=key).digest()
    high, low = np.frombuffer(hashes, ">u8").reshape(-1, 2).T
    return people[np.lexsort((low, high))]
