"""Intervals of parts of the pairs, for `coverage.py`: failures to acquire, groups, factors."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from drawn_population import Bools, Floats, Ints, Pairs, Photos, score_pairs, truth

from facepairs.bundles.rates import OperatingPoint, Rate
from facepairs.data.groups import PeopleGroups
from facepairs.evaluation.error_rates import (
    MIN_IMPOSTORS,
    decide_at,
    measure_acquisition,
    with_generalised_rates,
)
from facepairs.evaluation.factors import Column
from facepairs.evaluation.group_errors import measure_groups
from facepairs.evaluation.metrics.intervals import PeopleOfPairs
from facepairs.evaluation.scores import ScoredPairs, failed_pairs
from facepairs.verification.provenance import Provenance

FAIL, FAIL_HARD, OF_PERSON = 0.01, 0.08, 1.0  # chances of a photo; people differ by a factor
QUARTERS = ("a", "b", "c", "d")
Note = Callable[..., None]


def note_parts(note: Note, random: np.random.Generator, photos: Photos, pairs: Pairs) -> None:
    """Note the intervals of one draw, by the noisier verifier where the FMR is .01."""
    names = [f"{who}/{place}" for place, who in enumerate(photos.person.tolist())]
    left, right = ([names[place] for place in side.tolist()] for side in pairs[:2])
    score = score_pairs(photos.second, pairs.left, pairs.right)
    scored = ScoredPairs(left, right, pairs.genuine, np.zeros(len(score), np.int16), score)
    chance = np.where(photos.hard, FAIL_HARD, FAIL)
    person = np.exp(OF_PERSON * random.standard_normal(photos.person[-1] + 1) - OF_PERSON**2 / 2)
    failed = random.random(len(names)) < chance * person[photos.person]
    _note_failures(note, scored, {names[place]: "no_face" for place in np.flatnonzero(failed)})
    _note_groups(note, random, photos, scored)
    _note_factor(note, photos, scored, names)


def _cut() -> float:
    return truth().threshold(1, 0.01)


def _events(rate: Rate, trials: float) -> float:
    return min(rate.value, 1 - rate.value) * trials


def _note_failures(note: Note, whole: ScoredPairs, failures: dict[str, str]) -> None:
    """Note the failures to acquire and the rates that count them; truths are of all draws."""
    rows = zip(*whole.sides, whole.genuine.tolist(), whole.fold.tolist(), strict=True)
    bad = [row for row in rows if row[0] in failures or row[1] in failures]
    origin = Provenance(model="drawn", pairs="drawn", failures=failures)
    pairs = replace(whole.without_photos(failures), origin=origin, failed=failed_pairs(bad))
    found = measure_acquisition(pairs)
    assert found
    fta, attempted = found.fta, pairs.attempted
    assert fta.of
    people = len({name.partition("/")[0] for side in attempted.sides for name in side})
    note("failures to acquire", fta.interval, np.nan, _events(fta, people), fta.count, fta.of)
    decided = decide_at(pairs.score, OperatingPoint(_cut()))
    (point,) = with_generalised_rates([decided.point], [decided], pairs)
    sample = PeopleOfPairs(attempted.people, len(attempted))
    for kind, rate, members in (
        ("FMR", point.errors.gfmr, ~attempted.genuine),
        ("FNMR", point.errors.gfnmr, attempted.genuine),
    ):
        if rate is not None:
            events = _events(rate, sample.trials(members))
            note(f"generalised {kind}", rate.interval, np.nan, events, rate.count, rate.of)


def quarter_of(photos: Photos) -> Ints:
    """Return the group of each photo's person, 0 to 3: by two axes of most variance."""
    sides = [np.bincount(photos.person, photos.first[:, axis]) > 0 for axis in (1, 2)]
    return (2 * sides[0] + sides[1])[photos.person]


@cache
def true_quarters() -> Floats:
    """Return the FMR within groups and between them, float64[4, 4]."""
    known, rates = truth(), np.empty((4, 4))
    strangers = ~known.pairs.genuine
    accepted = known.scores[1][strangers] >= _cut()
    quarter = quarter_of(known.photos)
    one, other = (quarter[side[strangers]] for side in known.pairs[:2])
    for a in range(4):
        for b in range(4):
            shown = ((one == a) & (other == b)) | ((one == b) & (other == a))
            rates[a, b] = accepted[shown].mean()
    return rates


@cache
def true_misses() -> Floats:
    """Return the FNMR within groups, float64[4]."""
    known = truth()
    same = known.pairs.genuine
    missed, group = known.scores[1][same] < _cut(), quarter_of(known.photos)[known.pairs.left[same]]
    return np.array([missed[group == a].mean() for a in range(4)])


