"""Compare verifiers on the same pairs: is one better, or may the difference be chance?

All verifiers decide the same pairs, so only pairs on which they differ carry information.
"""

import itertools
from collections.abc import Sequence
from typing import Literal

import msgspec

from facepairs.bundles.rates import Rate
from facepairs.evaluation.metrics.arrays import Bools, Floats, Interval
from facepairs.evaluation.metrics.curves import pairs_needed
from facepairs.evaluation.metrics.estimates import (
    Estimate,
    area,
    balanced_accuracy,
    difference,
    difference_of_rates,
    share_of,
    tar_at_far,
)
from facepairs.evaluation.metrics.intervals import PeopleOfPairs

RATES = (1, 2)  # the places of FMR and FNMR among the estimates


class Difference(msgspec.Struct, frozen=True):
    """A difference of two shares, and its interval of 95 %."""

    difference: float
    interval: Interval


class PairwiseComparison(msgspec.Struct, frozen=True):
    """Two verifiers compared: differences are the first less the second.

    Attributes:
        first, second: Their names.
        balanced_accuracy: By the decisions of `Comparison.threshold_source`.
        fmr: By the decisions of `Comparison.errors_by`.
        fnmr: By the same decisions.
        auc: Of the scores.
        tar_at_far: By FAR, such as "0.01".
    """

    first: str
    second: str
    balanced_accuracy: Difference
    fmr: Difference
    fnmr: Difference
    auc: Difference
    tar_at_far: dict[str, Difference]


class ComparedVerifier(msgspec.Struct, frozen=True):
    """A verifier by the rules that all of a comparison have in common.

    Attributes:
        name: Its name.
        balanced_accuracy: By the decisions of `Comparison.threshold_source`.
        fmr: By the decisions of `Comparison.errors_by`.
        fnmr: By the same decisions.
    """

    name: str
    balanced_accuracy: Rate
    fmr: Rate
    fnmr: Rate


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Every two verifiers compared.

    Attributes:
        pairs: Number of pairs.
        independent: What intervals take to be independent: people, or pairs where people are not
            known.
        threshold_source: Where the thresholds of the balanced accuracy come from. Where verifiers
            differ in that, the threshold of each part of the pairs comes from the other parts.
        errors_by: `verify`: FMR and FNMR are those of verify's decisions; `balanced`, where these
            are not known for all, those of the balanced accuracy.
        verifiers: Each verifier.
        differences: Of every two verifiers.
    """

    pairs: int
    independent: Literal["people", "pairs"]
    threshold_source: str
    errors_by: Literal["verify", "balanced"]
    verifiers: list[ComparedVerifier]
    differences: list[PairwiseComparison]


def compare(
    names: Sequence[str],
    genuine: Bools,
    scores: Sequence[Floats],
    accepted: Sequence[Bools],
    fars: Sequence[float],
    pairs: PeopleOfPairs,
    *,
    decided: Sequence[Bools] | None = None,
    accuracies: Sequence[Rate] | None = None,
    threshold_source: str = "model",
) -> Comparison:
    """Compare every two verifiers on the same pairs.

    Args:
        names: Names of the verifiers.
        genuine: bool[N], with both classes.
        scores: float64[N] for each verifier.
        accepted: bool[N] for each verifier, the decisions of its balanced accuracy.
        fars: Target FARs; those with too few impostor pairs are left out.
        pairs: Who is in the pairs.
        decided: bool[N] for each verifier, verify's decisions; None where not all are known.
        accuracies: The balanced accuracies where they are known, as means over folds.
        threshold_source: Where the thresholds of the balanced accuracies come from, a value of
            `decisions.ThresholdFrom`.
    """
    impostors = int((~genuine).sum())
    kept = [far for far in fars if pairs_needed(far) <= impostors]
    estimates = [
        [
            balanced_accuracy(pairs, genuine, balanced),
            share_of(pairs, ~genuine, passed),
            share_of(pairs, genuine, ~passed),
            area(pairs, genuine, score),
            *(tar_at_far(pairs, genuine, score, far) for far in kept),
        ]
        for score, balanced, passed in zip(scores, accepted, decided or accepted, strict=True)
    ]

    def gap(place: int, first: Estimate, second: Estimate) -> Difference:
        of = difference_of_rates if place in RATES else difference
        return Difference(*of(first, second, pairs, genuine))

    differences = []
    for a, b in itertools.combinations(range(len(names)), 2):
        balanced, fmr, fnmr, auc, *tars = map(gap, itertools.count(), estimates[a], estimates[b])
        by_far = {str(far): tar for far, tar in zip(kept, tars, strict=True)}
        differences.append(PairwiseComparison(names[a], names[b], balanced, fmr, fnmr, auc, by_far))
    rates = [
        [Rate(part.value, part.interval(pairs, genuine)) for part in parts[:3]]
        for parts in estimates
    ]
    accuracies = accuracies or [rate for rate, _, _ in rates]
    return Comparison(
        pairs=len(genuine),
        independent="people" if pairs.known else "pairs",
        threshold_source=threshold_source,
        errors_by="verify" if decided else "balanced",
        verifiers=[
            ComparedVerifier(name, accuracy, fmr, fnmr)
            for name, accuracy, (_, fmr, fnmr) in zip(names, accuracies, rates, strict=True)
        ],
        differences=differences,
    )
