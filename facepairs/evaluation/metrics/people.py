"""Intervals that know that people recur: pairs that share people err together.

References:
    Owen, "The Pigeonhole Bootstrap", Annals of Applied Statistics 1, 2007: people are drawn with
    replacement, and a pair counts as often as its people do. It errs on the wide side.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from facepairs.evaluation.metrics.arrays import Floats, Interval, PairPeople
from facepairs.evaluation.metrics.rates import clopper_pearson
from facepairs.support.random_streams import Stream, raw_words, unit

DRAWS = 1_000
TAILS = (2.5, 97.5)  # percent


def people_weights(people: PairPeople, draws: int = DRAWS) -> Iterator[Floats]:
    """Yield float64[N], how often each pair counts in a draw of as many people as there are.

    A genuine pair counts as often as its person is drawn, an impostor pair as often as both are,
    multiplied. The draws are the same for the same people.

    Args:
        people: Of the pairs.
        draws: How many.
    """
    known, numbers = np.unique(np.concatenate(people), return_inverse=True)
    left, right = numbers[: len(people[0])], numbers[len(people[0]) :]
    genuine = left == right
    for draw in range(draws):
        words = raw_words(0, Stream.BOOTSTRAP_PEOPLE, 0, draw, len(known))
        drawn = (unit(words) * len(known)).astype(np.int64)
        count = np.bincount(drawn, minlength=len(known)).astype(np.float64)
        yield np.where(genuine, count[left], count[left] * count[right])


def rate_interval(events: npt.NDArray[np.bool_], people: PairPeople | None) -> Interval:
    """Return an interval of 95 % of the share of pairs with an event.

    The wider one, on each side, of Clopper-Pearson's and of the bootstrap over people.

    Args:
        events: bool[N], at least one pair.
        people: Of the pairs; None for independent pairs.
    """
    exact = clopper_pearson(int(events.sum()), len(events))
    if people is None:
        return exact
    shares = [
        float(weight @ events / total)
        for weight in people_weights(people)
        if (total := weight.sum()) > 0
    ]
    return wider(exact, shares)


def wider(interval: Interval, draws: npt.ArrayLike) -> Interval:
    """Widen an interval, where it is narrower, to the middle 95 % of draws."""
    values = np.asarray(draws, np.float64)
    if not values.size:
        return interval
    low, high = np.percentile(values, TAILS)
    return min(interval[0], float(low)), max(interval[1], float(high))
