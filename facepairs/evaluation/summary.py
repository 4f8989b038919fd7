"""All figures of a set of scored pairs in one plain dict, and as rows for people.

No threshold is ever judged on the pairs it was chosen on. Either the caller brings one, or each
part of the pairs is decided with a threshold chosen on the other parts.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.bundles.calibration import Calibration
from facepairs.errors import BadConfig, BadData, NotEnough
from facepairs.evaluation.calibration import expected_calibration_error
from facepairs.evaluation.metrics import (
    Bools,
    ErrorRates,
    Floats,
    accuracy,
    auc,
    auc_interval,
    best_threshold,
    both_classes,
    clopper_pearson,
    eer,
    fmr_fnmr,
    mean_and_standard_error,
    tar_at_far,
)

SCHEMA = 1
FARS = (0.1, 0.01, 0.001)
OTHER_FOLDS = "each fold's from the other folds"
OTHER_HALF = "each half's from the other half of the pairs"
HALVES_KEY = 20071001  # of the fixed draw of halves; another key draws others, as fair

Ints = npt.NDArray[np.int64]


class _Decided(NamedTuple):
    """What the decisions give: the errors of all pairs, and the keys that depend on the mode."""

    rates: ErrorRates
    keys: dict[str, Any]


def summarise(
    genuine: npt.ArrayLike,
    score: npt.ArrayLike,
    threshold: float | None,
    fold: npt.ArrayLike | None = None,
    calibration: Calibration | None = None,
    *,
    threshold_source: str = "given by the caller",
) -> dict[str, Any]:
    """Give every figure of scored pairs as a dict ready for JSON (intervals are [low, high], 95 %).

    Keys: `schema`, `accuracy`, `accuracy_interval`, `threshold`, `threshold_source`, `fmr`,
    `fmr_interval`, `fnmr`, `fnmr_interval`, `auc`, `auc_interval`, `eer`, `tar_at_far` (by '0.1',
    '0.01', '0.001'), `genuine_pairs`, `impostor_pairs`, `ece` (of the calibration, classes weighted
    equally; None without one).

    With a threshold, which must not come from these pairs, they are all decided with it. Without
    one (`threshold` None), `accuracy_standard_error` and `folds` (each with `fold`, `accuracy`,
    `threshold`, `pairs`) come in addition, and the FMR and FNMR count all held-out decisions:

    - with two folds or more in `fold`, each is decided with the best threshold of the others;
      the accuracy is the folds' mean, its interval Student's (as LFW's View 2 reports);
    - otherwise each half of the pairs, drawn by position and class and never by score, is decided
      with the best threshold of the other; the accuracy is that of all pairs, its standard error
      None. Two halves may share people.

    Raises NotEnough when a class is missing, or is too rare to set a threshold without the pairs it
    is judged on; BadData for scores that are not finite or folds of another length; BadConfig for a
    threshold that is not finite.
    """
    labels, scores = both_classes(genuine, score)
    folds = _checked_folds(fold, len(scores))
    if threshold is not None:
        decided = _with_threshold(labels, scores, threshold, threshold_source)
    elif len(np.unique(folds)) > 1:
        decided = _over_folds(labels, scores, folds)
    else:
        decided = _over_halves(labels, scores)
    rates = decided.rates
    ece = None
    if calibration is not None:
        ece = expected_calibration_error(labels, calibration.probability(scores), prior=0.5)
    return {
        "schema": SCHEMA,
        **decided.keys,
        "fmr": rates.fmr,
        "fmr_interval": list(rates.fmr_interval),
        "fnmr": rates.fnmr,
        "fnmr_interval": list(rates.fnmr_interval),
        "auc": auc(labels, scores),
        "auc_interval": list(auc_interval(labels, scores)),
        "eer": eer(labels, scores),
        "tar_at_far": {str(far): _tar(labels, scores, far) for far in FARS},
        "genuine_pairs": rates.genuine_pairs,
        "impostor_pairs": rates.impostor_pairs,
        "ece": ece,
    }


def _checked_folds(fold: npt.ArrayLike | None, pairs: int) -> Ints:
    folds = np.zeros(pairs, np.int64) if fold is None else np.asarray(fold, np.int64)
    if folds.shape != (pairs,):
        raise BadData(f"fold must have one number a pair, {pairs}, and has shape {folds.shape}")
    return folds


def _tar(genuine: Bools, score: Floats, far: float) -> dict[str, Any]:
    point = tar_at_far(genuine, score, far)
    if point.tar_interval is None or point.far_interval is None:
        return {"tar": None, "reason": point.reason, "impostor_pairs": point.impostor_pairs}
    return {
        "tar": point.tar,
        "tar_interval": list(point.tar_interval),
        "threshold": point.threshold,
        "false_accepts": point.false_accepts,
        "impostor_pairs": point.impostor_pairs,
        "far_interval": list(point.far_interval),
    }


def _pooled_accuracy(rates: ErrorRates) -> dict[str, Any]:
    pairs = rates.genuine_pairs + rates.impostor_pairs
    right = pairs - rates.false_accepts - rates.false_rejects
    return {"accuracy": right / pairs, "accuracy_interval": list(clopper_pearson(right, pairs))}


def _with_threshold(genuine: Bools, score: Floats, threshold: float, source: str) -> _Decided:
    if not math.isfinite(threshold):
        raise BadConfig(f"threshold is {threshold}; give a finite number")
    rates = fmr_fnmr(genuine, score, threshold)
    keys = {"threshold": float(threshold), "threshold_source": source}
    return _Decided(rates, _pooled_accuracy(rates) | keys)


def _over_folds(genuine: Bools, score: Floats, fold: Ints) -> _Decided:
    rates, parts = _held_out(genuine, score, fold)
    accuracies = [part["accuracy"] for part in parts]
    mean, error = mean_and_standard_error(accuracies)
    keys = {
        "accuracy": mean,
        "accuracy_interval": student_interval(mean, error, len(parts)),
        "accuracy_standard_error": error,
        "threshold": None,
        "threshold_source": OTHER_FOLDS,
        "folds": parts,
    }
    return _Decided(rates, keys)


def student_interval(mean: float, error: float, count: int) -> list[float]:
    """Give Student's 95 % interval of a rate, [low, high], from its mean over `count` folds."""
    from scipy.special import stdtrit

    reach = float(stdtrit(count - 1, 0.975)) * error
    return [max(0.0, mean - reach), min(1.0, mean + reach)]


def _over_halves(genuine: Bools, score: Floats) -> _Decided:
    fewest = min(int(genuine.sum()), int((~genuine).sum()))
    if fewest < 2:
        raise NotEnough(
            "without a threshold, half of the pairs sets it for the other half: needs 2 genuine "
            f"and 2 impostor pairs, has {int(genuine.sum())} and {int((~genuine).sum())}"
        )
    rates, parts = _held_out(genuine, score, _halves(genuine))
    keys = {
        **_pooled_accuracy(rates),
        "accuracy_standard_error": None,
        "threshold": None,
        "threshold_source": OTHER_HALF,
        "folds": parts,
    }
    return _Decided(rates, keys)


def _halves(genuine: Bools) -> Ints:
    """Deal each class out by a fixed random order of positions.

    By score would be unfair: neighbours that differ little would sit on both sides. By turns would
    amount to it in a file sorted by score. Raw bits keep the draw the same in every NumPy.
    """
    half = np.empty(len(genuine), np.int64)
    keys = np.random.Philox(key=HALVES_KEY).random_raw(len(genuine))
    for label in (True, False):
        members = np.flatnonzero(genuine == label)
        half[members[np.argsort(keys[members], kind="stable")]] = np.arange(len(members)) % 2 + 1
    return half


def thresholds_in_force(
    genuine: npt.ArrayLike, fold: npt.ArrayLike | None, summary: Mapping[str, Any]
) -> Floats:
    """Give the threshold that each pair was decided with, float64[N], from a summary of them.

    `summary` is of `summarise` or of `view2_summary`, `genuine` and `fold` those it was made from.
    """
    labels = np.asarray(genuine, np.bool_)
    if summary.get("threshold") is not None:
        return np.full(len(labels), float(summary["threshold"]))
    part = _checked_folds(fold, len(labels))
    if summary.get("threshold_source") == OTHER_HALF:
        part = _halves(labels)
    threshold = np.full(len(part), np.nan)
    for row in summary["folds"]:
        threshold[part == row["fold"]] = row["threshold"]
    return threshold


def _held_out(genuine: Bools, score: Floats, part: Ints) -> tuple[ErrorRates, list[dict[str, Any]]]:
    """Decide each part with the threshold of the others; count all errors, and tell each part."""
    accepted = np.empty(len(score))
    told = []
    for number in np.unique(part).tolist():
        mine = part == number
        try:
            threshold = best_threshold(genuine[~mine], score[~mine])
        except NotEnough as error:
            raise NotEnough(f"the pairs outside fold {number} set its threshold: {error}") from None
        accepted[mine] = score[mine] >= threshold
        told.append(
            {
                "fold": number,
                "accuracy": accuracy(genuine[mine], score[mine], threshold),
                "threshold": threshold,
                "pairs": int(mine.sum()),
            }
        )
    return fmr_fnmr(genuine, accepted, 1.0), told


def table(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Give a summary as rows (label, text) for people; rates in percent, 95 % intervals."""
    pairs = f"{summary['genuine_pairs']:,} genuine, {summary['impostor_pairs']:,} impostor"
    rows = [
        ("Pairs", pairs),
        ("Accuracy", _accuracy_text(summary)),
        ("Threshold", _threshold_text(summary)),
        ("FMR (false accepts)", _rate(summary["fmr"], summary["fmr_interval"])),
        ("FNMR (false rejects)", _rate(summary["fnmr"], summary["fnmr_interval"])),
        ("AUC", _figure(summary["auc"], summary["auc_interval"])),
        ("EER", _percent(summary["eer"])),
    ]
    rows += [(f"TAR @ FAR {far}", _tar_text(tar)) for far, tar in summary["tar_at_far"].items()]
    if summary["ece"] is not None:
        rows.append(("Calibration error (ECE)", f"{summary['ece']:.4f}"))
    return rows


def _accuracy_text(summary: dict[str, Any]) -> str:
    error = summary.get("accuracy_standard_error")
    if error is None:
        return _rate(summary["accuracy"], summary["accuracy_interval"])
    folds = len(summary["folds"])
    figures = f"{_percent(summary['accuracy'])} ± {_percent(error)}"
    return f"{figures} (mean ± standard error of {folds} folds)"


def _threshold_text(summary: dict[str, Any]) -> str:
    if summary["threshold"] is not None:
        return f"{summary['threshold']:.6g} ({summary['threshold_source']})"
    values = [part["threshold"] for part in summary["folds"]]
    return f"{min(values):.6g} to {max(values):.6g} ({summary['threshold_source']})"


def _tar_text(tar: dict[str, Any]) -> str:
    if tar["tar"] is None:
        return str(tar["reason"])
    accepts = f"{tar['false_accepts']:,} of {tar['impostor_pairs']:,} impostor pairs accepted"
    return f"{_rate(tar['tar'], tar['tar_interval'])}; {accepts}"


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _rate(value: float, interval: list[float]) -> str:
    low, high = interval
    return f"{_percent(value)} ({100 * low:.2f} to {100 * high:.2f})"


def _figure(value: float, interval: list[float]) -> str:
    low, high = interval
    return f"{value:.4f} ({low:.4f} to {high:.4f})"
