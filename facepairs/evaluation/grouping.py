"""Errors of groups of faces whose people are known.

Everything follows from cells: how many faces of one person are in one group. Intervals come from
drawing people again; a pair of strangers counts as often as both are drawn, multiplied.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import ErrorTable, GroupErrors
from facepairs.errors import NotEnough
from facepairs.evaluation.fitting import measured_rates
from facepairs.evaluation.metrics.arrays import Floats, Ints
from facepairs.evaluation.metrics.intervals import draw_people
from facepairs.evaluation.pair_scores import FaceHeap
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
    mixed, group_pairs = np.zeros(CUTS), np.zeros(CUTS)
    people = np.unique(np.concatenate([heap.person for heap in heaps]))
    drawn = [np.ones(len(people)), *(draw_people(len(people), draw) for draw in range(DRAWS))]
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
