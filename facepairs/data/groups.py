"""Groups and families of people, given by the user: CSV `person,group` or `person,family`.

Groups are for errors by group; a person may be in several, with a line for each. Families, or
households, are for intervals: relatives resemble each other, so they are not an independent sample;
a person is in one family. Groups and families are never inferred.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.data.pairs import csv_rows, normalize_name
from facepairs.errors import BadData

PersonNumbers = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class PeopleGroups:
    """Groups of people.

    Attributes:
        path: The file that they were read from.
        members: The names of each group's people, by the group's name.
        lines: The line of the file that first names each person.
    """

    path: Path
    members: dict[str, frozenset[str]]
    lines: dict[str, int]

    def check_names(self, people: Sequence[str]) -> None:
        """Raise BadData, with the nearest name, for a name that is not among some people."""
        known = {normalize_name(name) for name in people}
        unknown = [name for name in self.lines if name not in known]
        if not unknown:
            return
        name, others = unknown[0], len(unknown) - 1
        near = difflib.get_close_matches(name, sorted(known), 1)
        hint = f"did you mean {near[0]!r}?" if near else "use the name of the person's folder."
        more = f" (and {others:,} more)" if others else ""
        raise BadData(
            f"{self.path}: line {self.lines[name]}: no person {name!r}{more}; {hint} Otherwise "
            "delete the line"
        )

    def among(self, people: Sequence[str]) -> dict[str, npt.NDArray[np.bool_]]:
        """Return which of some people are in each group: bool[len(people)] by the group's name."""
        names = [normalize_name(name) for name in people]
        return {
            group: np.fromiter((name in members for name in names), np.bool_, len(names))
            for group, members in self.members.items()
        }

    def numbers(self, left: Sequence[str], right: Sequence[str]) -> PersonNumbers:
        """Return the number of the family of both people of each pair, int64[N] each.

        A person without a family is a family of one. The families must not overlap.
        """
        family = {
            name: f"family {group}" for group, names in self.members.items() for name in names
        }
        people = [normalize_name(name) for name in (*left, *right)]
        names = [family.get(person, f"alone {person}") for person in people]
        _, numbers = np.unique(np.array(names, object).astype(str), return_inverse=True)
        return numbers[: len(left)], numbers[len(left) :]


def read_groups(path: Path) -> PeopleGroups:
    """Read groups of people from a CSV file with the columns person and group.

    Raises:
        BadData: The file cannot be read, a cell is empty, or it has no rows.
    """
    return _read(path, "group")


def read_families(path: Path) -> PeopleGroups:
    """Read families or households from a CSV file with the columns person and family.

    Raises:
        BadData: As `read_groups`, or a person is in two families.
    """
    families = _read(path, "family")
    of: dict[str, str] = {}
    for family, names in families.members.items():
        for name in sorted(names):
            if of.setdefault(name, family) != family:
                raise BadData(
                    f"{path}: {name} is in families {of[name]!r} and {family!r}; give one, or join "
                    "both families"
                )
    return families


def _read(path: Path, column: str) -> PeopleGroups:
    members: dict[str, set[str]] = {}
    lines: dict[str, int] = {}
    for line, row in csv_rows(path, ("person", column)):
        person, group = normalize_name(row["person"].strip()), row[column].strip()
        if not person or not group:
            empty = column if person else "person"
            raise BadData(f"{path}: line {line}: {empty} is empty; name a person and a {column}")
        members.setdefault(group, set()).add(person)
        lines.setdefault(person, line)
    if not members:
        raise BadData(f"{path}: no people below the header; list person,{column}")
    return PeopleGroups(path, {name: frozenset(people) for name, people in members.items()}, lines)
