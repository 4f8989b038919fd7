"""The figures of a cross-validation, from scores and thresholds alone.

Each fold is decided at the threshold that its own network brought along; the accuracy is the folds'
mean, with its standard error. For the ROC curve the scores of all folds are taken together, as LFW
does, though each fold has a network of its own. Source: Huang and Learned-Miller, *Labeled Faces in
the Wild: Updates and New Reporting Procedures*, UMass Amherst UM-CS-2014-003.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.bundles.calibration import Calibration
from facepairs.errors import BadData
from facepairs.evaluation.calibration import expected_calibration_error
from facepairs.evaluation.metrics import (
    Bools,
    Counts,
    Floats,
    accuracy,
    auc,
    auc_interval,
    both_classes,
    eer,
    fmr_fnmr,
    mean_and_standard_error,
    tar_at_far,
)
from facepairs.evaluation.summary import FARS

SCHEMA = 1


def view2_summary(
    genuine: npt.ArrayLike,
    score: npt.ArrayLike,
    fold: npt.ArrayLike,
    thresholds: Mapping[int, float],
    calibrations: Mapping[int, Calibration] | None = None,
) -> dict[str, Any]:
    """Give the figures of scored folds as a dict ready for JSON (intervals are [low, high], 95 %).

    `genuine` bool[N], `score` float[N], `fold` int[N]; `thresholds` and `calibrations` by fold
    number, made without that fold's pairs. Keys: `schema`, `accuracy` (mean of the folds),
    `accuracy_standard_error` (None with one fold, and then
    `accuracy_standard_error_reason`), `folds` (each with `fold`, `accuracy`, `threshold`, `auc`,
    `genuine_pairs`, `impostor_pairs`), `fmr` and `fnmr` of all decisions, and of all scores
    together `auc`, `auc_interval`, `eer`, `tar_at_far` (by '0.1', '0.01', '0.001'; without a `tar`
    but a `reason` where pairs are too few); `ece` of each fold's own probabilities, taken together
    (None without calibrations); `genuine_pairs`, `impostor_pairs`.

    Raises NotEnough where a fold lacks a class, BadData for scores that are not finite, folds of
    another length, or a fold without a threshold.
    """
    labels, scores = both_classes(genuine, score)
    folds = np.asarray(fold, np.int64)
    if folds.shape != scores.shape:
        raise BadData(f"fold has shape {folds.shape}, the scores {scores.shape}: one a pair")
    numbers: list[int] = np.unique(folds).tolist()
    _check_covered(numbers, thresholds, "threshold")
    threshold = np.array([thresholds[number] for number in numbers])
    accepted = scores >= threshold[np.searchsorted(numbers, folds)]
    rates = fmr_fnmr(labels, accepted.astype(np.float64), 1.0)
    rows = [_fold(labels, scores, folds == k, k, float(thresholds[k])) for k in numbers]
    return {
        "schema": SCHEMA,
        **_mean([row["accuracy"] for row in rows]),
        "folds": rows,
        "fmr": rates.fmr,
        "fnmr": rates.fnmr,
        "auc": auc(labels, scores),
        "auc_interval": list(auc_interval(labels, scores)),
        "eer": eer(labels, scores),
        "tar_at_far": {str(far): _tar(labels, scores, far) for far in FARS},
        "ece": _ece(labels, scores, folds, calibrations),
        "genuine_pairs": rates.genuine_pairs,
        "impostor_pairs": rates.impostor_pairs,
    }


def _check_covered(numbers: list[int], given: Mapping[int, Any], what: str) -> None:
    missing = [number for number in numbers if number not in given]
    if missing:
        raise BadData(f"fold {missing[0]} has scores and no {what}")


def _fold(
    genuine: Bools, score: Floats, mine: Bools, number: int, threshold: float
) -> dict[str, Any]:
    labels, scores = both_classes(genuine[mine], score[mine])
    return {
        "fold": number,
        "accuracy": accuracy(labels, scores, threshold),
        "threshold": threshold,
        "auc": auc(labels, scores),
        "genuine_pairs": int(labels.sum()),
        "impostor_pairs": int((~labels).sum()),
    }


def _mean(accuracies: list[float]) -> dict[str, Any]:
    if len(accuracies) < 2:
        return {
            "accuracy": accuracies[0],
            "accuracy_standard_error": None,
            "accuracy_standard_error_reason": "a standard error needs 2 folds or more, has 1",
        }
    mean, error = mean_and_standard_error(accuracies)
    return {"accuracy": mean, "accuracy_standard_error": error}


def _tar(genuine: Bools, score: Floats, far: float) -> dict[str, Any]:
    point = tar_at_far(genuine, score, far)
    plain = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in asdict(point).items()
    }
    return {**plain, "reason": point.reason}


def _ece(
    genuine: Bools, score: Floats, fold: Counts, calibrations: Mapping[int, Calibration] | None
) -> float | None:
    if calibrations is None:
        return None
    numbers: list[int] = np.unique(fold).tolist()
    _check_covered(numbers, calibrations, "calibration")
    probability = np.empty(len(score))
    for number in numbers:
        mine = fold == number
        probability[mine] = calibrations[number].probability(score[mine])
    return expected_calibration_error(genuine, probability, prior=0.5)


def comparison(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Give the lines of a table for people: a method a line, accuracy ± standard error first."""
    head = ["method", "folds", "accuracy ± s.e.", "AUC", "EER"]
    head += [f"TAR @ FAR {far}" for far in FARS] + ["ECE"]
    return _aligned([head, *(_row(name, result) for name, result in results.items())])


def _row(name: str, result: Mapping[str, Any]) -> list[str]:
    error = result["accuracy_standard_error"]
    cells = [name, str(len(result["folds"])), f"{result['accuracy']:.4f}"]
    cells[2] += " (1 fold: none)" if error is None else f" ± {error:.4f}"
    cells += [f"{result['auc']:.4f}", f"{result['eer']:.4f}"]
    tars = [result["tar_at_far"][str(far)]["tar"] for far in FARS]
    cells += ["too few pairs" if tar is None else f"{tar:.4f}" for tar in tars]
    return [*cells, "" if result["ece"] is None else f"{result['ece']:.4f}"]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
