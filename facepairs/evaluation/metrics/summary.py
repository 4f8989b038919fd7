"""All figures of scored pairs in one `Summary`, for single runs and for LFW's View 2 alike.

No threshold is judged on the pairs it was chosen on. Either the caller brings thresholds, or each
part of the pairs is decided with a threshold chosen on the other parts.

References:
    Huang and Learned-Miller, *Labeled Faces in the Wild: Updates and New Reporting Procedures*,
    UMass Amherst UM-CS-2014-003: the accuracy is the mean of the folds, and the ROC curve is that
    of the scores of all folds together, although each fold has a network of its own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from facepairs.bundles.calibration import Calibration
from facepairs.errors import BadConfig, BadData, NotEnough
from facepairs.evaluation.metrics.arrays import (
    Bools,
    Floats,
    Interval,
    Ints,
    check_folds,
    check_two_classes,
)
from facepairs.evaluation.metrics.calibration import expected_calibration_error
from facepairs.evaluation.metrics.curves import auc, auc_interval, eer
from facepairs.evaluation.metrics.parts import parts_of
from facepairs.evaluation.metrics.rates import (
    ErrorRates,
    clopper_pearson,
    error_rates,
    mean_and_standard_error,
    student_interval,
)
from facepairs.evaluation.metrics.thresholds import FARS, TarAtFar, best_threshold, tar_at_far

SCHEMA = 2
FROM_CALLER = "given by the caller"
OTHER_FOLDS = "each fold's from the other folds"
OTHER_HALF = "each half's from the other half of the pairs"
OWN_NETWORKS = "each fold's from its own network"
ONE_FOLD = "a standard error needs 2 folds or more, has 1"


@dataclass(frozen=True, kw_only=True)
class FoldSummary:
    """One fold, or one half, of the pairs; `auc` is None where a class is missing."""

    fold: int
    accuracy: float
    threshold: float
    auc: float | None
    genuine_pairs: int
    impostor_pairs: int
    false_accepts: int
    false_rejects: int

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return self.genuine_pairs + self.impostor_pairs


@dataclass(frozen=True, kw_only=True)
class Summary(ErrorRates):
    """The errors of the decisions, and the figures of the scores; intervals are of 95 %.

    Attributes:
        schema: Version of these fields.
        accuracy: Share of pairs decided correctly; over folds, the mean of their accuracies.
        accuracy_interval: Student's over folds, otherwise Clopper-Pearson.
        accuracy_standard_error: Of the mean over folds, None where there are not two folds.
        accuracy_standard_error_reason: Why a fold alone has no standard error.
        threshold: The one threshold of all pairs, None where each part has its own.
        threshold_source: Where thresholds come from, in words.
        folds: The folds of the pairs, or the two halves that set each other's threshold.
        auc, auc_interval, eer: Of all scores together.
        tar_at_far: By target FAR: "0.1", "0.01", "0.001".
        ece: Expected calibration error, classes weighted equally; None without probabilities.
        category: LFW's category by the data that the verifier learned from, where it is known.
    """

    schema: int = SCHEMA
    accuracy: float
    accuracy_interval: Interval
    accuracy_standard_error: float | None
    accuracy_standard_error_reason: str | None
    threshold: float | None
    threshold_source: str
    folds: list[FoldSummary]
    auc: float
    auc_interval: Interval
    eer: float
    tar_at_far: dict[str, TarAtFar]
    ece: float | None
    category: str | None = None

    @property
    def true_folds(self) -> list[FoldSummary]:
        """The folds; empty without folds, also where halves set each other's threshold."""
        return [] if self.threshold_source == OTHER_HALF else self.folds


@dataclass(frozen=True, eq=False, kw_only=True)
class Thresholds:
    """The threshold that decides each pair, chosen without that pair.

    Attributes:
        by_pair: float64[N].
        source: Where they come from, in words.
        parts: int64[N], the folds or halves of the pairs, if there are any.
        is_fixed: Whether one threshold decides all pairs; otherwise each part has its own.
    """

    by_pair: Floats
    source: str
    parts: Ints | None
    is_fixed: bool = False


