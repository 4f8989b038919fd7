"""`Measured`: a verifier's scores and the figures that follow, wherever the scores come from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.bundles.calibration import Calibration
from facepairs.config import read_table
from facepairs.data.index import StringTable
from facepairs.errors import BadBundle, BadData, FacepairsError, NotEnough
from facepairs.evaluation.calibrate import cross_fitted_probability
from facepairs.evaluation.metrics import Bools, Counts, Floats, clopper_pearson, fmr_fnmr
from facepairs.evaluation.scores import Scores, read_scores
from facepairs.evaluation.sources import RESULT, SCORES, Source, read_result
from facepairs.evaluation.summary import student_interval, summarise, thresholds_in_force
from facepairs.evaluation.view2 import view2_summary
from facepairs.images.photo import Framing
from facepairs.verification.opening import Model

LFW_FRAMING = Framing(frame_px=250, crop_px=128)
OWN_FOLDS = "each fold's network brought its own"
OWN_PROBABILITY = "the verifier's own"
REFITTED = "fitted here, for each part of the pairs on the other parts"


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """Scored pairs of one verifier and all that is known of it.

    `threshold` float64[N] is what each pair was decided with; `probability` float64[N] or None, and
    where it comes from or why there is none. `promised` are a bundle's thresholds by target FMR,
    `about` what is known of its making (JSON), `history` a training's rows by name of the run.
    """

    name: str
    source: str
    scores: Scores
    summary: dict[str, Any]
    threshold: Floats
    probability: Floats | None
    probability_source: str
    view2: bool = False
    framing: Framing = LFW_FRAMING
    promised: list[dict[str, Any]] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    history: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def accepted(self) -> Bools:
        """bool[N]: the decisions."""
        return self.scores.score >= self.threshold

    def in_order(self, order: Counts) -> "Measured":
        """Give the same with its pairs in another order, int64[N]."""
        old = self.scores
        left, right = (StringTable(side[int(k)] for k in order) for side in (old.left, old.right))
        scores = Scores(left, right, old.genuine[order], old.fold[order], old.score[order])
        probability = None if self.probability is None else self.probability[order]
        return replace(
            self, scores=scores, threshold=self.threshold[order], probability=probability
        )


def measure_scores(source: Source, threshold: float | None = None) -> Measured:
    """Sum a scores file up, also one that another system made.

    Without a threshold one is chosen for each part of the pairs on the other parts, never on those
    it is reported on.
    """
    scores = read_scores(Path(source.path))
    summary = summarise(scores.genuine, scores.score, threshold, fold=scores.fold)
    probability, told = _refitted(scores)
    return Measured(
        name=source.name,
        source=source.path,
        scores=scores,
        summary={**summary, "pairs": source.path},
        threshold=thresholds_in_force(scores.genuine, scores.fold, summary),
        probability=probability,
        probability_source=told,
    )


def _refitted(scores: Scores) -> tuple[Floats | None, str]:
    try:
        return cross_fitted_probability(scores.genuine, scores.score, scores.fold), REFITTED
    except NotEnough as error:
        return None, f"no probability: {error}"


def measure_model(
    source: Source, model: Model, scores: Scores, own_threshold: bool = True
) -> Measured:
    """Sum up what a bundle, or an embedder made elsewhere, gave its pairs.

    The threshold is its own; where it has none, or that is not wanted, parts of the pairs set it
    for the others.
    """
    summary = summarise(
        scores.genuine,
        scores.score,
        model.threshold if own_threshold else None,
        scores.fold,
        calibration=model.calibration,
        threshold_source="the bundle's own",
    )
    if model.calibration is None:
        probability, told = _refitted(scores)
    else:
        probability, told = model.calibration.probability(scores.score), OWN_PROBABILITY
    run = Path(source.path).parent
    return Measured(
        name=source.name,
        source=source.path,
        scores=scores,
        summary=summary,
        threshold=thresholds_in_force(scores.genuine, scores.fold, summary),
        probability=probability,
        probability_source=told,
        framing=model.framing,
        promised=[dict(row) for row in model.thresholds],
        about={
            "model": model.model,
            "training": _short_training(model.training),
            "versions": dict(getattr(model, "versions", {})),
            "created": getattr(model, "created", ""),
        },
        history=_histories({run.absolute().name: run}),
    )


def _short_training(training: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in training.items() if key != "config"}


def measure_view2(source: Source) -> Measured:
    """Sum up a method's folder of `crossval`: each fold at the threshold its network brought.

    All figures are counted anew from scores and thresholds; of `result.json` only thresholds and
    what is told of the folds' making are taken. Raises BadData for what does not fit together.
    """
    folder = Path(source.path)
    scores, result = read_scores(folder / SCORES), read_result(folder / RESULT)
    made = {int(row["fold"]): row for row in result["folds"]}
    thresholds = {number: float(row["threshold"]) for number, row in made.items()}
    numbers = sorted(set(scores.fold.tolist()))
    folds = {k: folder / f"fold-{k:02}" for k in numbers}
    calibrations = _calibrations(folds)
    try:
        summary = view2_summary(scores.genuine, scores.score, scores.fold, thresholds, calibrations)
    except BadData as error:
        raise BadData(f"{folder}: {error}; run crossval again") from None
    threshold = thresholds_in_force(scores.genuine, scores.fold, summary)
    if calibrations is None:
        probability, told = _refitted(scores)
        summary["ece"] = result.get("ece")  # of the networks' own curves, as crossval noted it
    else:
        probability, told = _own_probability(scores, calibrations), OWN_PROBABILITY
    return Measured(
        name=source.name,
        source=source.path,
        scores=scores,
        summary=_completed(summary, scores, threshold) | {"pairs": str(folder / SCORES)},
        threshold=threshold,
        probability=probability,
        probability_source=told,
        view2=True,
        framing=_framing(folder),
        about=_about_folds(result, made, numbers),
        history=_histories({f"fold {k}": path for k, path in folds.items()}),
    )


def _completed(summary: dict[str, Any], scores: Scores, threshold: Floats) -> dict[str, Any]:
    """Add what `summarise` gives besides: intervals, and where the threshold comes from."""
    accepted = (scores.score >= threshold).astype(np.float64)
    rates = fmr_fnmr(scores.genuine, accepted, 1.0)
    error = summary["accuracy_standard_error"]
    if error is None:
        right = round(summary["accuracy"] * len(scores))
        interval = list(clopper_pearson(right, len(scores)))
    else:
        interval = student_interval(summary["accuracy"], error, len(summary["folds"]))
    return summary | {
        "accuracy_interval": interval,
        "threshold": None,
        "threshold_source": OWN_FOLDS,
        "fmr_interval": list(rates.fmr_interval),
        "fnmr_interval": list(rates.fnmr_interval),
    }


def _calibrations(folds: Mapping[int, Path]) -> dict[int, Calibration] | None:
    """Read each fold's curve from its record, where all records are still there."""
    try:
        records = {k: json.loads((path / "fold.json").read_bytes()) for k, path in folds.items()}
        return {k: Calibration.from_json(row["calibration"]) for k, row in records.items()}
    except (OSError, ValueError, KeyError, TypeError, BadBundle):
        return None


