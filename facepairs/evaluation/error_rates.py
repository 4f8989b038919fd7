"""Error rates of decided pairs, and of parts of them, with intervals of 95 %."""

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement

from facepairs.bundles.rates import Errors, Rate
from facepairs.evaluation.lookalikes import LookAlikes
from facepairs.evaluation.metrics.arrays import Bools
from facepairs.evaluation.metrics.intervals import LEVEL, PeopleOfPairs
from facepairs.support import console

MIN_PEOPLE, MIN_GENUINE, MIN_IMPOSTORS = 10, 20, 100  # of a group; with fewer, rates say little


def rate_of(
    pairs: PeopleOfPairs,
    members: Bools,
    events: Bools,
    again: Sequence[Bools] = (),
    level: float = LEVEL,
) -> Rate | None:
    """Return the share of members with an event; arguments as for `PeopleOfPairs.interval`.

    None where there are no members.
    """
    count, of = int((members & events).sum()), int(members.sum())
    if not of:
        return None
    return Rate(count / of, pairs.interval(members, events, again, level), count, of)


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

    def among_lookalikes(members: Bools, accepted: Bools) -> Rate | None:
        if lookalike is None:
            return None
        again = list(members & lookalike.again)
        return rate_of(pairs, members & lookalike.pairs, accepted, again)

    found, progress = list[Errors](), console.progress("computing intervals")
    for members, accepted in decisions:
        errors = Errors(
            fmr=rate_of(pairs, members & ~genuine, accepted),
            fnmr=rate_of(pairs, members & genuine, ~accepted),
            lookalike_fmr=among_lookalikes(members, accepted),
            people=pairs.people(members) if pairs.known else None,
        )
        found.append(errors)
        progress(len(found), len(decisions))
    return found


def errors_by_group(
    groups: Mapping[str, Bools],
    genuine: Bools,
    accepted: Bools,
    pairs: PeopleOfPairs,
) -> dict[str, Errors]:
    """Return the errors within groups of pairs, the highest FMR first.

    Args:
        groups: bool[N], the pairs of each group, by its name.
        genuine: bool[N].
        accepted: bool[N], the decisions.
        pairs: Who is in the pairs.
    """
    within = [(members, accepted) for members in groups.values()]
    errors = errors_of(within, genuine, pairs)
    found = dict(zip(groups, errors, strict=True))
    return dict(sorted(found.items(), key=lambda row: -row[1].fmr.value if row[1].fmr else 1.0))


def pairs_of_labels(
    left: Mapping[str, Bools], right: Mapping[str, Bools]
) -> dict[tuple[str, str], Bools]:
    """Return the pairs with a label on one side and a label on the other: bool[N] by both labels.

    Args:
        left: bool[N], the pairs whose left photo has the label, by its name.
        right: The same of the right photos, with the same labels.
    """
    return {
        (one, other): (left[one] & right[other]) | (left[other] & right[one])
        for one, other in combinations_with_replacement(left, 2)
    }


def pair_counts(row: Errors) -> tuple[int, int]:
    """Return the number of genuine and of impostor pairs within a group."""
    genuine, impostor = (rate.of if rate and rate.of else 0 for rate in (row.fnmr, row.fmr))
    return genuine, impostor


def is_small(row: Errors) -> bool:
    """Return whether a group has so few people or pairs that its rates say little."""
    genuine, impostor = pair_counts(row)
    few_people = (row.people or 0) < MIN_PEOPLE
    return few_people or genuine < MIN_GENUINE or impostor < MIN_IMPOSTORS
