"""Errors of decisions: of all pairs, among look-alikes, within the user's groups.

Most strangers are unlike at a glance, and a false match rate over all of them promises too much:
those who compare photos mostly compare people of one sex, age and origin. Nothing of that is
inferred about anybody. Photos are clustered by their embeddings, and impostor pairs within a
cluster, strangers who look alike, are the hard ones.

CLUSTERS: chosen on the people of LFW's View 1 test set with `scripts/studies/look_alikes.py`. With
8 clusters, a threshold that accepts 1 of 100 look-alikes accepts fewer than 1 of 100 pairs of women
(told by first names, for this choice only); one that accepts 1 of 100 strangers accepts 3 of them.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import Errors, Rate
from facepairs.data.groups import PeopleGroups
from facepairs.data.pairs import PairList, person_name
from facepairs.errors import BadData
from facepairs.evaluation.metrics.arrays import Bools, Ints, PairPeople
from facepairs.evaluation.metrics.intervals import PeopleOfPairs
from facepairs.evaluation.scores import ScoreTable

MIN_PEOPLE, MIN_GENUINE, MIN_IMPOSTORS = 10, 20, 100  # of a group; with fewer, rates say little
CLUSTERS = 8
PEOPLE_PER_CLUSTER = 20  # at least: they form 190 pairs of strangers


def errors_of(
    decisions: Sequence[tuple[Bools, Bools]],
    genuine: Bools,
    pairs: PeopleOfPairs,
    lookalike: Bools | None = None,
) -> list[Errors]:
    """Measure the errors of decisions, with intervals of 95 %; a rate without pairs is None.

    Args:
        decisions: (members, accepted), bool[N] each: the pairs that count, those accepted.
        genuine: bool[N].
        pairs: Who is in the pairs.
        lookalike: bool[N], strangers who look alike; None where that is not known.
    """

    def rate(members: Bools, events: Bools) -> Rate | None:
        count, of = int((members & events).sum()), int(members.sum())
        return Rate(count / of, pairs.interval(members, events), count, of) if of else None

    return [
        Errors(
            fmr=rate(members & ~genuine, accepted),
            fnmr=rate(members & genuine, ~accepted),
            lookalike_fmr=None if lookalike is None else rate(members & lookalike, accepted),
            people=pairs.people(members) if pairs.known else None,
        )
        for members, accepted in decisions
    ]


def errors_by_group(
    groups: Mapping[str, Bools],
    genuine: Bools,
    accepted: Bools,
    people: PairPeople | None,
    families: PairPeople | None = None,
) -> dict[str, Errors]:
    """Return the errors within groups of pairs, the highest FMR first.

    Args:
        groups: bool[N], the pairs of each group, by its name.
        genuine: bool[N].
        accepted: bool[N], the decisions.
        people: Of the pairs.
        families: Of the people of the pairs, where some are related.
    """
    within = [(members, accepted) for members in groups.values()]
    errors = errors_of(within, genuine, PeopleOfPairs(people, len(genuine), families))
    found = dict(zip(groups, errors, strict=True))
    return dict(sorted(found.items(), key=lambda row: -row[1].fmr.value if row[1].fmr else 1.0))


def group_errors(groups: PeopleGroups, scores: ScoreTable, accepted: Bools) -> dict[str, Errors]:
    """Return the errors within each group, the worst first.

    Args:
        groups: The groups; a pair is in one when both its people are.
        scores: N pairs.
        accepted: bool[N], the decisions.

    Raises:
        BadData: The people of the pairs are not known.
    """
    if scores.people is None:
        raise BadData(
            f"{groups.path}: the people of the pairs are unknown; groups need photos named "
            "Person_Name/photo.jpg",
            "groups",
        )
    left, right = ([person_name(name) for name in side] for side in scores.sides)
    within = groups.pairs_within(left, right)
    return errors_by_group(within, scores.genuine, accepted, scores.people, scores.relatives)


def pair_counts(row: Errors) -> tuple[int, int]:
    """Return the number of genuine and of impostor pairs within a group."""
    genuine, impostor = (rate.of if rate and rate.of else 0 for rate in (row.fnmr, row.fmr))
    return genuine, impostor


def is_small(row: Errors) -> bool:
    """Return whether a group has so few people or pairs that its rates say little."""
    genuine, impostor = pair_counts(row)
    few_people = (row.people or 0) < MIN_PEOPLE
    return few_people or genuine < MIN_GENUINE or impostor < MIN_IMPOSTORS


def find_clusters(
    embeddings: npt.NDArray[np.float32], person: Ints, most: int = CLUSTERS
) -> npt.NDArray[np.int16] | None:
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


def find_lookalikes(
    embeddings: npt.NDArray[np.float32], person: Ints, pairs: PairList
) -> Bools | None:
    """Return which pairs show strangers who look alike, bool[P]; None where that is not known.

    Args:
        embeddings: As for `find_clusters`.
        person: As for `find_clusters`.
        pairs: P pairs of photos.
    """
    clusters = find_clusters(embeddings, person)
    if clusters is None:
        return None
    left, right = clusters[pairs.left], clusters[pairs.right]
    alike: Bools = (left > 0) & (left == right) & ~pairs.genuine
    return alike if alike.any() else None
