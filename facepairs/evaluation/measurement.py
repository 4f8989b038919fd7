"""`Measurement`: the scores of one verifier and their figures, wherever the scores come from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.calibration import Calibration
from facepairs.bundles.thresholds import FmrThreshold
from facepairs.config import read_table
from facepairs.errors import BadData, FacepairsError, NotEnough
from facepairs.evaluation.metrics.arrays import Bools, Floats, Ints
from facepairs.evaluation.metrics.calibration import cross_fitted_probability
from facepairs.evaluation.metrics.summary import (
    FROM_CALLER,
    Summary,
    calibrated_probability,
    choose_thresholds,
    summarise_decisions,
)
from facepairs.evaluation.scores import ScoreTable, read_scores
from facepairs.evaluation.sources import RESULT, SCORES, ScoreSource
from facepairs.images.crop import CropSpec
from facepairs.support.validation import validate
from facepairs.verification.loading import Model

LFW_CROP = CropSpec(frame_px=250, crop_px=128)
OWN_PROBABILITY = "the verifier's own"
REFITTED = "fitted here, for each part of the pairs on the other parts"
OWN_THRESHOLD = "the bundle's own"


class FoldTraining(msgspec.Struct, frozen=True):
    """What `crossval` recorded of a fold; older versions recorded less."""

    fold: int
    threshold: float
    people: dict[str, int] = {}
    images: dict[str, int] = {}
    epochs: int | None = None
    minutes: float | None = None
    seed: int | None = None
    calibration: Calibration | None = None


class CrossvalRecord(msgspec.Struct, frozen=True):
    """What is read of a method's result.json; figures are computed again from the scores."""

    folds: list[FoldTraining]
    method: str | None = None
    folds_in_all: int | None = None
    machines: list[dict[str, Any]] = []
    ece: float | None = None


@dataclass(frozen=True, kw_only=True)
class Origin:
    """How a verifier was made, as far as is known; `folds` only for cross-validations."""

    model: str | None = None
    training: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    created: str = ""
    folds_done: int | None = None
    folds_in_all: int | None = None
    folds: list[FoldTraining] = field(default_factory=list)
    machines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def seeds(self) -> list[int]:
        """The seeds of its training, sorted."""
        seeds = {fold.seed for fold in self.folds} or {self.training.get("seed")}
        return sorted(seed for seed in seeds if seed is not None)


@dataclass(frozen=True, kw_only=True)
class EvaluationSummary(Summary):
    """The figures of a verifier and what they were measured on.

    Attributes:
        pairs: Where the pairs come from: a protocol or a file.
        people: Number of people in the pairs, where photos were scored here.
        pairs_with_known_people: Pairs with people on whom the bundle was trained or calibrated.
        model: The architecture.
        bundle: Path of the verifier.
    """

    pairs: str
    people: int | None = None
    pairs_with_known_people: int | None = None
    model: str | None = None
    bundle: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurement:
    """Scored pairs of one verifier, their decisions and figures.

    Attributes:
        name: Short name, for tables.
        source: Path of the verifier or of the scores.
        scores: The N pairs.
        summary: The figures.
        threshold: float64[N], what each pair was decided with.
        probability: float64[N] at equal priors, or None.
        probability_source: Where probabilities come from, or why there are none.
        crop: What of a photo the verifier sees.
        bundle_thresholds: Thresholds by target FMR that the bundle brings.
        origin: How the verifier was made.
    """

    name: str
    source: str
    scores: ScoreTable
    summary: EvaluationSummary
    threshold: Floats
    probability: Floats | None
    probability_source: str
    crop: CropSpec = LFW_CROP
    bundle_thresholds: Sequence[FmrThreshold] = ()
    origin: Origin = Origin()

    @property
    def accepted(self) -> Bools:
        """The decisions, bool[N]."""
        return self.scores.score >= self.threshold

    def take(self, order: Ints) -> "Measurement":
        """Return the same measurement with its pairs in another order, int64[N]."""
        return replace(
            self,
            scores=self.scores.take(order),
            threshold=self.threshold[order],
            probability=None if self.probability is None else self.probability[order],
        )


def measure_scores(source: ScoreSource, threshold: float | None = None) -> Measurement:
    """Measure a scores file, also one of another system.

    Without a threshold, one is chosen for each part of the pairs on the other parts.

    Raises:
        BadData: The file cannot be read.
        NotEnough: A class is missing or too rare.
    """
    return _measure(source, read_scores(Path(source.path)), threshold, None, source.path)


