"""Measure a network on every pair of photos of a data set, whose people recur."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import ErrorTable, OperatingPoint
from facepairs.data.minimums import MAX_PAIRS_PER_PERSON
from facepairs.evaluation.fitting import threshold_grid
from facepairs.evaluation.metrics.curves import threshold_at_fmr
from facepairs.evaluation.metrics.intervals import SEED, measured_rates
from facepairs.support import console
from facepairs.support.random_streams import Stream, raw_words, unit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
ROWS = 1024  # photos compared with all others at a time
DRAWS = 200  # of people, for the intervals
TARGETS = (0.1, 0.01, 0.001, 0.0001)


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Every pair of some photos.

    Genuine pairs count so that nobody has more than ten: over half of LFW's are of one man.

    Attributes:
        embeddings: float32[N, D], rows of length 1.
        person: int64[N].
        cluster: int64[N], from 1; strangers of one cluster look alike.
    """

    embeddings: npt.NDArray[np.float32]
    person: Ints
    cluster: Ints

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
            part = AllPairs(self.embeddings[inside], self.person[inside], self.cluster[inside])
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
        drawn = np.ones((len(people), 1 + DRAWS))
        for draw in range(DRAWS):
            words = raw_words(SEED, Stream.BOOTSTRAP_PEOPLE, 0, draw, len(people))
            chosen = (unit(words) * len(people)).astype(np.int64)
            drawn[:, 1 + draw] = np.bincount(chosen, minlength=len(people))
        owner = np.searchsorted(people, owner)
        pairs = np.maximum(1, np.bincount(owner, minlength=len(people)))
        limit = np.minimum(1, MAX_PAIRS_PER_PERSON / pairs)
        fnmr = 1 - _accepted(genuine, drawn[owner] * limit[owner][:, None], grid)
        counts = self._count_accepted(drawn[number].astype(np.float32), grid)
        fmr, alike_fmr = (count[:, 1:] / count[:, :1] for count in counts)
        in_cluster = np.zeros((len(people), int(self.cluster.max()) + 1))
        in_cluster[number, self.cluster] = 1
        alike_people = int((np.triu(in_cluster @ in_cluster.T, 1) > 0).sum())
        several = len(np.unique(owner))
        return ErrorTable(
            measured_on=measured_on,
            people=len(people),
            genuine_pairs=len(genuine),
            impostor_pairs=len(impostor),
            lookalike_pairs=len(alike),
            thresholds=tuple(grid.tolist()),
            fmr=measured_rates(fmr, len(impostor), len(people) * (len(people) - 1) // 2),
            lookalike_fmr=measured_rates(alike_fmr, len(alike), alike_people),
            fnmr=measured_rates(fnmr, round(limit[owner].sum()), several),
        )

    def _count_accepted(
        self, weight: npt.NDArray[np.float32], grid: Floats
    ) -> tuple[Floats, Floats]:
        """Count impostor pairs and look-alikes accepted at -infinity and at every threshold.

        Args:
            weight: float32[N, W], how often a photo counts; a pair counts as their product.
            grid: Thresholds.

        Returns:
            float64[W, 1 + thresholds], twice.
        """
        counts = np.zeros((2, weight.shape[1], 1 + len(grid)))
        progress = console.progress("comparing all pairs")
        for start, score, impostor, alike in self._blocks():
            rows, others = weight[start : start + len(score)], weight[start:]
            for kind, members in enumerate((impostor, alike)):
                scores = np.where(members, score, -2)
                for place, threshold in enumerate((-1.5, *grid)):
                    accepted = (scores >= threshold).astype(np.float32)
                    products = (rows * (accepted @ others)).sum(axis=0, dtype=np.float64)
                    counts[kind, :, place] += products
            progress(start + len(score), len(self.person))
        return counts[0], counts[1]


def _accepted(score: Floats, weight: Floats, grid: Floats) -> Floats:
    """Return the share of weighted pairs accepted: float64[P], [P, W] → [W, thresholds]."""
    order = np.argsort(score)
    below = np.concatenate([np.zeros((1, weight.shape[1])), np.cumsum(weight[order], axis=0)])
    rejected = below[np.searchsorted(score[order], grid)]
    return 1 - (rejected / below[-1]).T