def _note_groups(
    note: Note, random: np.random.Generator, photos: Photos, pairs: ScoredPairs
) -> None:
    """Note the FMR between groups, and ratios of groups that differ and of groups by chance."""
    accepted, quarter = pairs.score >= _cut(), quarter_of(photos)
    first = np.unique(photos.person, return_index=True)[1]
    drawn = random.permutation(np.arange(len(first)) % 4)
    overall = float(truth().fmr(1, _cut())), float(truth().fnmr(1, _cut()))
    for kind, of_person, fmr, fnmr in (
        ("that differ", quarter[first], np.diag(true_quarters()), true_misses()),
        ("drawn by lot", drawn, np.full(4, overall[0]), np.full(4, overall[1])),
    ):
        members = {
            name: frozenset(map(str, np.flatnonzero(of_person == place).tolist()))
            for place, name in enumerate(QUARTERS)
        }
        members = {name: who for name, who in members.items() if who}
        within, found = measure_groups(PeopleGroups(Path(), members, {}), pairs, accepted)
        if kind == "that differ":
            for pair in found.between:
                if pair.groups == ("a", "b") and ((pair.fmr and pair.fmr.of) or 0) >= MIN_IMPOSTORS:
                    trials = len(members["a"]) * len(members["b"])
                    true = true_quarters()[0, 1]
                    note("FMR between groups", pair.fmr.interval, true, true * trials)
        for name, one, true in (("FMR", found.fmr, fmr), ("FNMR", found.fnmr, fnmr)):
            if one is None:
                continue
            counts = [(errors.fmr if name == "FMR" else errors.fnmr) for errors in within.values()]
            few = min((rate.count or 0) for rate in counts if rate)
            large = [
                QUARTERS.index(group)
                for group, errors in within.items()
                if (errors.people or 0) >= 10 and errors.fnmr and (errors.fnmr.of or 0) >= 20
            ]
            if len(large) < 4:  # the truth is of all four
                continue
            for what, ratio, value in (
                ("best", one.worst_to_best, true.max() / true.min()),
                (
                    "geometric mean",
                    one.worst_to_geometric_mean,
                    true.max() / np.exp(np.log(true).mean()),
                ),
            ):
                low, high = ratio.interval
                ends = (low, 1e9 if high is None else high)
                note(f"{name}, worst to {what}, groups {kind}", ends, value, few)
            rate_of = dict(zip(QUARTERS, true.tolist(), strict=True))
            wrong = any(rate_of[it.larger] <= rate_of[it.smaller] for it in one.larger_than_chance)
            note(f"{name}: no wrong difference, groups {kind}", (0, 1), 2.0 * wrong, 100)


@cache
def _true_worst(genuine: bool) -> tuple[Floats, Floats]:
    """Return the larger noise of the population's pairs, rising, and the errors up to each."""
    known = truth()
    members = known.pairs.genuine == genuine
    accepted = known.scores[1][members] >= _cut()
    noise = np.maximum(*(known.photos.noise[side[members]] for side in known.pairs[:2]))
    order = np.argsort(noise)
    return noise[order], np.append(0, np.cumsum((accepted != genuine)[order]))


def _true_between(genuine: bool, low: float, high: float) -> float:
    """Return the error rate of pairs whose larger noise is from `low` to below `high`."""
    noise, errors = _true_worst(genuine)
    begin, end = np.searchsorted(noise, [low, high])
    return float((errors[end] - errors[begin]) / (end - begin))


def _note_factor(note: Note, photos: Photos, pairs: ScoredPairs, names: list[str]) -> None:
    """Note errors by a number of photos; the truth is that between the printed bounds."""
    accepted = pairs.score >= _cut()
    sample = PeopleOfPairs(pairs.people, len(pairs))
    values = dict(zip(names, photos.noise.tolist(), strict=True))
    found = Column("noise", values, "highest").measure(pairs, accepted)
    noise = np.maximum(*([values[name] for name in side] for side in pairs.sides))
    level = next(name for name in found.levels if name.endswith("or more"))
    low = float(level.partition(" ")[0])
    parts: list[tuple[str, Bools, object, float, float]] = [
        ("the worst quarter", noise >= low, found.levels[level], low, np.inf)
    ]
    parts += [
        (
            f"{share:.0%} discarded",
            noise <= row.bound,
            row.errors,
            0,
            np.nextafter(row.bound, 9),
        )
        for share, row in zip((0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5), found.discarded, strict=False)
        if share in (0.1, 0.3)
    ]
    for kind, shown, errors, begin, end in parts:
        for name, rate, same in (("FMR", errors.fmr, False), ("FNMR", errors.fnmr, True)):
            if rate is None:
                continue
            true = _true_between(same, begin, end)
            trials = sample.trials(shown & (pairs.genuine == same))
            note(f"{name}, {kind}", rate.interval, true, min(true, 1 - true) * trials)