def measure_model(
    source: ScoreSource,
    model: Model,
    scores: ScoreTable,
    pairs: str,
    own_threshold: bool = True,
    **facts: int,
) -> Measurement:
    """Measure the scores that a bundle or an external embedder gave its pairs.

    Args:
        source: Name and path of the model.
        model: Its threshold and calibration are used where it has them; otherwise parts of the
            pairs set them for the others.
        scores: The scored pairs.
        pairs: Where the pairs come from, in words.
        own_threshold: Whether to use the model's threshold.
        facts: More fields of the `EvaluationSummary`.

    Raises:
        NotEnough: A class is missing or too rare.
    """
    origin = Origin(model=model.model)
    if isinstance(model, Bundle):
        training = msgspec.to_builtins(model.training)
        origin = Origin(
            model=model.model,
            training={name: value for name, value in training.items() if value not in (None, "")},
            versions=model.versions,
            created=model.created,
        )
    measured = _measure(
        source,
        scores,
        model.threshold if own_threshold else None,
        model.calibration,
        pairs,
        model=model.model,
        bundle=source.path,
        **facts,
    )
    return replace(
        measured,
        crop=model.framing,
        bundle_thresholds=model.thresholds,
        origin=origin,
    )


def measure_view2(source: ScoreSource) -> Measurement:
    """Measure a method's folder of `crossval`: each fold at the threshold of its own network.

    All figures are computed again from the scores. Thresholds, calibrations and records of the
    training come from `result.json`.

    Raises:
        BadData: The files cannot be read or do not fit together.
        NotEnough: A class is missing in a fold.
    """
    folder = Path(source.path)
    scores, record = read_scores(folder / SCORES), read_crossval_record(folder / RESULT)
    numbers = sorted(set(scores.fold.tolist()))
    thresholds = {fold.fold: fold.threshold for fold in record.folds}
    curves = {fold.fold: fold.calibration for fold in record.folds if fold.calibration}
    calibrations = curves if len(curves) == len(record.folds) else None
    try:
        measured = _measure(source, scores, thresholds, calibrations, str(folder / SCORES))
    except BadData as error:
        raise BadData(f"{folder}: {error}; run crossval again") from None
    if calibrations is None:  # a record of an older version has the error, not the calibrations
        measured = replace(measured, summary=replace(measured.summary, ece=record.ece))
    return replace(
        measured,
        crop=_read_crop(folder),
        origin=Origin(
            model=record.method,
            folds_done=len(numbers),
            folds_in_all=record.folds_in_all or len(numbers),
            folds=[fold for fold in record.folds if fold.fold in numbers],
            machines=record.machines,
        ),
    )


def _measure(
    source: ScoreSource,
    scores: ScoreTable,
    threshold: float | Mapping[int, float] | None,
    calibration: Calibration | Mapping[int, Calibration] | None,
    pairs: str,
    **facts: Any,
) -> Measurement:
    """Decide the pairs and compute their figures; without a calibration, one is fitted here."""
    genuine, score, fold = scores.genuine, scores.score, scores.fold
    threshold_source = OWN_THRESHOLD if "bundle" in facts else FROM_CALLER
    thresholds = choose_thresholds(genuine, score, threshold, fold, threshold_source)
    probability = calibrated_probability(score, fold, calibration)
    summary = summarise_decisions(genuine, score, thresholds, probability)
    probability_source = OWN_PROBABILITY
    if probability is None:
        try:
            probability = cross_fitted_probability(genuine, score, fold)
            probability_source = REFITTED
        except NotEnough as error:
            probability_source = f"no probability: {error}"
    return Measurement(
        name=source.name,
        source=source.path,
        scores=scores,
        summary=EvaluationSummary(**vars(summary), pairs=pairs, **facts),
        threshold=thresholds.by_pair,
        probability=probability,
        probability_source=probability_source,
    )


def read_crossval_record(path: Path) -> CrossvalRecord:
    """Read a method's result.json.

    Raises:
        BadData: It cannot be read or has no threshold for every fold.
    """
    advice = "run crossval again"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadData(f"{path}: cannot be read ({error}); {advice}") from None
    return validate(values, CrossvalRecord, str(path), BadData, advice)


def _read_crop(folder: Path) -> CropSpec:
    """Return the crop of the run's settings, or LFW's where they are missing."""
    try:
        train = read_table(folder / "config.toml")["train"]
        return CropSpec(train["frame_px"], train["crop_px"])
    except (FacepairsError, KeyError, TypeError, ValueError):
        return LFW_CROP
