"""Errors within clusters of look-alikes, and within groups of people that the user names."""

import numpy as np

from facepairs.bundles.error_table import GroupErrors
from facepairs.data.groups import PeopleGroups
from facepairs.data.pairs import person_name
from facepairs.errors import BadData
from facepairs.evaluation.metrics.arrays import Bools
from facepairs.evaluation.metrics.error_table import errors_by_group
from facepairs.evaluation.scores import ScoreTable
from facepairs.support.words import counted

MIN_PEOPLE, MIN_GENUINE, MIN_IMPOSTORS = 10, 20, 100  # of a group; with fewer, rates say little


def cluster_errors(scores: ScoreTable, accepted: Bools) -> list[GroupErrors]:
    """Return the errors within each cluster of look-alikes that has enough pairs, the worst first.

    Args:
        scores: N pairs.
        accepted: bool[N], the decisions.
    """
    if scores.cluster is None:
        return []
    numbers = np.unique(scores.cluster[scores.cluster > 0]).tolist()
    masks = {str(number): scores.cluster == number for number in numbers}
    enough = {name: m for name, m in masks.items() if (m & ~scores.genuine).sum() >= MIN_IMPOSTORS}
    return errors_by_group(enough, scores.genuine, accepted, scores.people)


def group_errors(
    groups: PeopleGroups, scores: ScoreTable, accepted: Bools
) -> tuple[list[GroupErrors], list[str]]:
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
            f"{groups.path}: the people of the pairs are not known; --groups needs photos named "
            "Person_Name/photo.jpg"
        )
    left, right = ([person_name(name) for name in side] for side in (scores.left, scores.right))
    rows = errors_by_group(
        groups.pairs_within(left, right), scores.genuine, accepted, scores.people
    )
    empty = [row.name for row in rows if not row.people]
    warnings = [f"nobody in the pairs is in group {', '.join(empty)}"] if empty else []
    return rows, warnings + [_describe_small(row) for row in rows if row.people and is_small(row)]


def is_small(row: GroupErrors) -> bool:
    """Return whether a group has so few people or pairs that its rates say little."""
    return (
        row.people < MIN_PEOPLE
        or row.genuine_pairs < MIN_GENUINE
        or row.impostor_pairs < MIN_IMPOSTORS
    )


def _describe_small(row: GroupErrors) -> str:
    """Return a warning about a group with few people or pairs."""
    return (
        f"group {row.name}: {counted(row.people, 'person', 'people')}, {row.genuine_pairs:,} "
        f"genuine and {counted(row.impostor_pairs, 'impostor pair')} are few; its rates are rough"
    )
