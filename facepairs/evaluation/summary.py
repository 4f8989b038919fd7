"""All figures of scored pairs in one `Summary`, for single runs and for LFW's View 2 alike.

References:
    Huang and Learned-Miller, *Labeled Faces in the Wild: Updates and New Reporting Procedures*,
    UMass Amherst UM-CS-2014-003: the accuracy is the mean of the folds, and the ROC curve is that
    of the scores of all folds together, although each fold has a network of its own. The threshold
    of a fold comes from the other folds; of several that are equally accurate there, the one in the
    middle (`best_threshold`).
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from facepairs.bundles.rates import Errors, OperatingPoint, Rate
from facepairs.errors import NotEnough
from facepairs.evaluation.error_rates import (
    Acquisition,
    Decisions,
    ThresholdFrom,
    decide,
    errors_of,
    is_small,
)
from facepairs.evaluation.factors import Factor
from facepairs.evaluation.group_errors import GroupDifferences
from facepairs.evaluation.identification import IdentificationFigures
from facepairs.evaluation.lookalikes import LookAlikes
from facepairs.evaluation.metrics.arrays import (
    Bools,
    Floats,
    Interval,
    check_two_classes,
)
from facepairs.evaluation.metrics.curves import (
    FARS,
    pairs_needed,
    threshold_at_far,
)
from facepairs.evaluation.metrics.estimates import (
    area,
    balanced_accuracy,
    equal_error,
    over_folds,
    tar_at_far,
)
from facepairs.evaluation.metrics.intervals import PeopleOfPairs


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured, and on what.

    Attributes:
        name: Short name of the verifier or of the scores.
        source: Their path.
        pairs: Where the pairs come from: a protocol or a file.
        scored_by: What made the scores: path of a verifier, or of a run; None for scores of unknown
            origin.
        network_sha256: Of its network and how it is used; None where several made the scores, or
            where it is not known.
        manifest_sha256: Of the bundle's manifest, which names its network, thresholds and errors;
            None where there is none, or it is not known.
        thresholds_set_on: The people on whom the verifier's own thresholds were chosen; None
            without any, or where it is not known.
        alignment: How photos become crops, as the bundle has it, where it is known.
        pairs_with_known_people: Pairs with people on whom the bundle was trained or calibrated;
            None where that is not known.
        people_left_out: People of the folder on whom a model was trained or calibrated; None where
            no photos were scored here.
        photos_left_out: Photos of the pairs that cannot be used, where photos were scored here.
        pairs_left_out: Pairs with such photos; no figure counts them.
        other_faces: Photos of which another face than the most prominent one fits their folder, and
            was used; None where no photos were scored here.
    """

    name: str = ""
    source: str = ""
    pairs: str = ""
    scored_by: str | None = None
    network_sha256: str | None = None
    manifest_sha256: str | None = None
    thresholds_set_on: str | None = None
    alignment: str | None = None
    pairs_with_known_people: int | None = None
    people_left_out: int | None = None
    photos_left_out: int | None = None
    pairs_left_out: int | None = None
    other_faces: int | None = None

    @property
    def aligned(self) -> bool:
        """Whether faces were found and aligned, as far as is known."""
        return self.alignment not in (None, "lfw-frame")


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a verifier on some pairs, and what they were measured on.

    Intervals are of 95 %. Where people are known, they are wide enough for people that recur.

    Attributes:
        about: What was measured, and on what.
        genuine_pairs: Number of genuine pairs.
        impostor_pairs: Number of impostor pairs.
        balanced_accuracy: The mean of 1 - FMR and 1 - FNMR at the first operating point; over
            folds, the mean of the folds', with Student's interval.
        accuracy: The same where both classes have equally many pairs, otherwise None: it would tell
            of their numbers more than of the verifier.
        lfw_accuracy: The balanced accuracy by LFW's standard rule: the mean over the folds, each
            decided with the threshold that is best on the other folds, whatever else decides. None
            where there are not two folds of both classes.
        threshold_source: Where the thresholds of the first operating point come from.
        folds: The folds of the pairs, or the two halves that set each other's threshold, by number:
            threshold and errors.
        operating_points: The errors where the pairs were decided, and at what else the model
            promises.
        verify_point: Name of the operating point with which `verify` decides; None where it is not
            known.
        auc: Of all scores together.
        eer: Of all scores together.
        tar_at_far: By target FAR, "0.1", "0.01" and "0.001": the lowest threshold that keeps to it
            on these very pairs, and the errors there. The true accept rate (TAR) is 1 - FNMR.
        ece: Expected calibration error at equal priors; where it is known which strangers look
            alike, they are half of the strangers. None without probabilities.
        cllr: Cost of the likelihood ratios of the calibration, in bits, with the same strangers;
            None without probabilities.
        min_cllr: The lowest cost that another calibration could reach on these pairs.
        people: Number of people in the pairs, where they are known.
        acquisition: The photos without a usable face; None where it is not known.
        groups: Errors within the groups of people that the user named, as `verify` decides, the
            worst first.
        group_differences: Errors between these groups, and how far groups differ.
        factors: Errors by the levels of the factors that the user named.
        identification: How well people are identified; None where it was not asked for.
    """

    about: About = About()
    genuine_pairs: int
    impostor_pairs: int
    balanced_accuracy: Rate
    accuracy: Rate | None
    lfw_accuracy: Rate | None
    threshold_source: ThresholdFrom
    folds: list[OperatingPoint]
    operating_points: list[OperatingPoint]
    verify_point: str | None = None
    auc: Rate
    eer: Rate
    tar_at_far: dict[str, OperatingPoint]
    ece: float | None = None
    people: int | None
    acquisition: Acquisition | None = None
    cllr: float | None = None
    min_cllr: float | None = None
    groups: Mapping[str, Errors] = msgspec.field(default_factory=dict)
    group_differences: GroupDifferences | None = None
    factors: list[Factor] = msgspec.field(default_factory=list)
    identification: IdentificationFigures | None = None

    @property
    def point(self) -> OperatingPoint:
        """The operating point of the accuracy."""
        return self.operating_points[0]

    @property
    def default_point(self) -> OperatingPoint:
        """The operating point with which `verify` decides; the first one where none is known."""
        points = self.operating_points
        return next((point for point in points if point.name == self.verify_point), points[0])

    @property
    def fmr_by_groups(self) -> dict[tuple[str, str], Rate | None]:
        """The FMR of either order of every two groups; None where pairs are too few."""
        between = self.group_differences.between if self.group_differences else []
        rates = {
            (name, name): None if is_small(errors) else errors.fmr
            for name, errors in self.groups.items()
        } | {pair.groups: None if pair.is_small else pair.fmr for pair in between}
        return rates | {(other, one): rate for (one, other), rate in rates.items()}

    def true_accepts(self, far: str) -> Rate | None:
        """Return the true accept rate at a target FAR; None where the pairs are too few."""
        fnmr = self.tar_at_far[far].errors.fnmr
        if fnmr is None:
            return None
        low, high = fnmr.interval
        return Rate(1 - fnmr.value, (1 - high, 1 - low))

    @property
    def true_folds(self) -> list[OperatingPoint]:
        """The folds; empty without folds, also where halves set each other's threshold."""
        return [] if self.threshold_source is ThresholdFrom.OTHER_HALF else self.folds


