"""Errors of groups of faces whose people are known, and how well groups agree with labels.

Everything follows from cells: how many faces of one person are in one group. Intervals come from
the jackknife over people, see `metrics.intervals`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import ErrorTable, GroupingErrors, Rate
from facepairs.data.pairs import csv_rows
from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.metrics.arrays import Floats, Ints
from facepairs.evaluation.metrics.intervals import (
    LARGEST_LEVERAGE,
    effective_number,
    rate_interval,
    spread_over_people,
)
from facepairs.evaluation.pair_scores import FaceHeap
from facepairs.grouping.linkage import average_linkage, unit_rows
from facepairs.support.words import printable

TINY = 1e-12  # below it, sums are rounding
CUTS = 120  # heights at which grouping is measured
# As many faces of a person count where one more event is sized: people of hundreds are hardly mixed
# up, and an event of theirs alone would make every interval useless.
MOST_FACES = 40  # the most in `scripts/studies/coverage.py`
# Most pairs are of the people with most photos. Where such people are missing, so are their right
# pairs, and groups look worse than they are with them: these figures have no upper end.
NO_UPPER_END = ("pair_precision", "pair_f1")
LARGEST_FMR = 0.01  # of two photos: too large already to group faces


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

    def sum_by_person(self, values: Floats) -> Floats:
        """Sum values of cells, float64[C], by person."""
        sums: Floats = np.bincount(self.person, values, self.people).astype(np.float64)
        return sums

    def faces_around(self, values: Floats) -> Floats:
        """Return, for each cell, the sum of values of all cells of its group, float64[C]."""
        sums: Floats = np.bincount(self.group, values).astype(np.float64)[self.group]
        return sums

    @cached_property
    def pairs(self) -> "PairCounts":
        """Pairs of faces that show each person."""
        faces = self.sum_by_person(self.count)
        return PairCounts(
            genuine=faces * (faces - 1) / 2,
            joined=self.sum_by_person(self.count * (self.count - 1) / 2),
            impostor=faces * (faces.sum() - faces),
            mixed=self.sum_by_person(self.count * (self.faces_around(self.count) - self.count)),
        )

    def mixed_groups(self) -> int:
        """Return how many groups have faces of more than one person."""
        return int((np.bincount(self.group) > 1).sum())


class PairCounts(NamedTuple):
    """Numbers of pairs of faces by person, float64[people]; a pair of two people counts for both.

    Attributes:
        genuine: Pairs of a person.
        joined: Those of them that are in one group.
        impostor: Pairs of a person and another.
        mixed: Those of them that are in one group.
    """

    genuine: Floats
    joined: Floats
    impostor: Floats
    mixed: Floats


def measure_grouping(heaps: Sequence[FaceHeap], errors: ErrorTable) -> GroupingErrors:
    """Measure how often grouping puts strangers together.

    Args:
        heaps: Faces of two people at least. People may be in several heaps; what is measured of all
            heaps is taken together.
        errors: The errors of two photos; they say which heights are worth measuring.

    Raises:
        NotEnough: Fewer than two people are there.
    """
    rows = zip(errors.thresholds, errors.fmr, strict=True)
    most = 1 - next((at for at, row in rows if row[0] <= LARGEST_FMR), errors.thresholds[-1])
    cuts = np.linspace(most / 4, most, CUTS).round(6).tolist()
    people = np.unique(np.concatenate([heap.person for heap in heaps]))
    joined, all_pairs, people_pairs = np.zeros(CUTS), 0.0, 0
    mixed, group_pairs = np.zeros(CUTS), np.zeros(CUTS)
    for embeddings, person, cohort in heaps:
        merges = average_linkage(unit_rows(embeddings), most, cohort=cohort)
        found = [Cells.of(person, merges.labels(cut)) for cut in cuts]
        people_pairs += found[0].people * (found[0].people - 1) // 2
        joined += [cells.pairs.mixed.sum() for cells in found]
        all_pairs += float(found[0].pairs.impostor.sum())
        mixed += [cells.mixed_groups() for cells in found]
        groups = np.array([cells.group.max() + 1 for cells in found], np.float64)
        group_pairs += groups * (groups - 1) / 2
    people_pairs = min(people_pairs, len(people) * (len(people) - 1) // 2)
    if not people_pairs:
        raise NotEnough("grouping needs two people to be measured")
    return GroupingErrors(
        people_pairs=people_pairs,
        cuts=tuple(cuts),
        linked=tuple((joined / all_pairs).round(10).tolist()),
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
            completeness (V-measure). None where nothing can be measured. The upper end of the
            precision and F1 of pairs is 1: at least the lower end.

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
    return f"{low:.4f} to {high:.4f}" if high < 1 else f"at least {low:.4f}"


def read_labels(path: Path, photos: Iterable[str]) -> dict[str, str]:
    """Return who is on photos, by a CSV file of the columns photo and person.

    Args:
        path: The file; photos may be missing in it.
        photos: The photos of the heap.

    Raises:
        BadData: The file cannot be read, or names a missing photo.
        NotEnough: It has no photo.
    """
    there = {printable(photo): photo for photo in photos}
    label: dict[str, str] = {}
    for line, row in csv_rows(path, ("photo", "person")):
        photo = row["photo"]
        if photo not in there:
            raise BadData(f"{path}: line {line}: {photo!r} is not among these photos")
        person = label.setdefault(there[photo], row["person"])
        if person != row["person"]:
            raise BadData(
                f"{path}: line {line}: an earlier line says that {photo!r} shows {person}; keep one"
            )
    if not label:
        raise NotEnough(f"{path}: no labels below the header; add lines photo,person")
    return label


def agreement(person: npt.ArrayLike, group: npt.ArrayLike) -> Agreement:
    """Measure how well groups agree with people.

    A person with hundreds of faces would make intervals useless, and is hardly expected to fail at
    once. So an interval allows for one more person who is grouped wrongly, of the effective number
    of people where no one has more than `MOST_FACES` faces; and the leverage of a person on the
    variance is one of two people's at most, as in `metrics.intervals`.

    Args:
        person: [N] names or numbers, whom each face shows; at least one.
        group: [N] names or numbers, the group of each face.
    """
    cells = Cells.of(person, group)
    genuine, faces = cells.pairs.genuine, cells.sum_by_person(cells.count)
    fewer = np.minimum(faces, MOST_FACES)
    of_pairs = genuine / max(1.0, genuine.sum()), effective_number(fewer * (fewer - 1))
    of_faces = faces / faces.sum(), effective_number(fewer)
    rates: dict[str, Rate | None] = {}
    for name, (values, without) in _figures(cells).items():
        if np.isnan(values):
            rates[name] = None
            continue
        value = float(np.clip(values, 0, 1))  # entropies round
        share, trials = of_pairs if name.startswith("pair") else of_faces
        influence = value - np.where(np.isnan(without), value, without)
        influence *= np.minimum(1, (1 - share) / (1 - LARGEST_LEVERAGE))
        spread = spread_over_people(influence, np.zeros(cells.people))
        low, high = rate_interval(value, spread, 1 / max(1.0, trials))
        rates[name] = Rate(value, (low, 1.0 if name in NO_UPPER_END else high))
    return Agreement(int(cells.count.sum()), cells.people, cells.mixed_groups(), rates)


def _figures(cells: Cells) -> dict[str, tuple[Floats, Floats]]:
    """Return each figure, float64[], and the same without each person, float64[people]."""

    def totals(of_person: Floats) -> Floats:
        """Return a sum over people, then the same without each of them."""
        total = of_person.sum()
        return np.append(total, total - of_person)

    def over_groups(function: Callable[[Floats, Floats], Floats]) -> Floats:
        """Return the sum over groups of a function of (faces, squares of cells), likewise."""
        count, square = cells.count, cells.count**2
        size, squares = cells.faces_around(count), cells.faces_around(square)
        first = np.unique(cells.group, return_index=True)[1]
        whole = function(size, squares)
        change = cells.sum_by_person(whole - function(size - count, squares - square))
        total = whole[first].sum()
        return np.append(total, total - change)

    pairs, faces_of = cells.pairs, cells.sum_by_person(cells.count)
    genuine, joined = totals(pairs.genuine), totals(pairs.joined)
    mixed = pairs.mixed.sum() / 2 - np.append(0.0, pairs.mixed)
    faces = totals(faces_of)
    of_person = cells.sum_by_person(cells.count**2) / faces_of
    joint = _entropy(faces, totals(cells.sum_by_person(_x_log_x(cells.count))))
    people = _entropy(faces, totals(_x_log_x(faces_of)))
    groups = _entropy(faces, over_groups(lambda size, _: _x_log_x(size)))
    homogeneity = 1 - _ratio(joint - groups, people, 0.0)
    completeness = 1 - _ratio(joint - people, groups, 0.0)
    pair = _ratio(joined, joined + mixed), _ratio(joined, genuine)
    b3 = (
        _ratio(over_groups(lambda size, squares: _ratio(squares, size, 0.0)), faces),
        _ratio(totals(of_person), faces),
    )
    figures = {
        "pair_precision": pair[0],
        "pair_recall": pair[1],
        "pair_f1": _harmonic(*pair),
        "b3_precision": b3[0],
        "b3_recall": b3[1],
        "b3_f1": _harmonic(*b3),
        "v_measure": _harmonic(homogeneity, completeness),
    }
    return {name: (values[0], values[1:]) for name, values in figures.items()}


def _ratio(part: Floats, whole: Floats, otherwise: float = np.nan) -> Floats:
    positive = whole > TINY
    return np.where(positive, part / np.where(positive, whole, 1.0), otherwise)


def _harmonic(one: Floats, other: Floats) -> Floats:
    both = one + other
    return np.where(both > 0, _ratio(2 * one * other, both), both)


def _x_log_x(x: Floats) -> Floats:
    return x * np.log(np.maximum(x, 1.0))


def _entropy(total: Floats, x_log_x: Floats) -> Floats:
    """Return the entropy of counts that sum to `total`, from the sum of x log x."""
    return np.where(total > 0, np.log(np.maximum(total, 1.0)) - _ratio(x_log_x, total, 0.0), 0.0)
