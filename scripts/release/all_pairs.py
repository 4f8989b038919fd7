"""Measure a network on every pair of photos of a data set, whose people recur."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import ErrorTable, OperatingPoint
from facepairs.data.minimums import MAX_PAIRS_PER_PERSON
from facepairs.evaluation.fitting import rate_rows, threshold_grid
from facepairs.evaluation.grouping import MOST_FACES
from facepairs.evaluation.metrics.curves import threshold_at_fmr
from facepairs.evaluation.metrics.intervals import (
    accepted_at,
    effective_number,
    falling_intervals,
    search_variance,
    squares_at,
)
from facepairs.support import console

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
ROWS = 1024  # photos compared with all others at a time
RARE = 0.01  # rates below it are of few pairs, of which every two people are told apart
TARGETS = (0.1, 0.01, 0.001, 0.0001)


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Every pair of some photos.

    Genuine pairs count so that nobody has more than ten: over half of LFW's are of one man.

    Attributes:
        embeddings: float32[N, D], rows of length 1.
        person: int64[N].
        cluster: int64[N], from 1; strangers of one cluster look alike.
        again: int64[R, N], the clusters that halves of the people have.
        hard: bool[N], photos of which a pair must show one or two; None counts all pairs.
    """

    embeddings: npt.NDArray[np.float32]
    person: Ints
    cluster: Ints
    again: Ints
    hard: npt.NDArray[np.bool_] | None = None

    def where(self, members: npt.NDArray[np.bool_]) -> "AllPairs":
        """Return the pairs of some of the photos, bool[N]."""
        columns = self.embeddings[members], self.person[members], self.cluster[members]
        return AllPairs(*columns, self.again[:, members])

    @cached_property
    def _scores(self) -> tuple[Floats, Ints, Floats, Floats]:
        """Scores of genuine pairs and whose they are, of impostor pairs, and of look-alikes."""
        parts: list[list[npt.NDArray[np.generic]]] = [[], [], [], []]
        for start, score, impostor, alike in self._blocks():
            genuine = np.isfinite(score) & ~impostor
            rows = self.person[start : start + len(score), None]
            values = (score[genuine], np.broadcast_to(rows, score.shape)[genuine])
            for part, value in zip(parts, (*values, score[impostor], score[alike]), strict=True):
                part.append(value)
        genuine, person, impostor, alike = (np.concatenate(part) for part in parts)
        scores = (array.astype(np.float64) for array in (impostor, alike))
        return genuine.astype(np.float64), person.astype(np.int64), *scores

    def _blocks(self) -> Iterator[tuple[int, npt.NDArray[np.float32], ...]]:  # type: ignore[type-arg]
        """Yield the place of some photos, their scores with those from there on, and which of these
        are impostor pairs, and look-alikes; a pair comes once, all else has a score of NaN."""
        for start in range(0, len(self.embeddings), ROWS):
            rows = self.embeddings[start : start + ROWS]
            score = np.clip(rows @ self.embeddings[start:].T, -1, 1)
            score[np.tril_indices(len(rows))] = np.nan
            stop = start + len(rows)
            if self.hard is not None:
                score[~self.hard[start:stop, None] & ~self.hard[None, start:]] = np.nan
            other = self.person[start:stop, None] != self.person[None, start:]
            impostor = other & np.isfinite(score)
            same = self.cluster[start:stop, None] == self.cluster[None, start:]
            yield start, score, impostor, impostor & same

    def thresholds(self) -> list[OperatingPoint]:
        """Return the threshold of each target FMR among look-alikes."""
        alike = self._scores[3]
        return [
            OperatingPoint(threshold_at_fmr(alike, fmr), f"fmr-{fmr:g}", fmr, "look-alikes")
            for fmr in TARGETS
        ]

    def cluster_rates(self, threshold: float) -> Floats:
        """Return the FMR within each cluster, rising."""
        rates = []
        for number in np.unique(self.cluster):
            inside = self.cluster == number
            part = self.where(inside)
            rates.append(float((part._scores[2] >= threshold).mean()))
        return np.sort(rates)

    def errors(self, wanted: list[float], measured_on: str) -> ErrorTable:
        """Return the errors at every threshold, with intervals over people.

        Args:
            wanted: Thresholds that the table must have.
            measured_on: The photos, in words.
        """
        genuine, owner, impostor, alike = self._scores
        grid = threshold_grid(genuine, impostor, wanted)
        people, number = np.unique(self.person, return_inverse=True)
        all_columns = []
        searches = 0.0, self._search_variance(grid)
        for kind, (scores, searched) in enumerate(zip((impostor, alike), searches, strict=True)):
            rates = accepted_at(_places(scores, grid), None, len(grid)) / len(scores)
            events, pairs, shared, trials = self._count_by_person(number, grid, kind, rates)
            of = len(scores)
            ends = falling_intervals(rates, events, pairs, of, shared / of**2, trials, searched)
            all_columns.append(rate_rows(rates, *ends))
        owners, owner = np.unique(np.searchsorted(people, owner), return_inverse=True)
        pairs = np.bincount(owner).astype(np.float64)
        weight = np.minimum(1, MAX_PAIRS_PER_PERSON / pairs)
        places = owner * (len(grid) + 1) + _places(genuine, grid)
        accepted = _by_row(places, len(owners), len(grid)) * weight[:, None]
        of = float((pairs * weight).sum())
        rates = accepted.sum(axis=0) / of
        nothing = np.zeros(len(grid))
        low, high = falling_intervals(rates, accepted, pairs * weight, of, nothing, len(owners))
        return ErrorTable(
            measured_on=measured_on,
            people=len(people),
            genuine_pairs=len(genuine),
            impostor_pairs=len(impostor),
            lookalike_pairs=len(alike),
            thresholds=tuple(grid.tolist()),
            fmr=all_columns[0],
            lookalike_fmr=all_columns[1],
            fnmr=rate_rows(1 - rates, 1 - high, 1 - low),
        )

    def _search_variance(self, grid: Floats) -> Floats | float:
        """Return what the search for look-alikes adds to the variance at each threshold."""
        counts = np.zeros((len(self.again), len(grid) + 1))
        for start, score, impostor, _ in self._blocks():
            for number, cluster in enumerate(self.again):
                same = cluster[start : start + len(score), None] == cluster[None, start:]
                place = _places(score[impostor & same].astype(np.float64), grid)
                counts[number] += np.bincount(place, minlength=len(grid) + 1)
        return search_variance([_from_counts(row[None])[0] / row.sum() for row in counts])

    def _count_by_person(
        self, number: Ints, grid: Floats, kind: int, rates: Floats
    ) -> tuple[Floats, Floats, Floats, float]:
        """Count pairs of strangers by person.

        Args:
            number: int64[N], the person of each photo, from 0.
            grid: Thresholds.
            kind: 0 for all impostor pairs, 1 for look-alikes.
            rates: The share of them that is accepted at each threshold.

        Returns:
            float64[people, thresholds], pairs accepted; float64[people], all pairs; float64
            [thresholds], the sum over two people of the square of their accepted pairs, where these
            are few (elsewhere 0, which widens intervals); the effective number of two people with
            pairs, because two with many photos err together.
        """
        people, width = int(number.max()) + 1, len(grid) + 1
        counts = np.zeros(people * width, np.int64)
        of_two = np.zeros(people * people, np.int64)
        first_rare = int(np.searchsorted(-rates, -RARE))
        keys, places = [], []
        progress = console.progress("comparing all pairs")
        for start, score, *kinds in self._blocks():
            rows, columns = np.nonzero(kinds[kind])
            place = _places(score[rows, columns].astype(np.float64), grid)
            one, other = number[start + rows], number[start + columns]
            for side in (one, other):
                counts += np.bincount(side * width + place, minlength=len(counts))
            key = np.minimum(one, other) * people + np.maximum(one, other)
            of_two += np.bincount(key, minlength=len(of_two))
            rare = place > first_rare
            keys.append(key[rare])
            places.append(place[rare])
            progress(start + len(score), len(self.person))
        shared = np.zeros(len(grid))
        cell = np.unique(np.concatenate(keys), return_inverse=True)[1]
        if len(cell):
            shared[first_rare:] = squares_at(cell, np.concatenate(places), len(grid))[first_rare:]
        table = counts.reshape(people, width)
        trials = effective_number(np.minimum(of_two, MOST_FACES**2).astype(np.float64))
        return _from_counts(table), table.sum(axis=1).astype(np.float64), shared, trials


def _places(score: Floats, grid: Floats) -> Ints:
    """Return at how many of the first thresholds each score is accepted."""
    return np.searchsorted(grid, score, side="right")


def _by_row(places: Ints, rows: int, thresholds: int) -> Floats:
    """Return how many pairs of each row are accepted at each threshold."""
    table = np.bincount(places, minlength=rows * (thresholds + 1)).reshape(rows, -1)
    return _from_counts(table)


def _from_counts(table: npt.NDArray[np.generic]) -> Floats:
    """Return the sums of what comes after each column but the last."""
    return table[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:].astype(np.float64)
