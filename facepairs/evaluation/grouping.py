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
from facepairs.support.random_streams import Stream, raw_words, unit
from facepairs.verification.linkage import average_linkage
from facepairs.verification.scorer import ScoreArray

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


def measure_grouping(
    embeddings: ScoreArray, person: Ints, errors: ErrorTable, part: Ints | None = None
) -> GroupErrors:
    """Measure how often grouping puts strangers together.

    Args:
        embeddings: float32[N, D], rows of length 1.
        person: int64[N], whom each face shows; two people at least.
        errors: The errors of two photos; they say which heights are worth measuring.
        part: int64[N], the heap of each face where there are several: pairs of two heaps do not
            count. None for one heap.
    """
    rows = zip(errors.thresholds, errors.fmr, strict=True)
    most = 1 - next((at for at, row in rows if row[0] <= LARGEST_FMR), errors.thresholds[-1])
    cuts = np.linspace(most / 4, most, CUTS).round(6).tolist()
    number = np.zeros(len(person), np.int64) if part is None else part
    heaps = [np.flatnonzero(number == at) for at in np.unique(number)]
    joined, all_pairs = np.zeros((1 + DRAWS, CUTS)), np.zeros(1 + DRAWS)
    mixed, group_pairs, people_pairs = np.zeros(CUTS), np.zeros(CUTS), 0
    for heap in heaps:
        merges = average_linkage(embeddings[heap], most)
        found = [Cells.of(person[heap], merges.labels(cut)) for cut in cuts]
        people = found[0].people
        drawn = [np.ones(people), *_draws(people)]
        counts = np.array([[cells.pairs(draw)[2:] for cells in found] for draw in drawn])
        joined += counts[:, :, 1]
        all_pairs += counts[:, 0, 0]
        mixed += [cells.mixed_groups() for cells in found]
        groups = np.array([cells.group.max() + 1 for cells in found], np.float64)
        group_pairs += groups * (groups - 1) / 2
        people_pairs += people * (people - 1) // 2
    pairs = round(all_pairs[0])
    if not pairs:
        raise NotEnough("grouping needs two people to be measured, has one")
    shares = joined / np.maximum(all_pairs, 1)[:, None]
    return GroupErrors(
        impostor_pairs=pairs,
        cuts=tuple(cuts),
        linked=measured_rates(shares, pairs, people_pairs),
        mixed=tuple(np.minimum(1, mixed / np.maximum(1, group_pairs)).round(10).tolist()),
    )
