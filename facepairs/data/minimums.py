"""The smallest numbers of people and pairs that a calibration accepts.

Both are small: below them no figure is worth showing; above them every figure comes with its
interval.

MIN_PEOPLE: The photos of one person are similarly easy or hard, so people are the sample. The range
of 6 people's typical scores contains the median of all people's with probability 97 %
(1 - 2 · 2⁻⁶, the interval of the sign test), the range of 5 only with 94 %.

MIN_PAIRS, of each kind: A logistic curve has two parameters and needs about ten pairs of the rarer
kind for each. If none of 20 pairs is an error, the error rate is below 17 %; if half of them are,
it lies between 27 and 73 % (Clopper-Pearson, 95 %). A threshold for a given FMR needs more:
`evaluation.metrics.curves.pairs_needed`.

MAX_PAIRS_PER_PERSON: All pairs of 5 photos. Without this limit, a person with 30 photos determines
the threshold of a small group. On 20 people of LFW's View 1, drawn 60 times, it lowers the
calibration error on other people from .044 to .036 and raises the worst accuracy from .839 to .852.

MIN_EXPECTED_FALSE_ACCEPTS: A rate is measured or promised only where at least this many false
accepts are expected among the pairs: with fewer, a single pair changes the figure by half.

References:
    Peduzzi et al., "A simulation study of the number of events per variable in logistic
    regression analysis", Journal of Clinical Epidemiology 49, 1996.
"""

import numpy as np
import numpy.typing as npt

from facepairs.data.pairs import PairList
from facepairs.errors import NotEnough
from facepairs.support.words import counted

MIN_PEOPLE = 6
MIN_EXPECTED_FALSE_ACCEPTS = 3
MIN_PAIRS = 20
MAX_PAIRS_PER_PERSON = 10


def limit_pairs_per_person(pairs: PairList, person_of: npt.NDArray[np.integer]) -> PairList:
    """Return the first ten genuine pairs of every person and all impostor pairs, in order.

    Args:
        pairs: The pairs.
        person_of: int[images], the person of every image (`FaceIndex.person_of`).
    """
    person = np.where(pairs.genuine, person_of[pairs.left], -1)
    order = np.argsort(person, kind="stable")
    _, begins, counts = np.unique(person[order], return_index=True, return_counts=True)
    rank = np.empty(len(pairs), np.int64)
    rank[order] = np.arange(len(pairs)) - np.repeat(begins, counts)
    return pairs.where(~pairs.genuine | (rank < MAX_PAIRS_PER_PERSON))


def _describe(genuine: int, people: int) -> str:
    if not genuine:
        return "none"
    return f"{genuine:,} of {counted(people, 'person', 'people')}"


def check_minimums(source: object, people: int, genuine: int, impostor: int) -> None:
    """Check that there are enough pairs for a calibration.

    Args:
        source: The folder or file that the message names.
        people: Number of people with genuine pairs.
        genuine: Number of genuine pairs.
        impostor: Number of impostor pairs.

    Raises:
        NotEnough: Too few pairs or people; the message has the numbers needed.
    """
    if genuine < MIN_PAIRS or people < MIN_PEOPLE:
        raise NotEnough(
            f"{source}: needs at least {MIN_PAIRS} genuine pairs of {MIN_PEOPLE} people, these "
            f"photos give {_describe(genuine, people)}: add people with at least 2 photos"
        )
    if impostor < MIN_PAIRS:
        raise NotEnough(
            f"{source}: needs at least {MIN_PAIRS} impostor pairs, has {impostor}: add pairs of "
            "different people"
        )
