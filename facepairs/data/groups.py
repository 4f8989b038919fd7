"""Groups of people that the user names, for errors by group: CSV `person,group`, a pair a line.

A person may be in several groups, on a line for each. Nothing is inferred about anybody.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.data.pairs import csv_rows, plain
from facepairs.errors import BadData


@dataclass(frozen=True)
class PeopleGroups:
    """Groups of people.

    Attributes:
        path: The file that they were read from.
        members: The names of each group's people, by the group's name.
    """

    path: Path
    members: dict[str, frozenset[str]]

    def among(self, people: Sequence[str]) -> dict[str, npt.NDArray[np.bool_]]:
        """Return which of some people are in each group: bool[len(people)] by the group's name."""
        return {
            group: np.fromiter((plain(name) in members for name in people), np.bool_, len(people))
            for group, members in self.members.items()
        }

    def pairs_within(
        self, left: Sequence[str], right: Sequence[str]
    ) -> dict[str, npt.NDArray[np.bool_]]:
        """Return which pairs of people are within each group: bool[N] by the group's name."""
        sides = zip(self.among(left).items(), self.among(right).values(), strict=True)
        return {name: one & other for (name, one), other in sides}


def read_groups(path: Path) -> PeopleGroups:
    """Read groups of people from a CSV file with the columns person and group.

    Raises:
        BadData: The file cannot be read, a cell is empty, or it has no rows.
    """
    members: dict[str, set[str]] = {}
    for line, row in csv_rows(path, ("person", "group")):
        person, group = plain(row["person"].strip()), row["group"].strip()
        if not person or not group:
            empty = "group" if person else "person"
            raise BadData(f"{path}: line {line}: {empty} is empty; name a person and a group")
        members.setdefault(group, set()).add(person)
    if not members:
        raise BadData(f"{path}: no people below the header; list person,group")
    return PeopleGroups(path, {name: frozenset(people) for name, people in members.items()})
