"""Average linkage of embeddings: groups of faces by the mean distance between them.

The mean cosine distance between two groups of unit vectors is one minus the product of their mean
vectors. Therefore the groups' means are all that is kept, and no matrix of distances is needed:
memory grows with the number of faces, and 100,000 of them are compared in blocks.

Strangers who resemble many other people are more alike than others. A cohort, faces of many people,
says how crowded a face's place is; there, similarities count for less. The bias of a pair of groups
is the mean over its pairs of faces, so this is still average linkage.

References:
    Murtagh, "A Survey of Recent Advances in Hierarchical Clustering Algorithms", The Computer
    Journal 26, 1983: groups that are each other's nearest may be merged in any order.
    Auckenthaler et al., "Score Normalization for Text-Independent Speaker Verification Systems",
    Digital Signal Processing 10, 2000: scores are normalised by those with a cohort.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.bundles.scorer import ScoreArray
from facepairs.errors import BadBundle
from facepairs.support import console
from facepairs.support.console import Progress

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
ROWS = 1024  # groups compared with all others at a time
# On View 1's training people of LFW, at the same precision: as many pairs found as with 0, and half
# as many people mixed up. The share of strangers who are joined is then the same in small heaps and
# in large ones.
EVIDENCE = 0.3
NEVER = -2.0  # below every similarity
# On halves of View 1's training people, at a precision of .99: recall rises from .957 to .980. The
# same from .25 to .35.
CROWDED = 0.3


def unit_rows(rows: ScoreArray) -> ScoreArray:
    """Return rows of length 1 in L2."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: ScoreArray = rows / np.maximum(length, np.float32(1e-12))
    return unit


def crowd_bias(embeddings: ScoreArray, cohort: ScoreArray | None) -> ScoreArray:
    """Return the correction of every similarity of a face: float32[N], lower in dense regions.

    Args:
        embeddings: float32[N, D], rows of length 1.
        cohort: float32[K, D], centres of many people's embeddings, of such a length that the
            largest product of a face with them is 1 in the mean; None for no bias.

    Raises:
        BadBundle: The cohort is not of these embeddings.
    """
    if cohort is None:
        return np.zeros(len(embeddings), np.float32)
    if cohort.shape[1] != embeddings.shape[1]:
        raise BadBundle(
            f"the cohort has {cohort.shape[1]} numbers a row, the embeddings "
            f"{embeddings.shape[1]}; copy the bundle again"
        )
    crowded = np.empty(len(embeddings), np.float32)
    for begin in range(0, len(embeddings), ROWS):
        rows = slice(begin, begin + ROWS)
        crowded[rows] = (embeddings[rows] @ cohort.T).max(axis=1)
    bias: ScoreArray = np.float32(CROWDED) * (1 - crowded)
    return bias


class GroupMeans(NamedTuple):
    """Means of groups of faces.

    Attributes:
        mean: float32[G, D], shorter the more a group's faces differ.
        bias: float64[G], of its faces; see `crowd_bias`.
        size: int64[G], its number of faces.
    """

    mean: ScoreArray
    bias: Floats
    size: Ints

    @classmethod
    def of(
        cls, embeddings: ScoreArray, group: npt.ArrayLike, cohort: ScoreArray | None
    ) -> "GroupMeans":
        """Return the means of groups.

        Args:
            embeddings: float32[N, D], rows of length 1.
            group: int[N], the group of each, numbered from 0 without gaps.
            cohort: As for `crowd_bias`.
        """
        number = np.asarray(group, np.int64)
        size = np.bincount(number)
        mean = np.zeros((len(size), embeddings.shape[1]), np.float32)
        np.add.at(mean, number, embeddings)
        bias = np.bincount(number, crowd_bias(embeddings, cohort)) / size
        mean /= size[:, None]
        return cls(mean, bias, size)

    def first(self, count: int) -> "GroupMeans":
        """Return the first groups."""
        return GroupMeans(self.mean[:count], self.bias[:count], self.size[:count])

    def near(self, others: "GroupMeans", most: float) -> Iterator[tuple[float, int, int]]:
        """Yield which of these groups would merge with which others up to a height.

        Yields:
            The height, and the numbers of both groups.
        """
        for begin in range(0, len(self.size), ROWS):
            rows = slice(begin, begin + ROWS)
            distance = 1 - self.mean[rows] @ others.mean.T - self.bias[rows, None] - others.bias
            pairs = self.size[rows, None] * others.size
            height = distance * (1 + EVIDENCE / np.sqrt(pairs))
            one, other = np.nonzero(height <= most)
            columns = height[one, other], one + begin, other
            yield from zip(*(column.tolist() for column in columns), strict=True)

    def nearest(self, most: float, count: int) -> list[tuple[float, int, int]]:
        """Return the pairs of these groups that would merge first, as `near` does.

        Args:
            most: The largest height.
            count: At most so many pairs.
        """
        return nsmallest(count, (pair for pair in self.near(self, most) if pair[1] < pair[2]))


