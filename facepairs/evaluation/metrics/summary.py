"""All figures of scored pairs in one `Summary`, for single runs and for LFW's View 2 alike.

References:
    Huang and Learned-Miller, *Labeled Faces in the Wild: Updates and New Reporting Procedures*,
    UMass Amherst UM-CS-2014-003: the accuracy is the mean of the folds, and the ROC curve is that
    of the scores of all folds together, although each fold has a network of its own. The threshold
    of a fold comes from the other folds; of several that are equally accurate there, the one in the
    middle (`best_threshold`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from facepairs.bundles.calibration import Calibration
from facepairs.errors import NotEnough
from facepairs.evaluation.metrics.arrays import (
    Bools,
    Floats,
    Interval,
    PairPeople,
    check_two_classes,
)
from facepairs.evaluation.metrics.calibration import lookalikes_of
from facepairs.evaluation.metrics.curves import auc, eer
from facepairs.evaluation.metrics.decisions import (
    FROM_CALLER,
    OTHER_FOLDS,
    OTHER_HALF,
    OWN_NETWORKS,
    Decisions,
    calibrated_probability,
    decide,
)
from facepairs.evaluation.metrics.operating_points import PointErrors, measure_points
from facepairs.evaluation.metrics.rates import (
    ErrorRates,
    mean_and_standard_error,
    student_interval,
)
from facepairs.evaluation.metrics.reliability import expected_calibration_error
from facepairs.evaluation.metrics.thresholds import FARS, TarAtFar, tar_at_far

SCHEMA = 3
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

    @property
    def balanced_accuracy(self) -> float | None:
        """The mean of the shares of both classes decided correctly; None without both classes."""
        if not self.genuine_pairs or not self.impostor_pairs:
            return None
        errors = self.false_accepts / self.impostor_pairs + self.false_rejects / self.genuine_pairs
        return 1 - errors / 2


@dataclass(frozen=True, kw_only=True)
class Summary(ErrorRates):
    """The errors of the decisions, and the figures of the scores.

    Intervals are of 95 %. Where people are known, they are wide enough for people that recur.

    Attributes:
        schema: Version of these fields.
        balanced_accuracy: The mean of 1 - FMR and 1 - FNMR; over folds, the mean of the folds'.
        balanced_accuracy_interval: Student's over folds, otherwise as in `measure_points`.
        accuracy: The same where both classes have equally many pairs, otherwise None: it would tell
            of their numbers more than of the verifier.
        accuracy_interval: That of the balanced accuracy, or None.
        accuracy_standard_error: Of the mean over folds of the balanced accuracy, None where there
            are not two folds.
        accuracy_standard_error_reason: Why a fold alone has no standard error.
        lfw_accuracy: The balanced accuracy by LFW's standard rule: the mean over the folds, each
            decided with the threshold that is best on the other folds, whatever else decides. None
            where there are not two folds of both classes.
        lfw_accuracy_standard_error: Of that mean.
        threshold: The one threshold of all pairs, None where each part has its own, or where the
            file's decisions follow none.
        threshold_source: Where thresholds come from, in words.
        folds: The folds of the pairs, or the two halves that set each other's threshold.
        operating_points: Errors at the point of this summary, to which its rates belong, and at
            others of the model.
        auc, auc_interval, eer: Of all scores together.
        tar_at_far: By target FAR: "0.1", "0.01", "0.001".
        ece: Expected calibration error at equal priors; where it is known which strangers look
            alike, they are half of the strangers. None without probabilities.
        category: LFW's category by the data that the verifier learned from, where it is known.
    """

    schema: int = SCHEMA
    balanced_accuracy: float
    balanced_accuracy_interval: Interval
    accuracy: float | None
    accuracy_interval: Interval | None
    accuracy_standard_error: float | None
    accuracy_standard_error_reason: str | None
    lfw_accuracy: float | None
    lfw_accuracy_standard_error: float | None
    threshold: float | None
    threshold_source: str
    folds: list[FoldSummary]
    operating_points: list[PointErrors]
    auc: float
    auc_interval: Interval
    eer: float
    tar_at_far: dict[str, TarAtFar]
    ece: float | None
    category: str | None = None

    @property
    def default_point(self) -> PointErrors:
        """The operating point with which `verify` decides; the first one where none is known."""
        points = self.operating_points
        return next((point for point in points if point.is_default), points[0])

    @property
    def true_folds(self) -> list[FoldSummary]:
        """The folds; empty without folds, also where halves set each other's threshold."""
        return [] if self.threshold_source == OTHER_HALF else self.folds


def summarise(
    genuine: npt.ArrayLike,
    score: npt.ArrayLike,
    threshold: float | Mapping[int, float] | None,
    fold: npt.ArrayLike | None = None,
    calibration: Calibration | Mapping[int, Calibration] | None = None,
    *,
    threshold_source: str = FROM_CALLER,
    cluster: npt.NDArray[np.integer] | None = None,
    people: PairPeople | None = None,
) -> Summary:
    """Return every figure of scored pairs.

    Args:
        genuine: bool[N].
        score: float[N].
        threshold: One for all pairs, or as in View 2, one for each fold number, of the fold's own
            network. They must not come from the pairs they decide. With None, each part of the
            pairs is decided with the best threshold of the other parts (`decide`).
        fold: int[N], or None.
        calibration: Turns scores into the probabilities whose error is measured; one for all pairs,
            or one for each fold number.
        threshold_source: Where a single threshold comes from, in words.
        cluster, people: As in `summarise_decisions`.

    Raises:
        NotEnough: A class is missing, or too rare to set a threshold without the pairs it decides.
        BadData: A score is not finite, the arrays do not fit together, or a fold has no threshold
            or calibration.
        BadConfig: The threshold is not finite.
    """
    labels, scores = check_two_classes(genuine, score)
    decided = decide(labels, scores, threshold, fold, threshold_source)
    probability = calibrated_probability(scores, fold, calibration)
    return summarise_decisions(
        labels,
        scores,
        decided,
        probability,
        lookalikes_of(calibration, labels, cluster),
        cluster=cluster,
        people=people,
    )


