"""Errors of decisions: of all pairs, among look-alikes, within the user's groups."""

from collections.abc import Mapping, Sequence

from facepairs.bundles.rates import Errors, Rate
from facepairs.data.groups import PeopleGroups
from facepairs.data.pairs import person_name
from facepairs.errors import BadData
from facepairs.evaluation.lookalikes import LookAlikes
from facepairs.evaluation.metrics.arrays import Bools, PairPeople
from facepairs.evaluation.metrics.intervals import PeopleOfPairs
from facepairs.evaluation.scores import ScoreTable

MIN_PEOPLE, MIN_GENUINE, MIN_IMPOSTORS = 10, 20, 100  # of a group; with fewer, rates say little


def errors_of(
    decisions: Sequence[tuple[Bools, Bools]],
    genuine: Bools,
    pairs: PeopleOfPairs,
    lookalike: LookAlikes | None = None,
) -> list[Errors]:
    """Measure the errors of decisions, with intervals of 95 %; a rate without pairs is None.

    Args:
        decisions: (members, accepted), bool[N] each: the pairs that count, those accepted.
        genuine: bool[N].
        pairs: Who is in the pairs.
        lookalike: Strangers who look alike; None where that is not known.
    """

    def rate(members: Bools, events: Bools, again: Sequence[Bools] = ()) -> Rate | None:
        count, of = int((members & events).sum()), int(members.sum())
        return Rate(count / of, pairs.interval(members, events, again), count, of) if of else None

    def among_lookalikes(members: Bools, accepted: Bools) -> Rate | None:
        if lookalike is None:
            return None
        return rate(members & lookalike.pairs, accepted, list(members & lookalike.again))

    return [
        Errors(
            fmr=rate(members & ~genuine, accepted),
            fnmr=rate(members & genuine, ~accepted),
            lookalike_fmr=among_lookalikes(members, accepted),
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
