"""Errors within clusters of look-alikes, and within groups of people that the user names."""

from collections.abc import Mapping

import numpy as np

from facepairs.bundles.rates import Errors, Rate
from facepairs.data.groups import PeopleGroups
from facepairs.data.pairs import person_name
from facepairs.errors import BadData
from facepairs.evaluation.metrics.arrays import Bools, PairPeople
from facepairs.evaluation.metrics.intervals import rate_intervals
from facepairs.evaluation.scores import ScoreTable
from facepairs.support.words import counted

DIGITS = 8  # of a rate
MIN_PEOPLE, MIN_GENUINE, MIN_IMPOSTORS = 10, 20, 100  # of a group; with fewer, rates say little


def errors_by_group(
    groups: Mapping[str, Bools], genuine: Bools, accepted: Bools, people: PairPeople | None
) -> dict[str, Errors]:
    """Return the errors within groups of pairs, the highest FMR first.

    Args:
        groups: bool[N], the pairs of each group, by its name.
        genuine: bool[N].
        accepted: bool[N], the decisions.
        people: Of the pairs.
    """
    parts = {}
    for name, members in groups.items():
        parts[name, "fmr"] = members & ~genuine, accepted
        parts[name, "fnmr"] = members & genuine, ~accepted
    measurable = {key: part for key, part in parts.items() if part[0].any()}
    rates: dict[tuple[str, str], Rate] = {}
    intervals = rate_intervals(list(measurable.values()), people)
    for (key, (members, events)), interval in zip(measurable.items(), intervals, strict=True):
        low, high = (round(end, DIGITS) for end in interval)
        value = round(float(events[members].mean()), DIGITS)
        rates[key] = Rate(value, (low, high), int((members & events).sum()), int(members.sum()))
    found = {
        name: Errors(
            fmr=rates.get((name, "fmr")),
            fnmr=rates.get((name, "fnmr")),
            people=None
            if people is None
            else len(np.unique(np.concatenate([side[members] for side in people]))),
        )
        for name, members in groups.items()
    }
    return dict(sorted(found.items(), key=lambda row: -row[1].fmr.value if row[1].fmr else 1.0))


def cluster_errors(scores: ScoreTable, accepted: Bools) -> dict[str, Errors]:
    """Return the errors within each cluster of look-alikes that has enough pairs, the worst first.

    Args:
        scores: N pairs.
        accepted: bool[N], the decisions.
    """
    if scores.cluster is None:
        return {}
    numbers = np.unique(scores.cluster[scores.cluster > 0]).tolist()
    masks = {str(number): scores.cluster == number for number in numbers}
    enough = {name: m for name, m in masks.items() if (m & ~scores.genuine).sum() >= MIN_IMPOSTORS}
    return errors_by_group(enough, scores.genuine, accepted, scores.people)


def group_errors(
    groups: PeopleGroups, scores: ScoreTable, accepted: Bools
) -> tuple[dict[str, Errors], list[str]]:
    """Return the errors within each group, the worst first, and warnings about small groups.

    Args:
        groups: The groups; a pair is in one when both its people are.
        scores: N pairs.
        accepted: bool[N], the decisions.

    Raises:
        BadData: The people of the pairs are not known.
    """
    if scores.people is None:
        raise BadData(
            f"{groups.path}: the people of the pairs are not known; groups need photos named "
            "Person_Name/photo.jpg",
            "groups",
        )
    left, right = ([person_name(name) for name in side] for side in (scores.left, scores.right))
    rows = errors_by_group(
        groups.pairs_within(left, right), scores.genuine, accepted, scores.people
    )
    empty = [name for name, row in rows.items() if not row.people]
    warnings = [f"nobody in the pairs is in group {', '.join(empty)}"] if empty else []
    small = {name: row for name, row in rows.items() if row.people and is_small(row)}
    return rows, warnings + [_describe_small(name, row) for name, row in small.items()]


def pair_counts(row: Errors) -> tuple[int, int]:
    """Return the number of genuine and of impostor pairs within a group."""
    genuine, impostor = (rate.of if rate and rate.of else 0 for rate in (row.fnmr, row.fmr))
    return genuine, impostor


def is_small(row: Errors) -> bool:
    """Return whether a group has so few people or pairs that its rates say little."""
    genuine, impostor = pair_counts(row)
    few_people = (row.people or 0) < MIN_PEOPLE
    return few_people or genuine < MIN_GENUINE or impostor < MIN_IMPOSTORS


def _describe_small(name: str, row: Errors) -> str:
    """Return a warning about a group with few people or pairs."""
    genuine, impostor = pair_counts(row)
    return (
        f"group {name}: {counted(row.people or 0, 'person', 'people')}, {genuine:,} genuine and "
        f"{counted(impostor, 'impostor pair')} are few; its rates are rough"
    )
