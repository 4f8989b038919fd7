"""Intervals of 95 % for every share that is measured on people who recur.

Pairs that share a person err together, so the people are the sample, not the pairs. One method
serves all shares, in three steps:

1. The influence of each pair on the share (of a rate, error minus rate, over the number of pairs)
   is summed by person. The jackknife over people turns these sums into a variance; pairs of two
   people share both, and count once (`spread_over_people`).
2. Few people make that variance itself uncertain, above all where a few of them cause most errors:
   Student's t with Satterthwaite's degrees of freedom widens it.
3. Share and variance say how many independent trials the pairs are worth. The interval is Clopper
   and Pearson's of that many trials (`rate_interval`). What was not seen may still happen: as in
   Clopper and Pearson's own interval, each end allows for one more event.

A rate of pairs that were themselves found on these people, such as look-alikes, has the variance of
that search besides (`search_variance`). With independent pairs this is exactly Clopper and
Pearson's interval. `scripts/studies/coverage.py` measures how often intervals contain the truth.

References:
    Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26, 1934.
    Korn and Graubard, "Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data", Survey Methodology 24, 1998: the effective sample size.
    Fay and Feuer, "Confidence intervals for directly standardized rates", Statistics in Medicine
    16, 1997: one more event whose weight differs from those seen.
    Aronow, Samii and Assenova, "Cluster-robust variance estimation for dyadic data", Political
    Analysis 23, 2015: pairs that share people.
    Bell and McCaffrey, "Bias reduction in standard errors for linear regression with multi-stage
    samples", Survey Methodology 28, 2002: the jackknife's leverage, and degrees of freedom.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.evaluation.metrics.arrays import Bools, Floats, Interval, Ints, PairPeople

LEVEL = 0.975  # of each end
LARGEST_LEVERAGE = 0.5  # one of two people
FEWEST_DEGREES = 4.0
TINY = 1e-300
ROUNDING = 1e-12  # of a sum of squares


class Spread(NamedTuple):
    """How uncertain a figure is: numbers, or arrays of them.

    Attributes:
        variance: Of the figure, at least 0.
        degrees: Degrees of freedom of the variance; infinite for independent pairs.
    """

    variance: Any
    degrees: Any


def spread_over_people(
    sums: npt.ArrayLike, leverage: npt.ArrayLike, shared: npt.ArrayLike = 0.0
) -> Spread:
    """Return the spread of a figure by the jackknife over people.

    Args:
        sums: float64[people] or [people, figures], the influence of each person: what the person's
            pairs add to the figure less its own value. Of a rate, the number of errors less the
            rate times the number of pairs, over the number of all pairs. A pair of two people
            counts for both. They sum to 0 where every pair has one person.
        leverage: float64[people], the share of all pairs that shows each person, 0 to 1; or that
            shape with a column for each figure.
        shared: float64[] or [figures], the sum of squares of the influence of every two people who
            are in a pair together, because both their sums have it; 0 without such pairs, and an
            upper bound of the variance where it is left out.
    """
    sums = np.asarray(sums, np.float64)
    share = np.minimum(leverage, LARGEST_LEVERAGE)
    share = share[:, None] if sums.ndim > share.ndim else share
    squares = (sums / (1 - share)) ** 2
    people, total, squared = len(sums), squares.sum(axis=0), (squares**2).sum(axis=0)
    excess = np.maximum(squared - total**2 / people, TINY)
    # Sums that share pairs say half as much about their variance.
    degrees = np.where(shared > ROUNDING * total, 1, 2) * total**2 / excess
    # The pairs of two people are independent at best; sampling error must not say better.
    variance = np.maximum(total - shared, shared) * (people / max(1, people - 1))
    return Spread(variance, np.clip(degrees, FEWEST_DEGREES, max(FEWEST_DEGREES, people - 1)))


def rate_interval(rate: float, spread: Spread, one_more: float, level: float = LEVEL) -> Interval:
    """Return the interval of 95 % of a share: within 0 and 1, with the share in it.

    Both ends are mirrored when the share and one minus it change places. An end is never nearer
    than where nothing is observed, so one event never looks more certain than none.

    Args:
        rate: The share, 0 to 1.
        spread: Its spread; see `spread_over_people`. Of N independent trials, the variance is
            rate * (1 - rate) / N, and the degrees are infinite.
        one_more: What one more event would add to the share: one over the number of independent
            trials, such as people, or pairs of people. Where nothing is observed, the upper end is
            Clopper and Pearson's of that many trials.
        level: Of each end; higher where several intervals should hold together.
    """
    low, high = rate_intervals(np.float64(rate), spread, one_more, level)
    return float(low), float(high)


def rate_intervals(
    rates: npt.ArrayLike, spread: Spread, one_more: npt.ArrayLike, level: float = LEVEL
) -> tuple[Floats, Floats]:
    """Return both ends of the intervals of many shares; arguments as for `rate_interval`."""
    from scipy.special import stdtrit

    rates = np.asarray(rates, np.float64)
    wider = (stdtrit(spread.degrees, level) / stdtrit(math.inf, level)) ** 2
    variance = np.asarray(spread.variance, np.float64) * wider
    # An event of which the pairs have as many as independent trials. Nothing observed does not say
    # how many these are; its variance is of what was found besides, as look-alikes or a threshold,
    # and an event is as large as the root of it.
    independent = rates * (1 - rates)
    event = np.where(independent > 0, variance / np.maximum(independent, TINY), np.sqrt(variance))
    event = np.maximum(np.minimum(1, event), one_more)
    low = 1 - _upper_ends(1 - rates, variance, event, level)
    return np.minimum(low, rates), _upper_ends(rates, variance, event, level)


def _upper_ends(rates: Floats, variance: Floats, event: Floats, level: float) -> Floats:
    """Return the upper ends of shares, where one more event adds `event` to each."""
    from scipy.special import betaincinv

    # Moments of the share with that event, in Clopper and Pearson's terms: mean (k + 1) / (n + 1)
    # and k + 1 events of one size.
    mean = (rates + event) / (1 + event)
    events = (rates + event) ** 2 / (variance / np.maximum(1 - rates, TINY) + event**2)
    with np.errstate(over="ignore"):
        others = np.maximum(events * (1 - mean) / mean, TINY)
    none_seen = betaincinv(1.0, 1 / event, level)
    ends: Floats = np.maximum(betaincinv(events, others, level), none_seen)
    return np.where(rates >= 1, 1.0, np.maximum(ends, rates))


def difference_interval(difference: float, spread: Spread, one_more: float) -> Interval:
    """Return the interval of 95 % of the difference of two shares, within -1 and 1.

    To Student's half width it adds, as for independent errors, the upper end where nothing is
    observed: two verifiers that agree on all pairs may differ on others.

    Args:
        difference: From -1 to 1.
        spread: Its spread.
        one_more: What one more event would add to one of the shares.
    """
    from scipy.special import stdtrit

    reach = float(stdtrit(spread.degrees, LEVEL)) * math.sqrt(spread.variance)
    half = math.hypot(reach, 1 - (1 - LEVEL) ** one_more)
    return max(-1.0, difference - half), min(1.0, difference + half)


def clopper_pearson(k: float, n: int, level: float = LEVEL) -> Interval:
    """Return the exact interval of 95 % of a share of independent trials.

    Args:
        k: Events, 0 to n; a weighted count need not be whole.
        n: Trials, at least 1.
        level: As for `rate_interval`.
    """
    rate = k / n
    return rate_interval(rate, Spread(rate * (1 - rate) / n, math.inf), 1 / n, level)


def effective_number(sizes: Floats) -> float:
    """Return how many parts of one size say as much as parts of these sizes, at most as many.

    A rate over all of them hangs on the largest: one more event there adds more than the mean size.

    References:
        Kish, *Survey Sampling*, 1965.
    """
    squares = float((sizes**2).sum())
    return float(sizes.sum()) ** 2 / squares if squares else 0.0


class PeopleOfPairs:
    """Who is in N pairs: spreads and numbers of independent trials of figures of these pairs.

    Args:
        people: Of the pairs; None for independent pairs.
        pairs: N.
        families: Of the people of the pairs, where some are related: then families are the sample.
    """

    def __init__(
        self, people: PairPeople | None, pairs: int, families: PairPeople | None = None
    ) -> None:
        self.known = people is not None
        self.pairs = pairs
        alone = np.arange(pairs)
        self._people = (alone, alone) if people is None else people
        sides = self._people if families is None else families
        _, numbers = np.unique(np.concatenate(sides), return_inverse=True)
        left, right = numbers.reshape(2, -1)
        # A cell is one person's genuine pairs, or the pairs of two people.
        count = int(numbers.max(initial=-1)) + 1
        keys = np.minimum(left, right) * count + np.maximum(left, right)
        cells, self._cell = np.unique(keys, return_inverse=True)
        self._count = count
        self._one, self._other = np.divmod(cells, count) if count else (cells, cells)
        self._two = self._one != self._other

    def _by_cell(self, values: Floats | Bools) -> Floats:
        sums: Floats = np.bincount(self._cell, values, len(self._one)).astype(np.float64)
        return sums

    def _by_person(self, cells: Floats) -> Floats:
        """Sum cells by person; the cell of two people counts for both."""
        sums: Floats = np.bincount(self._one, cells, self._count).astype(np.float64)
        return sums + np.bincount(self._other[self._two], cells[self._two], self._count)

    def people(self, members: Bools) -> int:
        """Return the number of people in some of the pairs, bool[N]."""
        return len(np.unique(np.concatenate([side[members] for side in self._people])))

    def trials(self, members: Bools) -> int:
        """Return the number of independent trials in some of the pairs, bool[N].

        All genuine pairs of a person are one, and so are all pairs of the same two people.
        """
        return int((self._by_cell(members) > 0).sum())

    def spread(self, *parts: tuple[Bools, Floats]) -> Spread:
        """Return the spread of a figure of the pairs.

        Args:
            *parts: (members, influence) of each part of the pairs, such as genuine and impostor
                pairs: bool[N], and float64[N] that is used where members are; see
                `spread_over_people`.
        """
        if not self.known:
            squares = [math.fsum(influence[members] ** 2) for members, influence in parts]
            return Spread(sum(squares), math.inf)
        cells, sums = np.zeros(len(self._one)), np.zeros(self._count)
        for members, influence in parts:
            part = self._by_cell(np.where(members, influence, 0.0))
            leverage = self._by_person(self._by_cell(members)) / max(1, int(members.sum()))
            sums += self._by_person(part) / (1 - np.minimum(leverage, LARGEST_LEVERAGE))
            cells += part
        there = self._by_person(self._by_cell(np.any([part[0] for part in parts], axis=0))) > 0
        shared = float((cells[self._two] ** 2).sum())
        return spread_over_people(sums[there], np.zeros(int(there.sum())), shared)

    def interval(
        self,
        members: Bools,
        events: Bools,
        again: Sequence[Bools] = (),
        level: float = LEVEL,
    ) -> Interval:
        """Return the interval of the share of pairs with an event.

        Args:
            members: bool[N], the pairs that count, at least one.
            events: bool[N], the pairs with the event.
            again: The pairs that halves of the people say count, see `search_variance`.
            level: As for `rate_interval`.
        """
        count, of = int((members & events).sum()), int(members.sum())
        if not self.known:
            return clopper_pearson(count, of, level)
        spread = self.spread((members, (events - count / of) / of))
        rates = [float(events[part].mean()) for part in again if part.any()]
        spread = spread._replace(variance=spread.variance + search_variance(rates))
        return rate_interval(count / of, spread, 1 / self.trials(members), level)

    def rates_at(
        self, members: Bools, place: Ints, thresholds: int, again: Sequence[Bools] = ()
    ) -> tuple[Floats, Floats, Floats]:
        """Return the share accepted at each threshold, and both ends of its interval.

        Ends do not rise where the threshold does: a stricter threshold never looks worse.

        Args:
            members: bool[N], the pairs that count, at least one.
            place: int64[N], each pair is accepted at the first so many thresholds.
            thresholds: How many there are.
            again: The pairs that halves of the people say count, see `search_variance`.
        """
        searched = search_variance(
            [
                accepted_at(place[part], None, thresholds) / int(part.sum())
                for part in again
                if part.any()
            ]
        )
        place, cell = place[members], self._cell[members]
        of = len(place)
        rates = accepted_at(place, None, thresholds) / of
        if not self.known:
            spread = Spread(rates * (1 - rates) / of, math.inf)
            return rates, *_falling(*rate_intervals(rates, spread, 1 / of))
        two = self._two[cell]
        person = np.concatenate([self._one[cell], self._other[cell[two]]])
        there, person = np.unique(person, return_inverse=True)
        places = person * (thresholds + 1) + np.concatenate([place, place[two]])
        counts = np.bincount(places, minlength=len(there) * (thresholds + 1))
        counts = counts.reshape(len(there), thresholds + 1)
        accepted, all_pairs = _from_end(counts), counts.sum(axis=1)
        # Sums over cells of the squared influence, (accepted - rate * pairs) / of.
        cell, in_two = np.unique(cell[two], return_inverse=True)[1], place[two]
        sizes = np.bincount(cell).astype(np.float64)
        mixed = accepted_at(in_two, sizes[cell], thresholds)
        squared = squares_at(cell, in_two, thresholds)
        shared = (squared - 2 * rates * mixed + rates**2 * (sizes**2).sum()) / of**2
        trials = self.trials(members)
        return rates, *falling_intervals(rates, accepted, all_pairs, of, shared, trials, searched)


def search_variance(rates: Sequence[npt.ArrayLike]) -> Any:
    """Return what the search for the pairs of a rate adds to its variance.

    Where the people themselves say which pairs count, as clusters of their photos do, other people
    say so of other pairs. The search is done again on random halves of the people. A rate of half
    as many people drawn out of all differs from that of all by as much as this one does from the
    truth, so the variance of such rates over one set of pairs is that of the search.

    Args:
        rates: float64[] or [T] of each half, over the pairs that it says count; empty where the
            pairs are given.

    References:
        Shao and Wu, "A General Theory for Jackknife Variance Estimation", Annals of Statistics 17,
        1989: the jackknife that leaves out half.
    """
    return np.var(np.array(rates), axis=0, ddof=1) if len(rates) > 1 else 0.0


def falling_intervals(
    rates: Floats,
    events: Floats,
    all_pairs: Floats,
    of: float,
    shared: Floats,
    trials: float,
    searched: Floats | float = 0.0,
) -> tuple[Floats, Floats]:
    """Return both ends of the intervals of rates at T rising thresholds; they do not rise.

    Args:
        rates: float64[T], not rising.
        events: float64[people, T], events of each person; a pair of two people counts for both.
        all_pairs: float64[people], pairs of each person, likewise.
        of: Number of pairs.
        shared: float64[T], as for `spread_over_people`.
        trials: Number of independent trials; a fraction where they differ in size, see
            `effective_number`.
        searched: float64[T], see `search_variance`.
    """
    sums = (events - rates * all_pairs[:, None]) / of
    spread = spread_over_people(sums, all_pairs / of, np.maximum(0, shared))
    spread = spread._replace(variance=spread.variance + searched)
    return _falling(*rate_intervals(rates, spread, 1 / trials))


def squares_at(cell: Ints, place: Ints, thresholds: int) -> Floats:
    """Return the sum over cells of the squared number of pairs accepted at each threshold.

    Args:
        cell: int64[P], the cell of each pair, from 0.
        place: int64[P], as for `PeopleOfPairs.rates_at`.
        thresholds: How many there are.
    """
    order = np.lexsort((-place, cell))
    sizes = np.bincount(cell)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return accepted_at(place[order], 2 * rank + 1, thresholds)  # 1 + 3 + 5 + … are squares


def accepted_at(place: Ints, weight: Floats | Ints | None, thresholds: int) -> Floats:
    """Return the weight of pairs accepted at each threshold; see `PeopleOfPairs.rates_at`."""
    return _from_end(np.bincount(place, weight, thresholds + 1)).astype(np.float64)


def _from_end(counts: npt.NDArray[np.generic]) -> Floats:
    """Return the sums of what comes after each place but the last, along the last axis."""
    sums: Floats = np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1][..., 1:]
    return sums


def _falling(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Move ends outwards until none rises with the threshold."""
    return np.minimum.accumulate(low), np.maximum.accumulate(high[::-1])[::-1]