def summarise(
    genuine: Bools,
    score: Floats,
    decisions: Sequence[Decisions],
    pairs: PeopleOfPairs,
    lookalike: LookAlikes | None = None,
) -> Summary:
    """Return every figure of decided pairs; the fields with defaults are left to the caller.

    Args:
        genuine: bool[N], with both classes.
        score: float64[N], finite.
        decisions: Those of the accuracy, then those at other operating points of the model.
        pairs: Who is in the pairs.
        lookalike: Strangers who look alike; None where that is not known.

    Raises:
        NotEnough: A class is missing, also in a fold with a threshold of its own network.
        BadData: A score is not finite, or the arrays do not fit together.
    """
    genuine, score = check_two_classes(genuine, score)
    decided = decisions[0]
    everything = np.ones(len(genuine), np.bool_)
    within = [(everything, decision.accepted) for decision in decisions]
    errors = errors_of(within, genuine, pairs, lookalike)
    folds = _folds(genuine, decided, pairs)
    estimate = balanced_accuracy(pairs, genuine, decided.accepted)
    balanced = Rate(estimate.value, estimate.interval(pairs, genuine))
    if decided.source in (ThresholdFrom.OTHER_FOLDS, ThresholdFrom.OWN_NETWORKS):
        balanced = _over_folds(folds, balanced.interval) or balanced
    whole, both = area(pairs, genuine, score), equal_error(pairs, genuine, score)
    counts = int(genuine.sum()), int((~genuine).sum())
    sizes = [[rate and rate.of for rate in (fold.errors.fmr, fold.errors.fnmr)] for fold in folds]
    equal = all(one == other for one, other in [counts, *sizes])
    return Summary(
        genuine_pairs=counts[0],
        impostor_pairs=counts[1],
        balanced_accuracy=balanced,
        accuracy=balanced if equal else None,
        lfw_accuracy=_by_lfws_rule(genuine, score, decided, pairs),
        threshold_source=decided.source,
        folds=folds,
        operating_points=[
            msgspec.structs.replace(one.point, errors=found)
            for one, found in zip(decisions, errors, strict=True)
        ],
        people=errors[0].people,
        auc=Rate(whole.value, whole.interval(pairs, genuine)),
        eer=Rate(both.value, both.interval(pairs, genuine)),
        tar_at_far={str(far): point_at_far(genuine, score, far, pairs) for far in FARS},
    )


