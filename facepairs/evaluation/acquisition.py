"""Failures to acquire: photos without a usable face, and error rates that count them.

A system that takes few photos can hide its errors, so the generalised rates count a pair with such
a photo as rejected.

References:
    ISO/IEC 19795-1:2021: failure-to-acquire rate (FTA), generalised FMR and FNMR.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from facepairs.bundles.rates import OperatingPoint, Rate
from facepairs.data.groups import PeopleGroups
from facepairs.data.pairs import person_name
from facepairs.evaluation.decisions import Decisions
from facepairs.evaluation.error_rates import errors_of, rate_of
from facepairs.evaluation.metrics.arrays import Bools
from facepairs.evaluation.metrics.intervals import PeopleOfPairs
from facepairs.evaluation.scores import ScoredPairs


class Acquisition(msgspec.Struct, frozen=True, kw_only=True):
    """The photos of the pairs without a usable face.

    Attributes:
        fta: Their share, the failure-to-acquire rate. The interval is over people.
        reasons: Number of them by the kind of problem, such as `no_face`.
    """

    fta: Rate
    reasons: dict[str, int]


@dataclass(frozen=True, eq=False)
class AttemptedPhotos:
    """The photos of pairs, also of those that could not be scored.

    Attributes:
        names: The names of P photos.
        failed: bool[P], those without a usable face.
        sample: Whom the photos show.
    """

    names: Sequence[str]
    failed: Bools
    sample: PeopleOfPairs

    @classmethod
    def of(cls, pairs: ScoredPairs) -> "AttemptedPhotos | None":
        """Return the photos of pairs; None where it is not known which of them failed."""
        every = pairs.attempted
        if pairs.failures is None or not every.has_names:
            return None
        names = sorted({*every.left, *every.right})
        failed = np.array([name in pairs.failures for name in names])
        people = [person_name(name) for name in names]
        number, family = np.unique(people, return_inverse=True)[1], None
        if every.families is not None:
            family = every.families.numbers(people, people)
        known = None if every.people is None else (number, number)
        return cls(names, failed, PeopleOfPairs(known, len(names), family))

    def by_group(self, groups: PeopleGroups) -> dict[str, Rate | None]:
        """Return the share of the photos of each group's people that failed."""
        members = groups.among([person_name(name) for name in self.names])
        return {name: rate_of(self.sample, mask, self.failed) for name, mask in members.items()}


def measure_acquisition(pairs: ScoredPairs) -> Acquisition | None:
    """Return the failures to acquire; None where they are not known."""
    photos = AttemptedPhotos.of(pairs)
    if photos is None:
        return None
    fta = rate_of(photos.sample, np.ones(len(photos.names), np.bool_), photos.failed)
    assert fta is not None
    kinds = Counter(kind for name in photos.names if (kind := (pairs.failures or {}).get(name)))
    return Acquisition(fta=fta, reasons=dict(sorted(kinds.items())))


def with_generalised_rates(
    points: Sequence[OperatingPoint], decisions: Sequence[Decisions], pairs: ScoredPairs
) -> list[OperatingPoint]:
    """Return operating points with the error rates that count failures as rejections.

    Args:
        points: The points with their other errors.
        decisions: On the scored pairs, at each point.
        pairs: The pairs; without failures, the points stay as they are.
    """
    if pairs.failed is None:
        return list(points)
    every, rejected = pairs.attempted, np.zeros(len(pairs.failed), np.bool_)
    everything = np.ones(len(every), np.bool_)
    within = [(everything, np.append(made.accepted, rejected)) for made in decisions]
    return [
        msgspec.structs.replace(
            point, errors=msgspec.structs.replace(point.errors, gfmr=found.fmr, gfnmr=found.fnmr)
        )
        for point, found in zip(points, errors_of(within, every.genuine, every.sample), strict=True)
    ]
