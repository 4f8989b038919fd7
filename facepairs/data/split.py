"""Splits by people, for folders without official lists."""

import hashlib
import os
import unicodedata
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from facepairs.data.index import FaceIndex
from facepairs.data.minimums import LEAST_PAIRS, LEAST_PEOPLE, MOST_OF_ONE
from facepairs.errors import NotEnough

LEAST_OTHERS = 2  # people with 2 photos or more to train on, and to test on

People = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PeopleSplit:
    """Person numbers (int64, sorted) to train on, to calibrate on, and to test on: disjoint."""

    training: npt.NDArray[np.int64]
    calibration: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]


def split_people(
    index: FaceIndex,
    people: npt.ArrayLike,
    seed: int,
    calibration_share: float,
    test_share: float,
) -> PeopleSplit:
    """Deal people out by a keyed hash of their names, whatever their order or number of photos.

    Shares are of the people with two photos or more and of the others separately, so that each part
    can form genuine pairs. In a small folder calibration gets more than its share: as many people
    as it takes to say anything (`data.enough`). Raises NotEnough, with the numbers, when nobody is
    then left for a part that is asked for: training and test need two people with two photos each.
    """
    allowed = np.unique(np.asarray(people, np.int64))
    counts = index.image_counts[allowed]
    several, single = (
        _in_order(index, group, seed) for group in (allowed[counts >= 2], allowed[counts < 2])
    )
    people_left = len(several) - LEAST_OTHERS  # once training has its people
    fewest_test = LEAST_OTHERS if test_share > 0 else 0
    calibration = min(_share(len(several), calibration_share), people_left - fewest_test)
    calibration = max(calibration, _least(index, several))
    test = min(_share(len(several), test_share), people_left - calibration)
    test = max(test, fewest_test)
    if people_left < calibration + test:
        raise NotEnough(_too_few(index, several, calibration, test))
    shares = (_share(len(single), share) for share in (calibration_share, test_share))
    dealt = zip(_dealt(several, calibration, test), _dealt(single, *shares), strict=True)
    return PeopleSplit(*(np.sort(np.concatenate(part)) for part in dealt))


def _dealt(order: People, calibration: int, test: int) -> tuple[People, People, People]:
    """Cut people, in their order, into those to train on, to calibrate on and to test on."""
    rest = calibration + test
    return order[rest:], order[:calibration], order[calibration:rest]


def _least(index: FaceIndex, order: People) -> int:
    """Give how many of the people, in this order, calibration takes.

    Where all of them fall short, further people are taken to bring one pair each.
    """
    pairs = _pairs(index, order)
    missing = LEAST_PAIRS - int(pairs.sum())
    enough = (
        len(order) + missing if missing > 0 else np.searchsorted(pairs.cumsum(), LEAST_PAIRS) + 1
    )
    return max(LEAST_PEOPLE, int(enough))


def _pairs(index: FaceIndex, order: People) -> npt.NDArray[np.int64]:
    """Give how many genuine pairs each person can bring to calibration."""
    counts = index.image_counts[order]
    pairs: npt.NDArray[np.int64] = np.minimum(counts * (counts - 1) // 2, MOST_OF_ONE)
    return pairs


def _too_few(index: FaceIndex, order: People, calibration: int, test: int) -> str:
    """Say what is there and what is needed."""
    return (
        f"{index.root}: {len(order)} people have 2 photos or more and form "
        f"{int(_pairs(index, order).sum())} genuine pairs; {calibration + test + LEAST_OTHERS} or "
        f"more are needed: {calibration} to calibrate ({LEAST_PAIRS} genuine pairs of "
        f"{LEAST_PEOPLE} people at least), {test} to test and {LEAST_OTHERS} to train on; add "
        "people or photos"
    )


def _share(count: int, share: float) -> int:
    return min(count, max(2, round(count * share))) if share > 0 and count >= 2 else 0


def _in_order(index: FaceIndex, people: People, seed: int) -> People:
    """Give people, int64[P], in the order of a keyed hash of their names."""
    key = str(seed).encode()
    ranks = bytearray()
    for person in people:
        plain = os.fsencode(unicodedata.normalize("NFC", index.people[int(person)]))
        ranks += hashlib.blake2b(plain, digest_size=16, key=key).digest()
    high, low = np.frombuffer(ranks, ">u8").reshape(-1, 2).T
    return people[np.lexsort((low, high))]
