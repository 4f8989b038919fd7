"""Errors by person: whose pairs are decided wrongly most often."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from facepairs.data.pairs import person_of
from facepairs.evaluation.metrics.arrays import Bools, Ints

MOST = 20  # people to list


@dataclass(frozen=True)
class PersonErrors:
    """Pairs and errors of one person; `error_share` is the share of the person's pairs."""

    person: str
    genuine_pairs: int
    false_rejects: int
    impostor_pairs: int
    false_accepts: int
    errors: int
    error_share: float


@dataclass(frozen=True)
class ErrorsByPerson:
    """The people with most errors, and how errors spread over people.

    Attributes:
        rows: People by errors, then by share, then by name.
        people: Number of people in the pairs.
        people_with_errors: Those with at least one error.
    """

    rows: list[PersonErrors]
    people: int
    people_with_errors: int


def errors_by_person(
    left: Sequence[str], right: Sequence[str], genuine: Bools, accepted: Bools
) -> ErrorsByPerson:
    """Count the pairs and errors of each person; an impostor pair counts for both its people.

    Args:
        left, right: str[N], names of photos.
        genuine: bool[N].
        accepted: bool[N], the decisions.
    """
    sides = [[person_of(name) for name in side] for side in (left, right)]
    names, numbers = np.unique(np.array(sides, object).astype(str), return_inverse=True)
    one, other = numbers.reshape(2, -1)
    wrong = accepted != genuine

    def count(chosen: Bools) -> Ints:
        people = np.concatenate([one[chosen], other[chosen & (one != other)]])
        return np.bincount(people, minlength=len(names))

    genuine_pairs, impostor_pairs = count(genuine), count(~genuine)
    false_rejects, false_accepts = count(genuine & wrong), count(~genuine & wrong)
    errors = false_rejects + false_accepts
    share = errors / (genuine_pairs + impostor_pairs)
    order = np.lexsort((np.arange(len(names)), -share, -errors))
    columns = names, genuine_pairs, false_rejects, impostor_pairs, false_accepts, errors, share
    rows = [
        PersonErrors(*(column[k].item() for column in columns)) for k in order[:MOST] if errors[k]
    ]
    return ErrorsByPerson(rows, people=len(names), people_with_errors=int((errors > 0).sum()))
