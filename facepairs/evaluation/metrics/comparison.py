"""Compare verifiers on the same pairs: is one better, or may the difference be chance?

All verifiers decide the same pairs, so only pairs on which they differ carry information.
"""

import itertools
from collections.abc import Sequence
from typing import Literal

import msgspec

from facepairs.evaluation.metrics.arrays import Bools, Floats, Interval, PairPeople
from facepairs.evaluation.metrics.curves import pairs_needed
from facepairs.evaluation.metrics.estimates import (
    Estimate,
    area,
    balanced_accuracy,
    difference,
    tar_at_far,
)
from facepairs.evaluation.metrics.intervals import PeopleOfPairs


class Difference(msgspec.Struct, frozen=True):
    """A difference of two shares, and its interval of 95 %."""

    difference: float
    interval: Interval


class PairwiseComparison(msgspec.Struct, frozen=True):
    """Two verifiers compared: differences are the first less the second.

    Attributes:
        first, second: Their names.
        balanced_accuracy: By their own decisions.
        auc: Of the scores.
        tar_at_far: By FAR, such as "0.01".
    """

    first: str
    second: str
    balanced_accuracy: Difference
    auc: Difference
    tar_at_far: dict[str, Difference]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Every two verifiers compared.

    Attributes:
        pairs: Number of pairs.
        independent: What intervals take to be independent: people, or pairs where people are not
            known.
        differences: Of every two verifiers.
    """

    pairs: int
    independent: Literal["people", "pairs"]
    differences: list[PairwiseComparison]


def compare(
    names: Sequence[str],
    genuine: Bools,
    scores: Sequence[Floats],
    accepted: Sequence[Bools],
    fars: Sequence[float],
    people: PairPeople | None = None,
    families: PairPeople | None = None,
) -> Comparison:
    """Compare every two verifiers on the same pairs.

    Args:
        names: Names of the verifiers.
        genuine: bool[N], with both classes.
        scores: float64[N] for each verifier.
        accepted: bool[N] for each verifier, its decisions.
        fars: Target FARs; those with too few impostor pairs are left out.
        people: Of the pairs; None where they are not known.
        families: Of the people of the pairs, where some are related.
    """
    pairs = PeopleOfPairs(people, len(genuine), families)
    impostors = int((~genuine).sum())
    kept = [far for far in fars if pairs_needed(far) <= impostors]
    estimates = [
        [
            balanced_accuracy(pairs, genuine, decided),
            area(pairs, genuine, score),
            *(tar_at_far(pairs, genuine, score, far) for far in kept),
        ]
        for score, decided in zip(scores, accepted, strict=True)
    ]

    def gap(first: Estimate, second: Estimate) -> Difference:
        return Difference(*difference(first, second, pairs, genuine))

    differences = []
    for a, b in itertools.combinations(range(len(names)), 2):
        balanced, auc, *tars = map(gap, estimates[a], estimates[b])
        by_far = {str(far): tar for far, tar in zip(kept, tars, strict=True)}
        differences.append(PairwiseComparison(names[a], names[b], balanced, auc, by_far))
    return Comparison(
        pairs=len(genuine),
        independent="pairs" if people is None else "people",
        differences=differences,
    )