def point_at_far(genuine: Bools, score: Floats, far: float, pairs: PeopleOfPairs) -> OperatingPoint:
    """Return the lowest threshold at which at most that share of the strangers is accepted.

    The interval of its FNMR knows that the threshold was chosen on the same impostor pairs.

    Args:
        genuine: bool[N], with both classes.
        score: float64[N].
        far: The share.
        pairs: Who is in the pairs.
    """
    threshold, name = threshold_at_far(genuine, score, far), f"far-{far:g}"
    if threshold is None:
        needed, strangers = pairs_needed(far), int((~genuine).sum())
        reason = f"not enough pairs: needs {needed} impostor pairs, has {strangers}"
        return OperatingPoint(None, name, far, reason=reason)
    everything = np.ones(len(genuine), np.bool_)
    (errors,) = errors_of([(everything, score >= threshold)], genuine, pairs)
    assert errors.fnmr is not None
    low, high = tar_at_far(pairs, genuine, score, far).interval(pairs, genuine)
    fnmr = msgspec.structs.replace(errors.fnmr, interval=(1 - high, 1 - low))
    errors = msgspec.structs.replace(errors, fnmr=fnmr)
    return OperatingPoint(threshold, name, far, errors=errors)


def _folds(genuine: Bools, decided: Decisions, pairs: PeopleOfPairs) -> list[OperatingPoint]:
    """Return the parts of the decisions, if there are any."""
    parts = decided.parts
    if parts is None:
        return []
    members = {number: parts == number for number in np.unique(parts).tolist()}
    within = [(mask, decided.accepted) for mask in members.values()]
    errors = errors_of(within, genuine, pairs)
    folds = [
        OperatingPoint(float(decided.by_pair[mask][0]), str(number), errors=found)
        for (number, mask), found in zip(members.items(), errors, strict=True)
    ]
    if decided.source is ThresholdFrom.OWN_NETWORKS and None in map(_balanced_of, folds):
        raise NotEnough("every fold needs at least 1 genuine and 1 impostor pair")
    return folds


def _balanced_of(fold: OperatingPoint) -> float | None:
    """Return the mean of the shares of both classes decided correctly; None without both."""
    fmr, fnmr = fold.errors.fmr, fold.errors.fnmr
    return None if fmr is None or fnmr is None else 1 - (fmr.value + fnmr.value) / 2


def wrong_pairs(fold: OperatingPoint) -> tuple[int, int, int]:
    """Return how many pairs of a fold were accepted wrongly and rejected wrongly, and all pairs."""
    fmr, fnmr = (rate or Rate(0, (0, 1)) for rate in (fold.errors.fmr, fold.errors.fnmr))
    return fmr.count or 0, fnmr.count or 0, (fmr.of or 0) + (fnmr.of or 0)


def _over_folds(folds: Sequence[OperatingPoint], pooled: Interval) -> Rate | None:
    """Return the mean balanced accuracy over folds; None without two folds of both classes.

    With few errors, folds by chance agree too well: each end of the interval is the farther one of
    Student's over the folds and of that of all pairs together.
    """
    by_fold = [accuracy for fold in folds if (accuracy := _balanced_of(fold)) is not None]
    if not len(by_fold) == len(folds) > 1:
        return None
    mean, error, interval = over_folds(by_fold)
    low, high = min(interval[0], pooled[0]), max(interval[1], pooled[1])
    return Rate(mean, (low, high), standard_error=error)


def _by_lfws_rule(
    genuine: Bools, score: Floats, decided: Decisions, pairs: PeopleOfPairs
) -> Rate | None:
    """Return the accuracy with each fold's threshold from the other folds, if there are any."""
    parts = None if decided.source is ThresholdFrom.OTHER_HALF else decided.parts
    if parts is None or len(np.unique(parts)) < 2:
        return None
    try:
        again = decide(genuine, score, None, parts)
    except NotEnough:
        return None
    pooled = balanced_accuracy(pairs, genuine, again.accepted).interval(pairs, genuine)
    return _over_folds(_folds(genuine, again, pairs), pooled)
