"""Errors of groups of faces whose people are known, and how well groups agree with labels.

Everything follows from cells: how many faces of one person are in one group. Intervals come from
drawing people again; a pair of strangers counts as often as both are drawn, multiplied.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import ErrorTable, GroupErrors, Rate
from facepairs.data.pairs import csv_rows
from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.metrics.arrays import Floats, Ints
from facepairs.evaluation.metrics.intervals import TAILS, draw_people, measured_rates
from facepairs.evaluation.pair_scores import FaceHeap
from facepairs.support.words import printable
from facepairs.verification.linkage import average_linkage, unit_rows

DRAWS = 200
CUTS = 120  # heights at which grouping is measured
LARGEST_FMR = 0.01  # of two photos: nobody would group faces at more


@dataclass(frozen=True, eq=False)
class Cells:
    """How many faces of one person are in one group.

    Attributes:
        person: int64[C], from 0.
        group: int64[C], from 0.
        count: float64[C], at least 1.
    """

    person: Ints
    group: Ints
    count: Floats

    @classmethod
    def of(cls, person: npt.ArrayLike, group: npt.ArrayLike) -> "Cells":
        """Count faces; both are int[N], any numbers."""
        rows = [np.unique(column, return_inverse=True)[1] for column in (person, group)]
        cells, count = np.unique(np.stack(rows), axis=1, return_counts=True)
        return cls(cells[0], cells[1], count.astype(np.float64))

    @property
    def people(self) -> int:
        """Number of people."""
        return int(self.person.max(initial=-1)) + 1

    def pairs(self, drawn: Floats) -> tuple[float, float, float, float]:
        """Count pairs of faces: genuine ones, those of them joined, impostor ones, those joined.

        Args:
            drawn: float64[people], how often each person counts.
        """
        faces = drawn[self.person] * self.count
        of_person = np.bincount(self.person, self.count)
        genuine = drawn @ (of_person * (of_person - 1)) / 2
        joined = drawn[self.person] @ (self.count * (self.count - 1)) / 2
        impostor = (faces.sum() ** 2 - ((drawn * of_person) ** 2).sum()) / 2
        mixed = ((np.bincount(self.group, faces) ** 2).sum() - (faces**2).sum()) / 2
        return float(genuine), float(joined), float(impostor), float(mixed)

    def mixed_groups(self) -> int:
        """Return how many groups have faces of more than one person."""
        return int((np.bincount(self.group) > 1).sum())


def measure_grouping(heaps: Sequence[FaceHeap], errors: ErrorTable) -> GroupErrors:
    """Measure how often grouping puts strangers together.

    Args:
        heaps: Faces of two people at least. People may be in several heaps; what is measured of all
            heaps is taken together.
        errors: The errors of two photos; they say which heights are worth measuring.

    Raises:
        NotEnough: There are no two people.
    """
    rows = zip(errors.thresholds, errors.fmr, strict=True)
    most = 1 - next((at for at, row in rows if row[0] <= LARGEST_FMR), errors.thresholds[-1])
    cuts = np.linspace(most / 4, most, CUTS).round(6).tolist()
    joined, pairs = np.zeros((1 + DRAWS, CUTS)), np.zeros((1 + DRAWS, 1))
    mixed, group_pairs, people_pairs = np.zeros(CUTS), np.zeros(CUTS), 0
    people = np.unique(np.concatenate([heap.person for heap in heaps]))
    drawn = [np.ones(len(people)), *(draw_people(len(people), draw) for draw in range(DRAWS))]
    for embeddings, person, cohort in heaps:
        merges = average_linkage(unit_rows(embeddings), most, cohort=cohort)
        found = [Cells.of(person, merges.labels(cut)) for cut in cuts]
        inside = np.searchsorted(people, np.unique(person))
        people_pairs += len(inside) * (len(inside) - 1) // 2
        counts = np.array([[cells.pairs(draw[inside])[2:] for cells in found] for draw in drawn])
        joined += counts[:, :, 1]
        pairs += counts[:, :1, 0]
        mixed += [cells.mixed_groups() for cells in found]
        groups = np.array([cells.group.max() + 1 for cells in found], np.float64)
        group_pairs += groups * (groups - 1) / 2
    people_pairs = min(people_pairs, len(people) * (len(people) - 1) // 2)
    if not people_pairs:
        raise NotEnough("grouping needs two people to be measured")
    shares = joined / np.maximum(pairs, 1)
    return GroupErrors(
        people_pairs=people_pairs,
        cuts=tuple(cuts),
        linked=measured_rates(shares, round(pairs[0, 0]), people_pairs),
        mixed=tuple(np.minimum(1, mixed / np.maximum(1, group_pairs)).round(10).tolist()),
    )


class Agreement(msgspec.Struct, frozen=True):
    """How well groups agree with people.

    Attributes:
        faces: Number of faces whose person is known.
        people: Number of these people.
        mixed_groups: Number of groups of more than one of them.
        figures: Shares from 0 to 1 with intervals of 95 % over people, by name: precision, recall
            and F1 of pairs of faces; means over faces (B³); the harmonic mean of homogeneity and
            completeness (V-measure). None where nothing can be measured.

    References:
        Bagga and Baldwin, "Entity-Based Cross-Document Coreferencing Using the Vector Space Model",
        1998. Rosenberg and Hirschberg, "V-Measure", 2007.
    """

    faces: int
    people: int
    mixed_groups: int
    figures: dict[str, Rate | None]

    def rows(self) -> list[tuple[str, str]]:
        """Return the figures in rows of text."""
        rows = [("labels", f"{self.faces:,} faces of {self.people:,} people")]
        for name, rate in self.figures.items():
            text = "none" if rate is None else f"{rate.value:.4f} ({_interval(rate)})"
            rows.append((name.replace("_", " "), text))
        return [*rows, ("mixed groups", f"{self.mixed_groups:,}")]


def _interval(rate: Rate) -> str:
    low, high = rate.interval
    return f"{low:.4f} to {high:.4f}"


def read_labels(path: Path, photos: Iterable[str]) -> dict[str, str]:
    """Return who is on photos, by a CSV file of the columns photo and person.

    Args:
        path: The file; photos may be missing in it.
        photos: The photos of the heap.

    Raises:
        BadData: The file cannot be read, or has a photo that there is not.
        NotEnough: It has no photo.
    """
    there = {printable(photo): photo for photo in photos}
    label: dict[str, str] = {}
    for line, row in csv_rows(path, ("photo", "person")):
        photo = row["photo"]
        if photo not in there:
            raise BadData(f"{path}: line {line}: {photo!r} is no photo of this heap")
        label[there[photo]] = row["person"]
    if not label:
        raise NotEnough(f"{path}: has no photo; give the person of some")
    return label


def agreement(person: npt.ArrayLike, group: npt.ArrayLike) -> Agreement:
    """Measure how well groups agree with people.

    Args:
        person: [N] names or numbers, whom each face shows; at least one.
        group: [N] names or numbers, the group of each face.
    """
    cells = Cells.of(person, group)
    values = _figures(cells, np.ones(cells.people))
    draws = [_figures(cells, draw_people(cells.people, draw)) for draw in range(DRAWS)]
    rates: dict[str, Rate | None] = {}
    for name, value in values.items():
        column = np.array([draw[name] for draw in draws])
        known = column[~np.isnan(column)]
        low, high = np.percentile(known, TAILS).tolist() if len(known) else (0.0, 1.0)
        interval = (min(low, value), min(1.0, max(high, value)))
        rates[name] = None if np.isnan(value) else Rate(value, interval)
    return Agreement(int(cells.count.sum()), cells.people, cells.mixed_groups(), rates)


def _figures(cells: Cells, drawn: Floats) -> dict[str, float]:
    genuine, joined, _, mixed = cells.pairs(drawn)
    faces = drawn[cells.person] * cells.count
    in_group = cells.count / np.bincount(cells.group, cells.count)[cells.group]
    of_person = cells.count / np.bincount(cells.person, cells.count)[cells.person]
    pair = (_ratio(joined, joined + mixed), _ratio(joined, genuine))
    total = float(faces.sum())
    b3 = (_ratio(float(faces @ in_group), total), _ratio(float(faces @ of_person), total))
    joint = _entropy(faces)
    groups, people = (_entropy(np.bincount(side, faces)) for side in (cells.group, cells.person))
    homogeneity = 1 - _ratio(joint - groups, people, 0.0)
    completeness = 1 - _ratio(joint - people, groups, 0.0)
    return {
        "pair_precision": pair[0],
        "pair_recall": pair[1],
        "pair_f1": _harmonic(*pair),
        "b3_precision": b3[0],
        "b3_recall": b3[1],
        "b3_f1": _harmonic(*b3),
        "v_measure": _harmonic(homogeneity, completeness),
    }


def _ratio(part: float, whole: float, otherwise: float = np.nan) -> float:
    return float(part / whole) if whole > 0 else otherwise


def _harmonic(one: float, other: float) -> float:
    return _ratio(2 * one * other, one + other, one + other)


def _entropy(count: npt.NDArray[Any]) -> float:
    share = count[count > 0] / count.sum()
    return float(-(share * np.log(share)).sum())
