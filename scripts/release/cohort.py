"""The cohort of the included model: where faces crowd, by the people of View 1's training list.

Grouping compares a face with strangers whom the cohort stands for. Cohort people themselves lie
nearer to its centres than others, so errors are measured on people who are not in it: on each half
of these people with the cohort of the other half, and on all other people.
"""

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans

from facepairs.evaluation.pair_scores import FaceHeap
from facepairs.grouping.linkage import unit_rows

CENTRES = 64  # the same at 32 and 128, on halves of View 1's training people
STARTS = 4
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def fit_cohort(embeddings: Floats, person: Ints) -> Floats:
    """Return float32[K, D], such that a face's largest product with it is 1 in the mean.

    Args:
        embeddings: float32[N, D], rows of length 1.
        person: int64[N], each of whom counts once.
    """
    people, number = np.unique(person, return_inverse=True)
    mean = np.zeros((len(people), embeddings.shape[1]))
    np.add.at(mean, number, embeddings)
    mean /= np.bincount(number)[:, None]
    count = min(CENTRES, len(people))
    found = KMeans(count, n_init=STARTS, random_state=0).fit(mean)
    centres = unit_rows(found.cluster_centers_)
    largest = (embeddings @ centres.T).max(axis=1)
    usual = (np.bincount(number, largest) / np.bincount(number)).mean()
    cohort: Floats = (centres / usual).astype(np.float32)
    return cohort


def fit_and_split(
    embeddings: Floats, person: Ints, train: npt.NDArray[np.bool_]
) -> tuple[Floats, list[FaceHeap]]:
    """Return the cohort of some people, and heaps of people to measure it on.

    Args:
        embeddings: float32[N, D], rows of length 1.
        person: int64[N].
        train: bool[N], faces of the people of the cohort; the others become a heap, if any.
    """
    people = np.random.default_rng(0).permutation(np.unique(person[train]))
    halves = [np.isin(person, half) for half in np.array_split(people, 2)]
    cohorts = [fit_cohort(embeddings[half], person[half]) for half in halves]
    heaps = [
        FaceHeap(embeddings[half], person[half], cohort)
        for half, cohort in zip(halves, cohorts[::-1], strict=True)
    ]
    cohort = fit_cohort(embeddings[train], person[train])
    if not train.all():
        heaps.append(FaceHeap(embeddings[~train], person[~train], cohort))
    return cohort, heaps
