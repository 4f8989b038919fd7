"""Strangers who look alike: who they are, and how certain that is.

Most strangers are unlike at a glance, and a false match rate over all of them promises too much:
those who compare photos mostly compare people of one sex, age and origin. Nothing of that is
inferred about anyone. Photos are clustered by their embeddings, and impostor pairs within a
cluster, strangers who look alike, are the hard ones.

CLUSTERS: chosen on the people of LFW's View 1 test set with `scripts/studies/look_alikes.py`. With
8 clusters, a threshold that accepts 1 of 100 look-alikes accepts fewer than 1 of 100 pairs of women
(told by first names, for this choice only); one that accepts 1 of 100 strangers accepts 3 of them.

Other people would give other clusters. So they are found again on random halves of the people, for
the intervals of rates among look-alikes (`metrics.intervals.search_variance`). On LFW that adds .3
to 2 times the variance by the jackknife, which takes clusters as given.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from facepairs.data.pairs import PairList
from facepairs.evaluation.metrics.arrays import Bools, Ints
from facepairs.grouping.linkage import unit_rows

CLUSTERS = 8
PEOPLE_PER_CLUSTER = 20  # at least: they form 190 pairs of strangers
SPLITS = 2  # of the people into halves
Rows = npt.NDArray[np.float32]
Clusters = npt.NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class LookAlikes:
    """Which of N pairs show strangers who look alike.

    Attributes:
        pairs: bool[N], some at least.
        again: bool[R, N], those by the clusters of random halves of the people; R is 0 where these
            are not known, and intervals take the clusters as given.
    """

    pairs: Bools
    again: Bools

    @classmethod
    def of(cls, pairs: Bools) -> "LookAlikes":
        """Return pairs that are given."""
        return cls(pairs, np.zeros((0, len(pairs)), np.bool_))

    @classmethod
    def join(cls, parts: "Sequence[LookAlikes]") -> "LookAlikes":
        """Return those of several sets of pairs, one after the other."""
        rounds = min(len(part.again) for part in parts)
        again = np.concatenate([part.again[:rounds] for part in parts], axis=1)
        return cls(np.concatenate([part.pairs for part in parts]), again)

    def where(self, keep: Bools) -> "LookAlikes":
        """Return those of some of the pairs, bool[N]."""
        return LookAlikes(self.pairs[keep], self.again[:, keep])


def find_clusters(embeddings: Rows, person: Ints, most: int = CLUSTERS) -> Clusters | None:
    """Cluster photos of people that a network was not trained on.

    Args:
        embeddings: float32[N, D]; rows of NaN are photos that cannot be used.
        person: int[N], the person of each photo.
        most: How many clusters there are at most.

    Returns:
        int16[N], the cluster of each photo from 1, 0 for those that cannot be used; None with too
        few people for two clusters.
    """
    rows, usable = unit_rows(embeddings), _usable(embeddings)
    count = min(most, len(np.unique(person[usable])) // PEOPLE_PER_CLUSTER)
    return _clusters(rows, usable, usable, count) if count >= 2 else None


def find_clusters_again(embeddings: Rows, person: Ints, count: int) -> Clusters:
    """Return the clusters of all photos, int16[R, N], found on random halves of the people each.

    Args:
        embeddings: As for `find_clusters`.
        person: As for `find_clusters`.
        count: How many clusters that found.
    """
    rows, usable = unit_rows(embeddings), _usable(embeddings)
    people, random = np.unique(person[usable]), np.random.default_rng(0)
    halves = [half for _ in range(SPLITS) for half in np.array_split(random.permutation(people), 2)]
    return np.stack(
        [_clusters(rows, usable, usable & np.isin(person, half), count) for half in halves]
    )


def _usable(embeddings: Rows) -> Bools:
    return np.asarray(np.isfinite(embeddings).all(axis=1))


def _clusters(rows: Rows, usable: Bools, members: Bools, count: int) -> Clusters:
    """Return the clusters of usable photos by the means that some of them have."""
    from sklearn.cluster import KMeans

    found = KMeans(count, n_init=4, random_state=0).fit(rows[members])
    clusters, others = np.zeros(len(rows), np.int16), usable & ~members
    clusters[members] = found.labels_ + 1
    if others.any():
        clusters[others] = found.predict(rows[others]) + 1
    return clusters


def find_lookalikes(embeddings: Rows, person: Ints, pairs: PairList) -> LookAlikes | None:
    """Return which pairs show strangers who look alike; None where that is not known.

    Args:
        embeddings: As for `find_clusters`.
        person: As for `find_clusters`.
        pairs: P pairs of photos.
    """
    clusters = find_clusters(embeddings, person)
    if clusters is None:
        return None
    again = find_clusters_again(embeddings, person, int(clusters.max()))
    left, right = (np.vstack([clusters, again])[:, side] for side in (pairs.left, pairs.right))
    alike: Bools = (left > 0) & (left == right) & ~pairs.genuine
    return LookAlikes(alike[0], alike[1:]) if alike[0].any() else None
