"""Figures of plain arrays, for tests: the same way that `evaluate` takes from scores files."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from facepairs.bundles.rates import BALANCED, OperatingPoint
from facepairs.evaluation.error_rates import ThresholdFrom, decide, decide_at
from facepairs.evaluation.metrics.arrays import check_two_classes
from facepairs.evaluation.metrics.intervals import PeopleOfPairs
from facepairs.evaluation.metrics.reliability import expected_calibration_error
from facepairs.evaluation.summary import Summary, summarise, wrong_pairs


def checked(metric: Callable[..., Any]) -> Callable[..., Any]:
    """Return a metric that takes lists, checked as `evaluate` and training check pairs."""

    def measure(genuine: Any, score: Any, *more: Any) -> Any:
        return metric(*check_two_classes(genuine, score), *more)

    return measure


def fold_accuracy(fold: OperatingPoint) -> float:
    """Return the share of a fold's pairs that are decided rightly."""
    passed, missed, pairs = wrong_pairs(fold)
    return 1 - (passed + missed) / pairs


def figures_of(
    genuine: Any,
    score: Any,
    threshold: float | Mapping[int, float] | None,
    fold: Any = None,
    calibration: Any = None,
    *,
    people: Any = None,
) -> Summary:
    """Return every figure of pairs that one threshold decides, one of each fold, or none."""
    labels, scores = check_two_classes(genuine, score)
    if isinstance(threshold, Mapping):
        folds = np.asarray(fold, np.int64)
        by_pair = np.array([threshold[number] for number in folds.tolist()])
        point, source = OperatingPoint(None, BALANCED), ThresholdFrom.OWN_NETWORKS
        decided = decide_at(scores, point, source, folds, by_pair)
    else:
        decided = decide(labels, scores, threshold, fold)
    probability = None
    if isinstance(calibration, Mapping):
        both = zip(np.asarray(fold).tolist(), scores.tolist(), strict=True)
        probability = np.array([calibration[number].probability(value) for number, value in both])
    elif calibration is not None:
        probability = calibration.probability(scores)
    ece = None if probability is None else expected_calibration_error(labels, probability)
    pairs = PeopleOfPairs(people, len(labels))
    return msgspec.structs.replace(summarise(labels, scores, [decided], pairs), ece=ece)
