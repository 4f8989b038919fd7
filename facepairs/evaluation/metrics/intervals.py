"""Intervals of 95 %: exact ones, Student's over folds, and such that know that people recur.

FMR is the share of impostor pairs accepted, FNMR the share of genuine pairs rejected
(ISO/IEC 19795-1). Pairs that share people err together and vary more than independent pairs.

References:
    Owen, "The Pigeonhole Bootstrap", Annals of Applied Statistics 1, 2007: people are drawn with
    replacement, and a pair counts as often as its people do. It errs on the wide side.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from facepairs.evaluation.metrics.arrays import Bools, Floats, Interval, PairPeople
from facepairs.support import console
from facepairs.support.random_streams import Stream, raw_words, unit

SEED = 0
DRAWS = 1_000
MIN_DRAWS = 200
MAX_WORK = 100_000_000  # pairs times draws
TAILS = (2.5, 97.5)  # percent


def clopper_pearson(k: float, n: int) -> Interval:
    """Return the exact interval of 95 %, (low, high), of a share that was observed k times in n.

    Args:
        k: Observations, 0 to n; a weighted count need not be whole.
        n: Trials, at least 1.

    References:
        Clopper and Pearson, Biometrika 26, 1934.
    """
    from scipy.special import betaincinv

    low = float(betaincinv(k, n - k + 1, 0.025)) if k > 0 else 0.0
    high = float(betaincinv(k + 1, n - k, 0.975)) if k < n else 1.0
    return low, high


def over_folds(values: Sequence[float]) -> tuple[float, float, Interval]:
    """Return the mean of rates of folds, its standard error, and Student's interval of 95 %.

    The standard error is the standard deviation (n - 1) over the root of n.

    Args:
        values: A rate of each fold, 0 to 1; two or more.
    """
    from scipy.special import stdtrit

    mean, error = float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))
    reach = float(stdtrit(len(values) - 1, 0.975)) * error
    return mean, error, (max(0.0, mean - reach), min(1.0, mean + reach))


def draw_people(people: int, draw: int) -> Floats:
    """Return float64[people], how often each is drawn, with replacement; the same every time."""
    words = raw_words(SEED, Stream.BOOTSTRAP_PEOPLE, 0, draw, people)
    drawn = (unit(words) * people).astype(np.int64)
    return np.bincount(drawn, minlength=people).astype(np.float64)


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
        count = draw_people(len(known), draw)
        yield np.where(genuine, count[left], count[left] * count[right])


Statistic = Callable[[Floats], float]
"""Returns a figure of pairs that count float64[N] times each; NaN where no pair of it counts."""


def bootstrap(
    people: PairPeople,
    figures: Callable[[Floats], Sequence[float]],
) -> Floats:
    """Return figures of resampled people, float64[draws, figures].

    Args:
        people: Of the pairs. There are fewer draws for very many pairs.
        figures: Returns them for pairs that count float64[N] times each.
    """
    draws = max(MIN_DRAWS, min(DRAWS, MAX_WORK // len(people[0])))
    rows, progress = [], console.progress("resampling people")
    for weight in people_weights(people, draws):
        rows.append(figures(weight))
        progress(len(rows), draws)
    return np.array(rows, np.float64)


def share_of(members: Bools, events: Bools) -> Statistic:
    """Return the statistic that is the share of pairs with an event.

    Args:
        members: bool[N], the pairs that count.
        events: bool[N], the pairs with the event.
    """
    all_places, places = np.flatnonzero(members), np.flatnonzero(members & events)

    def share(weight: Floats) -> float:
        total = weight[all_places].sum()
        return float(weight[places].sum() / total) if total else np.nan

    return share


def independent_pairs(members: Bools, people: PairPeople | None) -> int:
    """Return how many pairs, bool[N], are left when pairs of the same two people count once."""
    if people is None:
        return int(members.sum())
    sides = np.sort([side[members] for side in people], axis=0)
    return len(np.unique(sides, axis=1).T)


def exact_interval(members: Bools, events: Bools, people: PairPeople | None) -> Interval:
    """Return Clopper-Pearson's interval of 95 % of the share of pairs with an event.

    Where no pair has it, or all have, a bootstrap knows nothing of what recurs: then pairs of the
    same two people count once.

    Args:
        members: bool[N], the pairs that count, at least one.
        events: bool[N], the pairs with the event.
        people: Of the pairs; None for independent pairs.
    """
    pairs, hits = int(members.sum()), int((members & events).sum())
    if 0 < hits < pairs:
        return clopper_pearson(hits, pairs)
    independent = independent_pairs(members, people)
    return clopper_pearson(independent if hits else 0, independent)


def wider(interval: Interval, draws: npt.ArrayLike) -> Interval:
    """Widen an interval, where it is narrower, to the middle 95 % of draws that are not NaN."""
    values = np.asarray(draws, np.float64)
    values = values[~np.isnan(values)]
    if not values.size:
        return interval
    low, high = np.percentile(values, TAILS)
    return min(interval[0], float(low)), max(interval[1], float(high))
