"""Reproducible random numbers: named streams of the counter-based generator Philox.

The words of a stream are a pure function of (seed, stream, epoch, block), without hidden state.
NumPy may change how its distributions use a generator, but never the raw words of Philox, so the
mapping from words to numbers is done in this package and a seed means the same on every machine.

References:
    Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
"""

from enum import IntEnum, unique

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadConfig

MAX_SEED = 2**63 - 1


@unique
class Stream(IntEnum):
    """Every use of random numbers in the package; no two uses share a stream.

    The numbers never change: they are part of a seed's meaning. A new use gets a new number. Not
    listed is the fixed draw of halves in `evaluation`, which is PAIRS for one seed (`HALVES_KEY`).
    """

    PAIRS = 0
    FACE_IDENTITY = 1
    FACE_SHOT = 2
    FACE_MARKS = 3
    FACE_BACKDROP = 4
    FACE_NOISE = 5
    FACE_NAMES = 6
    FISHER_SAMPLE = 9
    PEOPLE_WITH_SEVERAL_PHOTOS = 10
    OWN_PEOPLE_STUDY = 11
    PEOPLE_WITH_ONE_PHOTO = 12
    PHOTOS_OF_DISTINCT_PEOPLE = 13
    EXPORT_CHECK = 15
    FACE_FAMILY = 19
    FACE_CHANGES = 20
    IDENTIFICATION = 21


def raw_words(
    seed: int, stream: Stream, epoch: int, block: int, count: int
) -> npt.NDArray[np.uint64]:
    """Return the first `count` raw words of a block.

    Args:
        seed: From 0 to 2**63 - 1.
        stream: The use of the numbers.
        epoch: Non-negative; its meaning depends on the stream (an epoch, a person).
        block: Non-negative; its meaning depends on the stream (a block of pairs, a photo).
        count: How many words.

    Returns:
        uint64[count], uniform over all 64-bit words; a longer block begins with a shorter one.

    Raises:
        BadConfig: The seed is out of range.
    """
    if not 0 <= seed <= MAX_SEED:
        raise BadConfig(f"seed {seed} is out of range; use 0 to {MAX_SEED}")
    # The first counter word counts within the block, so blocks never overlap.
    generator = np.random.Philox(key=[seed, int(stream)], counter=[0, 0, block, epoch])
    return generator.random_raw(count)


def unit(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Map raw words to float64 numbers in [0, 1) with 53 random bits."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
