"""Strangers who look alike: pairs of different people in one cluster of embeddings.

Most strangers are unlike at a glance, and a false match rate over all of them promises too much:
those who compare photos mostly compare people of one sex, age and origin. Nothing of that is
inferred about anybody. Photos are clustered by their embeddings, and impostor pairs within a
cluster are the hard ones.

CLUSTERS: chosen on the people of LFW's View 1 test set with `scripts/studies/look_alikes.py`. With
8 clusters, a threshold that accepts 1 of 100 look-alikes accepts fewer than 1 of 100 pairs of women
(told by first names, for this choice only); one that accepts 1 of 100 strangers accepts 3 of them.
"""

import numpy as np
import numpy.typing as npt

from facepairs.evaluation.metrics.arrays import Ints

CLUSTERS = 8
PEOPLE_PER_CLUSTER = 20  # at least: they form 190 pairs of strangers
Clusters = npt.NDArray[np.int16]


def find_clusters(
    embeddings: npt.NDArray[np.float32], person: Ints, most: int = CLUSTERS
) -> Clusters | None:
    """Cluster photos of people that a network was not trained on.

    Args:
        embeddings: float32[N, D]; rows of NaN are photos that cannot be used.
        person: int[N], the person of each photo.
        most: How many clusters there are at most.

    Returns:
        int16[N], the cluster of each photo from 1, 0 for those that cannot be used; None with too
        few people for two clusters.
    """
    from sklearn.cluster import KMeans

    usable = np.isfinite(embeddings).all(axis=1)
    people = len(np.unique(person[usable]))
    count = min(most, people // PEOPLE_PER_CLUSTER)
    if count < 2:
        return None
    rows = embeddings[usable]
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    clusters = np.zeros(len(embeddings), np.int16)
    clusters[usable] = KMeans(count, n_init=4, random_state=0).fit_predict(rows) + 1
    return clusters


def pair_clusters(
    clusters: Clusters, left: npt.NDArray[np.integer], right: npt.NDArray[np.integer]
) -> Clusters:
    """Return the cluster of both photos of each pair, int16[P]; 0 where theirs differ.

    Args:
        clusters: int16[N], as from `find_clusters`.
        left: int[P], positions in `clusters`.
        right: int[P], positions in `clusters`.
    """
    return np.where(clusters[left] == clusters[right], clusters[left], 0).astype(np.int16)
