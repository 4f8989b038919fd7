"""Metrics of scored pairs, from arrays alone: `accuracy`, `auc`, `tar_at_far` and so on."""

from facepairs.evaluation.metrics.arrays import check_two_classes
from facepairs.evaluation.metrics.curves import auc, auc_interval, eer, roc
from facepairs.evaluation.metrics.rates import (
    ErrorRates,
    accuracy,
    clopper_pearson,
    error_rates,
    error_rates_at,
    mean_and_standard_error,
)
from facepairs.evaluation.metrics.thresholds import (
    MIN_EXPECTED_FALSE_ACCEPTS,
    TarAtFar,
    best_threshold,
    pairs_needed,
    tar_at_far,
    threshold_at_fmr,
)

__all__ = [
    "MIN_EXPECTED_FALSE_ACCEPTS",
    "ErrorRates",
    "TarAtFar",
    "accuracy",
    "auc",
    "auc_interval",
    "best_threshold",
    "check_two_classes",
    "clopper_pearson",
    "eer",
    "error_rates",
    "error_rates_at",
    "mean_and_standard_error",
    "pairs_needed",
    "roc",
    "tar_at_far",
    "threshold_at_fmr",
]
