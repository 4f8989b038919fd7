"""Errors of groups of faces whose people are known.

Everything follows from cells: how many faces of one person are in one group. Intervals come from
drawing people again; a pair of strangers counts as often as both are drawn, multiplied.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import ErrorTable, GroupErrors, Rate
from facepairs.errors import NotEnough
from facepairs.evaluation.fitting import measured_rates
from facepairs.evaluation.metrics.arrays import Floats, Ints
from facepairs.evaluation.metrics.intervals import SEED, TAILS
from facepairs.evaluation.pair_scores import FaceHeap
from facepairs.support.random_streams import Stream, raw_words, unit
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


class Figures(NamedTuple):
    """Agreement of groups with people, each from 0 to 1."""

    pair_precision: float
    pair_recall: float
    pair_f1: float
    b3_precision: float
    b3_recall: float
    b3_f1: float
    v_measure: float


@dataclass(frozen=True)
class Agreement:
    """How well groups agree with people, with intervals of 95 % over people.

    `pair_…` count pairs of faces; `b3_…` are means over faces (B³); `v_measure` is the harmonic
    mean of homogeneity and completeness. NaN where nothing can be measured is None.

    References:
        Bagga and Baldwin, "Entity-Based Cross-Document Coreferencing Using the Vector Space Model",
        1998. Rosenberg and Hirschberg, "V-Measure", 2007.
    """

    faces: int
    people: int
    mixed_groups: int
    figures: dict[str, Rate | None]

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict."""
        return dict(msgspec.to_builtins(self))


def agreement(person: npt.ArrayLike, group: npt.ArrayLike) -> Agreement:
    """Measure how well groups agree with people.

    Args:
        person: int[N], whom each face shows.
        group: int[N], the group of each face.

    Raises:
        NotEnough: There is no face.
    """
    cells = Cells.of(person, group)
    if not cells.people:
        raise NotEnough("no face has a label; nothing can be measured")
    values = _figures(cells, np.ones(cells.people))
    draws = np.array([_figures(cells, drawn) for drawn in _draws(cells.people)])
    rates: dict[str, Rate | None] = {}
    for name, value, column in zip(Figures._fields, values, draws.T, strict=True):
        known = column[~np.isnan(column)]
        low, high = np.percentile(known, TAILS).tolist() if len(known) else (0.0, 1.0)
        interval = (min(low, value), min(1.0, max(high, value)))
        rates[name] = None if np.isnan(value) else Rate(value, interval)
    return Agreement(int(cells.count.sum()), cells.people, cells.mixed_groups(), rates)


def _draws(people: int) -> Sequence[Floats]:
    """Return how often each person is drawn, DRAWS times."""
    words = (raw_words(SEED, Stream.BOOTSTRAP_PEOPLE, 0, draw, people) for draw in range(DRAWS))
    drawn = ((unit(row) * people).astype(np.int64) for row in words)
    return [np.bincount(row, minlength=people).astype(np.float64) for row in drawn]


def _figures(cells: Cells, drawn: Floats) -> Figures:
    genuine, joined, _, mixed = cells.pairs(drawn)
    faces = drawn[cells.person] * cells.count
    in_group = cells.count / np.bincount(cells.group, cells.count)[cells.group]
    of_person = cells.count / np.bincount(cells.person, cells.count)[cells.person]
    total = faces.sum()
    pair, b3 = (
        (_ratio(joined, joined + mixed), _ratio(joined, genuine)),
        (_ratio(float(faces @ in_group), total), _ratio(float(faces @ of_person), total)),
    )
    joint = _entropy(faces)
    groups, people = (_entropy(_sums(side, faces)) for side in (cells.group, cells.person))
    homogeneity = 1 - _ratio(joint - groups, people, 0.0)
    completeness = 1 - _ratio(joint - people, groups, 0.0)
    v_measure = _harmonic(homogeneity, completeness)
    return Figures(*map(float, (*pair, _harmonic(*pair), *b3, _harmonic(*b3), v_measure)))


def _sums(number: Ints, weight: Floats) -> Floats:
    sums: Floats = np.bincount(number, weight).astype(np.float64)
    return sums


def _ratio(part: float, whole: float, otherwise: float = float("nan")) -> float:
    return part / whole if whole > 0 else otherwise


def _harmonic(one: float, other: float) -> float:
    return _ratio(2 * one * other, one + other, one + other)


def _entropy(count: Floats) -> float:
    share = count[count > 0] / count.sum()
    return float(-(share * np.log(share)).sum())


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
    mixed, group_pairs = np.zeros(CUTS), np.zeros(CUTS)
    people = np.unique(np.concatenate([heap.person for heap in heaps]))
    drawn = [np.ones(len(people)), *_draws(len(people))]
    for embeddings, person in heaps:
        merges = average_linkage(unit_rows(embeddings), most)
        found = [Cells.of(person, merges.labels(cut)) for cut in cuts]
        inside = np.searchsorted(people, np.unique(person))
        counts = np.array([[cells.pairs(draw[inside])[2:] for cells in found] for draw in drawn])
        joined += counts[:, :, 1]
        pairs += counts[:, :1, 0]
        mixed += [cells.mixed_groups() for cells in found]
        groups = np.array([cells.group.max() + 1 for cells in found], np.float64)
        group_pairs += groups * (groups - 1) / 2
    people_pairs = len(people) * (len(people) - 1) // 2
    if not people_pairs:
        raise NotEnough("grouping needs two people to be measured")
    shares = joined / np.maximum(pairs, 1)
    return GroupErrors(
        people_pairs=people_pairs,
        cuts=tuple(cuts),
        linked=measured_rates(shares, round(pairs[0, 0]), people_pairs),
        mixed=tuple(np.minimum(1, mixed / np.maximum(1, group_pairs)).round(10).tolist()),
    )