@dataclass(frozen=True, eq=False)
class Merges:
    """What average linkage has merged, by rising height.

    Attributes:
        groups: Number of groups before the first merge.
        one: int64[M], the group that a merge keeps, the first of both; groups are numbered as
            before the first merge.
        other: int64[M], the group that it adds to it.
        height: float64[M], the distance between the two, raised where few pairs support it; see
            `average_linkage`.
    """

    groups: int
    one: Ints
    other: Ints
    height: Floats

    def linked_pairs(self, cuts: npt.ArrayLike, faces: Ints) -> Ints:
        """Return how many pairs of faces are in one group at each height.

        Args:
            cuts: [C] heights.
            faces: int64[groups], faces of each group before the first merge.
        """
        size = faces.tolist()
        joined = [int((faces * (faces - 1) // 2).sum())]
        for one, other in zip(self.one.tolist(), self.other.tolist(), strict=True):
            joined.append(joined[-1] + size[one] * size[other])
            size[one] += size[other]
        linked: Ints = np.array(joined)[np.searchsorted(self.height, cuts, side="right")]
        return linked

    def labels(self, cut: float) -> Ints:
        """Return the group of each group before the first merge: int64[groups], from 0.

        Groups are numbered by the first of their groups before the first merge.
        """
        label = np.arange(self.groups)
        members = {group: [group] for group in range(self.groups)}
        count = int(np.searchsorted(self.height, cut, side="right"))
        for one, other in zip(self.one[:count].tolist(), self.other[:count].tolist(), strict=True):
            moved = members.pop(other)
            label[moved] = one
            members[one] += moved
        return np.unique(label, return_inverse=True)[1].astype(np.int64)


class _Linkage:
    """The groups that can still merge; the first `fixed` never merge with each other."""

    def __init__(
        self, embeddings: ScoreArray, bias: ScoreArray, start: Ints, fixed: int, apart: Ints
    ) -> None:
        groups = int(start.max(initial=-1)) + 1
        self.total = np.zeros((groups, embeddings.shape[1]), np.float32)
        np.add.at(self.total, start, embeddings)
        self.bias = np.bincount(start, bias, groups).astype(np.float32)
        self.size = np.bincount(start, minlength=groups)
        self.fixed, self.apart = fixed, apart
        self.active = np.ones(groups, np.bool_)
        self.nearest = np.zeros(groups, np.int64)
        self.distance = np.full(groups, np.inf)

    def find_nearest(self, wanted: Ints, progress: Progress | None) -> None:
        """Find the nearest other active group of some groups."""
        active = np.flatnonzero(self.active)
        size = self.size.astype(np.float32)[active]
        mean, bias = self.total[active] / size[:, None], self.bias[active] / size
        place = np.searchsorted(active, wanted)
        for start in range(0, len(wanted), ROWS):
            rows = place[start : start + ROWS]
            score: ScoreArray = mean[rows] @ mean.T
            score += bias
            self._forbid(score, active, rows)
            best = score.argmax(axis=1)
            groups = active[rows]
            self.nearest[groups] = active[best]
            nearest = score[np.arange(len(rows)), best] + bias[rows]
            self.distance[groups] = np.maximum(0, 1 - nearest.astype(np.float64))
            if progress:
                progress(start + len(rows), len(wanted))

    def _forbid(self, score: ScoreArray, active: Ints, rows: Ints) -> None:
        score[np.arange(len(rows)), rows] = NEVER
        fixed = active < self.fixed
        score[np.ix_(fixed[rows], fixed)] = NEVER
        row_of, column_of = (np.full(len(self.active), -1) for _ in range(2))
        row_of[active[rows]], column_of[active] = np.arange(len(rows)), np.arange(len(active))
        one, other = np.concatenate([self.apart, self.apart[:, ::-1]]).T
        places = np.stack([row_of[one], column_of[other]])
        score[tuple(places[:, (places >= 0).all(axis=0)])] = NEVER

    def merge(self, one: Ints, other: Ints) -> None:
        """Merge each group of `other` into that of `one`."""
        self.total[one] += self.total[other]
        self.bias[one] += self.bias[other]
        self.size[one] += self.size[other]
        self.active[other] = False
        into = np.arange(len(self.active))
        into[other] = one
        self.apart = into[self.apart]


def average_linkage(
    embeddings: ScoreArray,
    most: float,
    start: npt.ArrayLike | None = None,
    fixed: int = 0,
    apart: npt.ArrayLike = (),
    evidence: float = EVIDENCE,
    cohort: ScoreArray | None = None,
) -> Merges:
    """Merge groups of faces, the nearest first, up to a mean cosine distance.

    A mean of few distances says less than one of many. The height of a merge is its distance times
    1 + evidence / sqrt(pairs). A later merge that is lower confirms those within it, which get its
    height.

    Args:
        embeddings: float32[N, D], rows of length 1.
        most: The largest distance at which groups are merged.
        start: int[N], the group of each face before the first merge, numbered from 0; by default
            each face is a group of its own.
        fixed: So many of the first groups of `start` never merge with each other.
        apart: int[P, 2], further pairs of groups that never merge.
        evidence: How much the height of few pairs is raised; with 0 it is the distance.
        cohort: As for `crowd_bias`, whose sum for two faces is taken from their distance.

    Returns:
        The merges up to that distance. With evidence 0, no cohort and no pairs kept apart they are
        those of SciPy's `linkage(…, "average")`.
    """
    first = np.arange(len(embeddings)) if start is None else np.asarray(start, np.int64)
    pairs = np.asarray(apart, np.int64).reshape(-1, 2)
    linkage = _Linkage(embeddings, crowd_bias(embeddings, cohort), first, fixed, pairs)
    groups = len(linkage.size)
    found: list[tuple[npt.NDArray[Any], ...]] = []
    stale = np.arange(groups)
    while len(stale) > 1 or found:
        # The first comparison takes long, the later ones are short.
        linkage.find_nearest(stale, None if found else console.progress("grouping"))
        linkage.active &= linkage.distance <= most
        active, nearest = np.flatnonzero(linkage.active), linkage.nearest
        if not len(active):
            break
        one = active[(nearest[nearest[active]] == active) & (active < nearest[active])]
        if not len(one):  # rounding has made a circle of equal distances
            one = active[[linkage.distance[active].argmin()]]
        one, other = np.minimum(one, nearest[one]), np.maximum(one, nearest[one])
        found.append((one, other, linkage.distance[one], linkage.size[one] * linkage.size[other]))
        linkage.merge(one, other)
        changed = np.zeros(groups, np.bool_)
        changed[one] = changed[other] = True
        stale = np.flatnonzero(linkage.active & (changed | changed[nearest]))
    nothing = np.zeros(0, np.int64)
    found.insert(0, (nothing, nothing, np.zeros(0), nothing))
    one, other, distance, joined = map(np.concatenate, zip(*found, strict=True))
    height = _confirmed(one, other, distance * (1 + evidence / np.sqrt(joined)))
    order = height.argsort(kind="stable")
    return Merges(groups, one[order], other[order], height[order])


def _confirmed(one: Ints, other: Ints, height: Floats) -> Floats:
    """Lower each merge to the lowest of the later merges that contain it."""
    last: dict[int, int] = {}
    inside = []
    for number, (left, right) in enumerate(zip(one.tolist(), other.tolist(), strict=True)):
        inside.append([last[side] for side in (left, right) if side in last])
        last[left] = number
    for number in range(len(height) - 1, -1, -1):
        height[inside[number]] = np.minimum(height[inside[number]], height[number])
    return height
