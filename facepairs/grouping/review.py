"""What a person should look at: faces that fit their group badly, and people who may be one."""

from collections.abc import Sequence
from heapq import nsmallest
from itertools import combinations

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.scorer import ScoreArray
from facepairs.data.index import UNNAMED
from facepairs.grouping.collection import Collection
from facepairs.grouping.linkage import GroupMeans

ROWS = 4096  # faces compared with all people at a time
SUGGESTED = 100  # pairs of people
Floats = npt.NDArray[np.float64]


class SimilarPeople(msgspec.Struct, frozen=True):
    """Two people of the result who may be one; `height` is at which they would be joined."""

    one: str
    other: str
    height: float


def certainties(embeddings: ScoreArray, person: Sequence[str]) -> Floats:
    """Return the silhouette of each face among the people: float64[faces], NaN without a person.

    Args:
        embeddings: float32[faces, D], rows of length 1.
        person: The name of each, "" without one.

    References:
        Rousseeuw, "Silhouettes", Journal of Computational and Applied Mathematics 20, 1987.
    """
    result = np.full(len(person), np.nan)
    faces = np.flatnonzero([bool(name) for name in person])
    number = np.unique(np.array(person)[faces], return_inverse=True)[1]
    means = GroupMeans.of(embeddings[faces], number, None)
    for begin in range(0, len(faces), ROWS):
        part = slice(begin, begin + ROWS)
        own = number[part]
        near = embeddings[faces[part]] @ means.mean.T
        at, size = np.arange(len(own)), means.size[own]
        inside = 1 - (near[at, own] * size - 1) / np.maximum(size - 1, 1)
        near[at, own] = -1  # the largest distance, where there is no one else
        outside = 1 - near.max(axis=1)
        silhouette = (outside - inside) / np.maximum(np.maximum(inside, outside), 1e-9)
        result[faces[part]] = np.where(size > 1, silhouette, 0)
    return result


def similar_people(
    collection: Collection, person: Sequence[str], most: float, cohort: ScoreArray | None = None
) -> tuple[SimilarPeople, ...]:
    """Return pairs of people who may be one, the most similar first.

    People who are on one photo together are left out, and those who both were named.

    Args:
        collection: The faces.
        person: The name of the person of each, "" without one.
        most: The largest height at which two people are proposed.
        cohort: The model's, see `grouping.linkage`.
    """
    faces = [face for face, name in enumerate(person) if name]
    names, number = np.unique([person[face] for face in faces], return_inverse=True)
    on_photos = ({person[face] for face in of} - {""} for of in collection.faces_of.values())
    apart = {pair for people in on_photos for pair in combinations(sorted(people), 2)}
    means = GroupMeans.of(collection.embeddings[faces], number, cohort)
    near = ((height, str(names[a]), str(names[b])) for height, a, b in means.near(means, most))
    open_pairs = (
        SimilarPeople(one, other, height)
        for height, one, other in near
        if one < other and (UNNAMED.fullmatch(one) or UNNAMED.fullmatch(other))
        if (one, other) not in apart
    )
    return tuple(nsmallest(SUGGESTED, open_pairs, key=lambda pair: pair.height))