def choose_thresholds(
    genuine: Bools,
    score: Floats,
    threshold: float | Mapping[int, float] | None,
    fold: npt.ArrayLike | None = None,
    source: str = FROM_CALLER,
) -> Thresholds:
    """Return the threshold that decides each pair.

    Args:
        genuine: bool[N].
        score: float64[N].
        threshold: One for all pairs, or one for each fold number. With None, each part of the pairs
            gets the most accurate threshold of the other parts: the folds where there are two or
            more, and otherwise two halves drawn by position and class, never by score. Halves may
            share people.
        fold: int[N], or None.
        source: Where a single threshold comes from, in words.

    Raises:
        NotEnough: A class is too rare outside one of the parts.
        BadData: `fold` does not have one number for each pair, or a fold has no threshold.
        BadConfig: The threshold is not finite.
    """
    if isinstance(threshold, Mapping):
        folds = check_folds(fold, len(score))
        by_pair = np.empty(len(score))
        for number, members in _members_of_folds(folds, threshold, "threshold"):
            by_pair[members] = threshold[number]
        return Thresholds(by_pair=by_pair, source=OWN_NETWORKS, parts=folds)
    parts, are_folds = parts_of(genuine, fold)
    if threshold is None:
        by_pair = _held_out_thresholds(genuine, score, parts, are_folds)
        source = OTHER_FOLDS if are_folds else OTHER_HALF
        return Thresholds(by_pair=by_pair, source=source, parts=parts)
    if not math.isfinite(threshold):
        raise BadConfig(f"threshold is {threshold}; give a finite number")
    by_pair = np.full(len(score), float(threshold))
    folds_only = parts if are_folds else None
    return Thresholds(by_pair=by_pair, source=source, parts=folds_only, is_fixed=True)


def _held_out_thresholds(genuine: Bools, score: Floats, parts: Ints, are_folds: bool) -> Floats:
    counts = int(genuine.sum()), int((~genuine).sum())
    if not are_folds and min(counts) < 2:
        raise NotEnough(
            "without a threshold, half of the pairs sets it for the other half: needs 2 genuine "
            f"and 2 impostor pairs, has {counts[0]} and {counts[1]}"
        )
    by_pair = np.empty(len(score))
    for number in np.unique(parts).tolist():
        held_out = parts == number
        try:
            by_pair[held_out] = best_threshold(genuine[~held_out], score[~held_out])
        except NotEnough as error:
            raise NotEnough(f"the pairs outside fold {number} set its threshold: {error}") from None
    return by_pair


def calibrated_probability(
    score: Floats,
    fold: npt.ArrayLike | None,
    calibration: Calibration | Mapping[int, Calibration] | None,
) -> Floats | None:
    """Return the probability of each pair, float64[N], by one calibration or that of its fold.

    Args:
        score: float64[N].
        fold: int[N], needed when there is a calibration for each fold.
        calibration: One for all pairs, one for each fold, or None.

    Raises:
        BadData: A fold has no calibration.
    """
    if not isinstance(calibration, Mapping):
        return None if calibration is None else calibration.probability(score)
    probability = np.empty(len(score))
    folds = check_folds(fold, len(score))
    for number, members in _members_of_folds(folds, calibration, "calibration"):
        probability[members] = calibration[number].probability(score[members])
    return probability


def _members_of_folds(
    folds: Ints, values: Mapping[int, object], what: str
) -> list[tuple[int, Bools]]:
    """Return the number and the pairs of each fold; BadData where a fold has no value."""
    numbers = np.unique(folds).tolist()
    missing = [number for number in numbers if number not in values]
    if missing:
        raise BadData(f"fold {missing[0]} has scores and no {what}")
    return [(number, folds == number) for number in numbers]


