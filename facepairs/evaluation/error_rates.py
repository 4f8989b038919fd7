"""How pairs are decided, and the error rates of decided pairs and of parts of them.

No threshold is judged on the pairs it was chosen on. Either the caller brings thresholds, or each
part of the pairs is decided with a threshold chosen on the other parts. A system that takes few
photos can hide its errors, so the generalised rates count a pair with an unusable photo as
rejected.

References:
    ISO/IEC 19795-1:2021: failure-to-acquire rate (FTA), generalised FMR and FNMR.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations_with_replacement

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import BALANCED, CHOSEN, Errors, OperatingPoint, Rate
from facepairs.data.groups import PeopleGroups
from facepairs.data.pairs import person_name
from facepairs.errors import NotEnough
from facepairs.evaluation.lookalikes import LookAlikes
from facepairs.evaluation.metrics.arrays import Bools, Floats, Ints
from facepairs.evaluation.metrics.curves import best_threshold
from facepairs.evaluation.metrics.intervals import LEVEL, PeopleOfPairs
from facepairs.evaluation.scores import ScoredPairs
from facepairs.support import console

# Of the random order of `halves`; any other key would be as fair. Its words are those of
# `random_streams` for this seed, stream 0 (the pairs), epoch 0, block 0; it stays, because
# published figures depend on it.
HALVES_KEY = 20071001
MIN_PEOPLE, MIN_GENUINE, MIN_IMPOSTORS = 10, 20, 100  # of a group; with fewer, rates say little


class ThresholdFrom(StrEnum):
    """Where the thresholds of decisions come from."""

    MODEL = "model"
    OTHER_FOLDS = "other_folds"
    OTHER_HALF = "other_half"
    OWN_NETWORKS = "own_networks"


@dataclass(frozen=True, eq=False, kw_only=True)
class Decisions:
    """Decisions on N pairs at an operating point.

    Attributes:
        point: Its name and its threshold, None where parts have their own. Its errors are not
            measured yet.
        accepted: bool[N].
        by_pair: float64[N], the threshold of each pair.
        source: Where thresholds come from.
        parts: int64[N], the folds or halves of the pairs, if there are any.
    """

    point: OperatingPoint
    accepted: Bools
    by_pair: Floats
    source: ThresholdFrom
    parts: Ints | None = None


def decide_at(
    score: Floats,
    point: OperatingPoint,
    source: ThresholdFrom = ThresholdFrom.MODEL,
    parts: Ints | None = None,
    by_pair: Floats | None = None,
) -> Decisions:
    """Return the decisions on scores, float64[N], at a point or at a threshold for each pair."""
    if by_pair is None:
        by_pair = np.broadcast_to(np.asarray(point.threshold, np.float64), score.shape)
    accepted = score >= by_pair
    return Decisions(point=point, accepted=accepted, by_pair=by_pair, source=source, parts=parts)


def decide(
    genuine: Bools,
    score: Floats,
    threshold: float | None,
    fold: npt.ArrayLike | None = None,
) -> Decisions:
    """Decide each pair without a threshold that it took part in choosing.

    Args:
        genuine: bool[N].
        score: float64[N].
        threshold: The model's own, for all pairs. With None, each part of the pairs gets the most
            accurate threshold of the other parts: the folds where there are two or more, and
            otherwise two halves drawn by position and class, never by score. Halves may share
            people.
        fold: int[N], or None.

    Raises:
        NotEnough: A class is too rare outside one of the parts.
    """
    parts, are_folds = parts_of(genuine, fold)
    if threshold is None:
        by_pair = _held_out_thresholds(genuine, score, parts, are_folds)
        source = ThresholdFrom.OTHER_FOLDS if are_folds else ThresholdFrom.OTHER_HALF
        return decide_at(score, OperatingPoint(None, CHOSEN), source, parts, by_pair)
    point = OperatingPoint(float(threshold), BALANCED)
    return decide_at(score, point, parts=parts if are_folds else None)


def _held_out_thresholds(genuine: Bools, score: Floats, parts: Ints, are_folds: bool) -> Floats:
    by_pair = np.empty(len(score))
    for number in np.unique(parts).tolist():
        held_out = parts == number
        others = genuine[~held_out]
        if others.all() or not others.any():
            among, place = genuine, "half of the pairs"
            if are_folds:
                among, place = others, f"the pairs outside fold {number}"
            raise NotEnough(
                f"too few pairs to choose a threshold on {place}: {int(among.sum())} genuine and "
                f"{int((~among).sum())} impostor in all; give at least 2 of each"
            )
        by_pair[held_out] = best_threshold(others, score[~held_out])
    return by_pair


def parts_of(genuine: Bools, fold: npt.ArrayLike | None = None) -> tuple[Ints, bool]:
    """Return the folds as parts where there are two or more, and otherwise two halves.

    Args:
        genuine: bool[N].
        fold: int[N], or None without folds.

    Returns:
        int64[N], the part of each pair, and whether the parts are the folds.
    """
    folds = np.zeros(len(genuine), np.int64) if fold is None else np.asarray(fold, np.int64)
    if len(np.unique(folds)) > 1:
        return folds, True
    return halves(genuine), False


def halves(genuine: Bools) -> Ints:
    """Assign each pair to half 1 or 2, each class by a fixed random order of positions.

    Alternating positions would be unfair in a file sorted by score: neighbours that hardly differ
    would always lie in different halves, so that each half knows the other. Raw random bits keep
    the assignment the same in every version of NumPy.

    Args:
        genuine: bool[N].

    Returns:
        int64[N] of 1 and 2.
    """
    half = np.empty(len(genuine), np.int64)
    keys = np.random.Philox(key=HALVES_KEY).random_raw(len(genuine))
    for label in (True, False):
        members = np.flatnonzero(genuine == label)
        half[members[np.argsort(keys[members], kind="stable")]] = np.arange(len(members)) % 2 + 1
    return half


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
