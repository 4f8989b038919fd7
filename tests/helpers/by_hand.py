"""Figures that tests compute again, in a slower and simpler way."""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class ErrorRates:
    """Errors of decisions."""

    false_accepts: int
    false_rejects: int
    fmr: float
    fnmr: float


def error_rates(genuine: npt.ArrayLike, accepted: npt.ArrayLike) -> ErrorRates:
    pairs = list(zip(np.asarray(genuine, bool), np.asarray(accepted, bool), strict=True))
    impostor = [taken for same, taken in pairs if not same]
    own = [taken for same, taken in pairs if same]
    passed, missed = sum(impostor), len(own) - sum(own)
    return ErrorRates(passed, missed, passed / len(impostor), missed / len(own))


def accuracy(genuine: npt.ArrayLike, score: npt.ArrayLike, threshold: float) -> float:
    return float(np.mean((np.asarray(score) >= threshold) == np.asarray(genuine)))


def slow_spread(people, parts):
    """Sum over people, then over pairs of people, one after the other."""
    names = sorted({int(p) for side in people for members, _ in parts for p in side[members]})
    sums = {}
    for person in names:
        sums[person] = 0.0
        for members, influence in parts:
            mine = members & ((people[0] == person) | (people[1] == person))
            leverage = min(0.5, mine.sum() / members.sum())
            sums[person] += influence[mine].sum() / (1 - leverage)
    shared = 0.0
    for one, other in combinations(names, 2):
        both = sum(
            influence[members & (np.minimum(*people) == one) & (np.maximum(*people) == other)].sum()
            for members, influence in parts
        )
        shared += both**2
    squares = np.array([value**2 for value in sums.values()])
    total = squares.sum()
    excess = (squares**2).sum() - total**2 / len(squares)
    degrees = (1 if shared > 1e-12 * total else 2) * total**2 / excess if excess > 0 else math.inf
    variance = max(total - shared, shared) * len(squares) / max(1, len(squares) - 1)
    return variance, min(max(degrees, 4), max(4, len(squares) - 1))


def slow_rate_interval(rate, variance, degrees, one_more, level=0.975):
    """Return the interval of a share of that spread; each end has the level."""
    from scipy import stats

    variance *= (stats.t.ppf(level, degrees) / stats.norm.ppf(level)) ** 2

    def upper(share):
        if share == 1:
            return 1.0
        event = max(one_more, min(1, variance / (share * (1 - share)) if share else 0))
        mean = (share + event) / (1 + event)
        events = (share + event) ** 2 / (variance / (1 - share) + event**2)
        end = stats.beta.ppf(level, events, events * (1 - mean) / mean)
        return max(end, 1 - (1 - level) ** event)

    return 1 - upper(1 - rate), upper(rate)


def slow_interval(people, members, events, level=0.975):
    """Return the share of members with an event, and its interval over people."""
    rate = events[members].mean()
    variance, degrees = slow_spread(people, [(members, (events - rate) / members.sum())])
    cells = {tuple(sorted(pair)) for pair in zip(*(side[members] for side in people), strict=True)}
    return rate, slow_rate_interval(rate, variance, degrees, 1 / len(cells), level)