def summarise(
    genuine: npt.ArrayLike,
    score: npt.ArrayLike,
    threshold: float | Mapping[int, float] | None,
    fold: npt.ArrayLike | None = None,
    calibration: Calibration | Mapping[int, Calibration] | None = None,
    *,
    threshold_source: str = FROM_CALLER,
) -> Summary:
    """Return every figure of scored pairs.

    Args:
        genuine: bool[N].
        score: float[N].
        threshold: One for all pairs, or as in View 2, one for each fold number, of the fold's own
            network. They must not come from the pairs they decide. With None, each part of the
            pairs is decided with the best threshold of the other parts (`choose_thresholds`).
        fold: int[N], or None.
        calibration: Turns scores into the probabilities whose error is measured; one for all pairs,
            or one for each fold number.
        threshold_source: Where a single threshold comes from, in words.

    Raises:
        NotEnough: A class is missing, or too rare to set a threshold without the pairs it decides.
        BadData: A score is not finite, the arrays do not fit together, or a fold has no threshold
            or calibration.
        BadConfig: The threshold is not finite.
    """
    labels, scores = check_two_classes(genuine, score)
    thresholds = choose_thresholds(labels, scores, threshold, fold, threshold_source)
    probability = calibrated_probability(scores, fold, calibration)
    return summarise_decisions(labels, scores, thresholds, probability)


def summarise_decisions(
    genuine: Bools, score: Floats, thresholds: Thresholds, probability: Floats | None = None
) -> Summary:
    """Return every figure of pairs that are decided by `thresholds`.

    Args:
        genuine: bool[N], with both classes.
        score: float64[N], finite.
        thresholds: Of each pair.
        probability: float64[N] at equal priors, or None.

    Raises:
        NotEnough: A class is missing, also in a fold with a threshold of its own network.
    """
    by_pair, parts = thresholds.by_pair, thresholds.parts
    rates = error_rates(genuine, score >= by_pair)
    folds = []
    if parts is not None:
        for number in np.unique(parts).tolist():
            members = parts == number
            if thresholds.source == OWN_NETWORKS:
                check_two_classes(genuine[members], score[members])
            folds.append(_fold_summary(number, genuine[members], score[members], by_pair[members]))
    over_folds = thresholds.source in (OTHER_FOLDS, OWN_NETWORKS)
    error = None
    if over_folds and len(folds) > 1:
        accuracy, error = mean_and_standard_error([fold.accuracy for fold in folds])
        interval = student_interval(accuracy, error, len(folds))
    else:
        correct = len(score) - rates.false_accepts - rates.false_rejects
        accuracy, interval = correct / len(score), clopper_pearson(correct, len(score))
    ece = None
    if probability is not None:
        ece = expected_calibration_error(genuine, probability, prior=0.5)
    return Summary(
        **vars(rates),
        accuracy=accuracy,
        accuracy_interval=interval,
        accuracy_standard_error=error,
        accuracy_standard_error_reason=ONE_FOLD if over_folds and error is None else None,
        threshold=float(by_pair[0]) if thresholds.is_fixed else None,
        threshold_source=thresholds.source,
        folds=folds,
        auc=auc(genuine, score),
        auc_interval=auc_interval(genuine, score),
        eer=eer(genuine, score),
        tar_at_far={str(far): tar_at_far(genuine, score, far) for far in FARS},
        ece=ece,
    )


def _fold_summary(number: int, genuine: Bools, score: Floats, threshold: Floats) -> FoldSummary:
    accepted = score >= threshold
    positive, negative = int(genuine.sum()), int((~genuine).sum())
    return FoldSummary(
        fold=number,
        accuracy=float(np.mean(accepted == genuine)),
        threshold=float(threshold[0]),
        auc=auc(genuine, score) if positive and negative else None,
        genuine_pairs=positive,
        impostor_pairs=negative,
        false_accepts=int((accepted & ~genuine).sum()),
        false_rejects=int((~accepted & genuine).sum()),
    )
