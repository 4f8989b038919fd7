"""`Measurement`: the scores of one verifier and their figures, wherever the scores come from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.calibration import Calibration
from facepairs.bundles.thresholds import FmrThreshold
from facepairs.config import read_table
from facepairs.data.index import StringTable
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
from facepairs.evaluation.protocols import (
    CATEGORIES,
    PairSelection,
    category_of,
    count_known_pairs,
)
from facepairs.evaluation.scores import ScoreTable, read_scores, write_scores
from facepairs.evaluation.sources import RESULT, SCORES, ScoreSource
from facepairs.images.crop import CropSpec
from facepairs.images.crop_plan import ALIGNMENTS
from facepairs.support.validation import validate
from facepairs.verification.loading import Model
from facepairs.verification.scorer import ScoreArray

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


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a verifier was made, as far as is known.

    Attributes:
        method: The architecture, or the method of a cross-validation.
        training, versions, created: As in the bundle's manifest.
        folds, folds_in_all, machines, ece: As in the result.json of a cross-validation.
    """

    method: str | None = None
    training: dict[str, Any] = {}
    versions: dict[str, str] = {}
    created: str = ""
    folds: list[FoldTraining] = []
    folds_in_all: int | None = None
    machines: list[dict[str, Any]] = []
    ece: float | None = None

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
        photos_left_out: Photos of the pairs that cannot be used, where photos were scored here.
        pairs_left_out: Pairs with such photos; no figure counts them.
        alignment: How photos become crops, as the bundle has it, where it is known.
        model: The architecture.
        bundle: Path of the verifier.
    """

    pairs: str
    people: int | None = None
    pairs_with_known_people: int | None = None
    photos_left_out: int | None = None
    pairs_left_out: int | None = None
    alignment: str | None = None
    model: str | None = None
    bundle: str | None = None

    @property
    def aligned(self) -> bool:
        """Whether faces were found and aligned, as far as is known."""
        return self.alignment not in (None, "lfw-frame")


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
        warnings: What limits the figures, one line each.
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
    origin: Origin = field(default_factory=Origin)
    warnings: Sequence[str] = ()

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
    scores = read_scores(Path(source.path))
    measured = _measure(source, scores, source.path, threshold)
    if not scores.unscored:
        return measured
    warning = f"{source.path}: {scores.unscored:,} pairs have no score and are left out"
    return replace(measured, warnings=[warning])


def measure_model(
    source: ScoreSource,
    model: Model,
    selection: PairSelection,
    score: ScoreArray,
    scores_out: Path | None = None,
) -> Measurement:
    """Measure the scores that a bundle or an external embedder gave to pairs of photos.

    Args:
        source: Name and path of the model.
        model: Its threshold and calibration are used where it has them, its threshold never on
            View 2; otherwise parts of the pairs set them for the others.
        selection: The pairs.
        score: float32[N], their scores.
        scores_out: Scores file to write, or None.

    Raises:
        BadData: The model knows people of a protocol's pairs.
        NotEnough: A class is missing or too rare.
    """
    known, warnings = count_known_pairs(model, source.path, selection)
    index, pairs = selection.index, selection.pairs
    left, right = (
        StringTable(index.name(int(i)) for i in side) for side in (pairs.left, pairs.right)
    )
    scores = ScoreTable(left, right, pairs.genuine, pairs.fold, score.astype(np.float64))
    if scores_out is not None:
        write_scores(scores_out, scores)
    threshold = None if selection.protocol == "view2" else model.threshold
    measured = _measure(
        source, scores, selection.source, threshold, model.calibration, OWN_THRESHOLD
    )
    origin = Origin(method=model.model)
    if isinstance(model, Bundle):
        training = msgspec.to_builtins(model.training)
        origin = Origin(
            method=model.model,
            training={name: value for name, value in training.items() if value not in (None, "")},
            versions=model.versions,
            created=model.created,
        )
    summary = replace(
        measured.summary,
        people=selection.people,
        pairs_with_known_people=known,
        photos_left_out=selection.photos_left_out,
        pairs_left_out=selection.pairs_left_out,
        alignment=model.alignment,
        category=category_of(model, selection),
        model=model.model,
        bundle=source.path,
    )
    return replace(
        measured,
        summary=summary,
        crop=model.framing,
        bundle_thresholds=model.thresholds,
        origin=origin,
        warnings=warnings,
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
    scores, origin = read_scores(folder / SCORES), _read_result(folder / RESULT)
    thresholds = {fold.fold: fold.threshold for fold in origin.folds}
    curves = {fold.fold: fold.calibration for fold in origin.folds if fold.calibration}
    calibrations = curves if len(curves) == len(origin.folds) else None
    try:
        measured = _measure(source, scores, str(folder / SCORES), thresholds, calibrations)
    except BadData as error:
        raise BadData(f"{folder}: {error}; run crossval again") from None
    if calibrations is None:  # a record of an older version has the error, not the calibrations
        measured = replace(measured, summary=replace(measured.summary, ece=origin.ece))
    done, total, warnings = len(measured.summary.folds), origin.folds_in_all, []
    if total not in (None, done):
        warnings = [f"{folder}: {done} of {total} folds are done; View 2's figures need all"]
    crop, alignment = _read_crop(folder)
    if alignment is not None:
        category = CATEGORIES[alignment]
        summary = replace(measured.summary, alignment=alignment, category=category)
        measured = replace(measured, summary=summary)
    return replace(measured, crop=crop, origin=origin, warnings=warnings)


def _measure(
    source: ScoreSource,
    scores: ScoreTable,
    pairs: str,
    threshold: float | Mapping[int, float] | None,
    calibration: Calibration | Mapping[int, Calibration] | None = None,
    threshold_source: str = FROM_CALLER,
) -> Measurement:
    """Decide the pairs and compute their figures; without a calibration, one is fitted here."""
    genuine, score, fold = scores.genuine, scores.score, scores.fold
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
        summary=EvaluationSummary(**vars(summary), pairs=pairs),
        threshold=thresholds.by_pair,
        probability=probability,
        probability_source=probability_source,
    )


def _read_result(path: Path) -> Origin:
    """Read a method's result.json; raises BadData unless it has a threshold for every fold."""
    advice = "run crossval again"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadData(f"{path}: cannot be read ({error}); {advice}") from None
    return validate(values, Origin, str(path), BadData, advice)


def _read_crop(folder: Path) -> tuple[CropSpec, str | None]:
    """Return the crop and alignment of the run's settings; LFW's and None where they are missing.

    Older versions took photos as they are, and recorded no alignment.
    """
    try:
        train = read_table(folder / "config.toml")["train"]
        align = train.get("align", "none")
        alignment = ALIGNMENTS[align]
        return CropSpec(train["frame_px"], train["crop_px"]), alignment
    except (FacepairsError, AttributeError, KeyError, TypeError, ValueError):
        return LFW_CROP, None