def summarise_decisions(
    genuine: Bools,
    score: Floats,
    decided: Decisions,
    probability: Floats | None = None,
    lookalike: Bools | None = None,
    *,
    cluster: npt.NDArray[np.integer] | None = None,
    people: PairPeople | None = None,
    points: Sequence[Decisions] = (),
) -> Summary:
    """Return every figure of decided pairs.

    Args:
        genuine: bool[N], with both classes.
        score: float64[N], finite.
        decided: The decisions.
        probability: float64[N] at equal priors, or None.
        lookalike: bool[N], the strangers that make up half of those whose probability is judged;
            None for strangers at random.
        cluster: int[N], the cluster that both photos of a pair are in, 0 where theirs differ; None
            where it is not known.
        people: Of the pairs; None where they are not known.
        points: Other operating points of the model.

    Raises:
        NotEnough: A class is missing, also in a fold with a threshold of its own network.
    """
    rows, area = measure_points([decided, *points], genuine, score, cluster, people)
    folds = _folds(genuine, score, decided)
    over_folds = decided.source in (OTHER_FOLDS, OWN_NETWORKS)
    error = None
    accuracy, interval = rows[0].balanced_accuracy, rows[0].balanced_accuracy_interval
    if over_folds and (spread := _over_folds(folds)):
        accuracy, error = spread
        interval = student_interval(accuracy, error, len(folds))
    by_rule = _by_lfws_rule(genuine, score, decided)
    counts = [(part.genuine_pairs, part.impostor_pairs) for part in folds]
    equal = all(a == b for a, b in [(rows[0].genuine_pairs, rows[0].impostor_pairs), *counts])
    ece = None
    if probability is not None:
        ece = expected_calibration_error(genuine, probability, lookalike)
    return Summary(
        **{name: getattr(rows[0], name) for name in ErrorRates.__dataclass_fields__},
        balanced_accuracy=accuracy,
        balanced_accuracy_interval=interval,
        accuracy=accuracy if equal else None,
        accuracy_interval=interval if equal else None,
        accuracy_standard_error=error,
        accuracy_standard_error_reason=ONE_FOLD if over_folds and len(folds) < 2 else None,
        lfw_accuracy=by_rule[0],
        lfw_accuracy_standard_error=by_rule[1],
        threshold=decided.threshold,
        threshold_source=decided.source,
        folds=folds,
        operating_points=rows,
        auc=auc(genuine, score),
        auc_interval=area,
        eer=eer(genuine, score),
        tar_at_far={str(far): tar_at_far(genuine, score, far) for far in FARS},
        ece=ece,
    )


def _folds(genuine: Bools, score: Floats, decided: Decisions) -> list[FoldSummary]:
    """Return the parts of the decisions, if there are any."""
    folds = []
    for number in [] if decided.parts is None else np.unique(decided.parts).tolist():
        members = decided.parts == number
        if decided.source == OWN_NETWORKS:
            check_two_classes(genuine[members], score[members])
        folds.append(
            _fold_summary(
                number,
                genuine[members],
                score[members],
                decided.accepted[members],
                float(decided.by_pair[members][0]),
            )
        )
    return folds


def _over_folds(folds: Sequence[FoldSummary]) -> tuple[float, float] | None:
    """Return the mean balanced accuracy and its error; None without two folds of both classes."""
    by_fold = [fold.balanced_accuracy for fold in folds if fold.balanced_accuracy is not None]
    return mean_and_standard_error(by_fold) if len(by_fold) == len(folds) > 1 else None


def _by_lfws_rule(
    genuine: Bools, score: Floats, decided: Decisions
) -> tuple[float, float] | tuple[None, None]:
    """Return the mean and its error with each fold's threshold from the other folds, if any."""
    parts = None if decided.source == OTHER_HALF else decided.parts
    if parts is None or len(np.unique(parts)) < 2:
        return None, None
    try:
        again = decide(genuine, score, None, parts)
    except NotEnough:
        return None, None
    return _over_folds(_folds(genuine, score, again)) or (None, None)


def _fold_summary(
    number: int, genuine: Bools, score: Floats, accepted: Bools, threshold: float
) -> FoldSummary:
    positive, negative = int(genuine.sum()), int((~genuine).sum())
    return FoldSummary(
        fold=number,
        accuracy=float(np.mean(accepted == genuine)),
        threshold=threshold,
        auc=auc(genuine, score) if positive and negative else None,
        genuine_pairs=positive,
        impostor_pairs=negative,
        false_accepts=int((accepted & ~genuine).sum()),
        false_rejects=int((~accepted & genuine).sum()),
    )
