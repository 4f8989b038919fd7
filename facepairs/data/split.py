"""Splits by people, for folders without official lists."""

import hashlib
import os
import unicodedata
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from facepairs.data.index import FaceIndex
from facepairs.errors import NotEnough


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
    can form genuine pairs. Raises NotEnough when a part that is asked for cannot: training,
    calibration and test need two people with two photos each.
    """
    allowed = np.unique(np.asarray(people, np.int64))
    several = index.image_counts[allowed] >= 2
    parts: list[list[int]] = [[], [], []]
    for group in (allowed[several], allowed[~several]):
        order = sorted(group.tolist(), key=lambda p: _rank(index.people[p], seed))
        calibration = _share(len(order), calibration_share)
        test = _share(len(order), test_share)
        parts[1] += order[:calibration]
        parts[2] += order[calibration : calibration + test]
        parts[0] += order[calibration + test :]
    split = PeopleSplit(*(np.array(sorted(part), np.int64) for part in parts))
    shares = (1.0, calibration_share, test_share)
    for name, part, share in zip(
        ("training", "calibration", "test"), vars(split).values(), shares, strict=True
    ):
        with_pairs = int((index.image_counts[part] >= 2).sum())
        if share > 0 and with_pairs < 2:
            raise NotEnough(
                f"{index.root}: only {with_pairs} people with 2 photos or more would be left for "
                f"{name}; facepairs needs about 20 such people, and has {int(several.sum())}"
            )
    return split


def _share(count: int, share: float) -> int:
    return min(count, max(2, round(count * share))) if share > 0 and count >= 2 else 0


def _rank(name: str, seed: int) -> bytes:
    plain = os.fsencode(unicodedata.normalize("NFC", name))
    return hashlib.blake2b(plain, digest_size=16, key=str(seed).encode()).digest()