def _own_probability(scores: Scores, calibrations: Mapping[int, Calibration]) -> Floats:
    probability = np.empty(len(scores))
    for number, curve in calibrations.items():
        mine = scores.fold == number
        probability[mine] = curve.probability(scores.score[mine])
    return probability


def _framing(folder: Path) -> Framing:
    """Give the framing of the run's settings, or LFW's where they are gone."""
    try:
        train = read_table(folder / "config.toml")["train"]
        return Framing(train["frame_px"], train["crop_px"])
    except (FacepairsError, KeyError, TypeError, ValueError):
        return LFW_FRAMING


def _about_folds(
    result: Mapping[str, Any], made: Mapping[int, dict[str, Any]], numbers: list[int]
) -> dict[str, Any]:
    kept = ("people", "images", "epochs", "minutes", "seed")
    return {
        "model": result.get("method"),
        "folds_done": len(numbers),
        "folds_in_all": result.get("folds_in_all", len(numbers)),
        "folds": [
            {"fold": k, **{key: made[k][key] for key in kept if key in made[k]}} for k in numbers
        ],
        "machines": result.get("machines", []),
    }


def _histories(runs: Mapping[str, Path]) -> dict[str, list[dict[str, Any]]]:
    """Read each run folder's history, rows of numbers an epoch; those that have none are left out.

    A history is an extra: a damaged one must not stop a measurement.
    """
    found = {}
    for name, folder in runs.items():
        try:
            rows = json.loads((folder / "history.json").read_text(encoding="utf-8"))
            clean = [
                {key: float(value) for key, value in row.items() if np.isfinite(float(value))}
                for row in rows
            ]
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            continue
        if clean and all("epoch" in row for row in clean):
            found[name] = clean
    return found
