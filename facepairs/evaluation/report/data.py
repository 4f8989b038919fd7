"""`ReportData`: everything a report shows. Pages, plots and tables draw it and compute nothing."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.data.pairs import person_of
from facepairs.errors import FacepairsError
from facepairs.evaluation.evaluate import Evaluation
from facepairs.evaluation.measurement import EvaluationSummary, Measurement
from facepairs.evaluation.metrics.arrays import Bools, Floats
from facepairs.evaluation.metrics.comparison import Comparison
from facepairs.evaluation.metrics.curves import Histogram, Roc, score_histogram, thinned_roc
from facepairs.evaluation.metrics.operating_points import PointErrors
from facepairs.evaluation.metrics.reliability import Reliability, reliability_curve
from facepairs.evaluation.protocols import HELDOUT_SEED
from facepairs.evaluation.report.people import ErrorsByPerson, errors_by_person
from facepairs.evaluation.report.photos import PhotoFinder
from facepairs.evaluation.report.quality import (
    QualityErrors,
    errors_by_quality,
    photo_qualities,
    worse_of_pairs,
)
from facepairs.evaluation.report.tradeoff import TradeOff, trade_offs
from facepairs.evaluation.sources.facts import ModelFacts
from facepairs.evaluation.sources.origin import Origin
from facepairs.images.crop import CropSpec
from facepairs.support.checksum import file_sha256
from facepairs.support.machine import describe
from facepairs.support.progress import ProgressFactory, ignore_phases
from facepairs.version import __version__

SCHEMA = 3
WORST = 12
VIEW2_FOLDS = 10


@dataclass(frozen=True, kw_only=True)
class WrongPair:
    """A pair decided wrongly."""

    left: str
    right: str
    score: float
    threshold: float
    fold: int
    probability: float | None


@dataclass(frozen=True, kw_only=True)
class ModelData:
    """What a report shows of one verifier.

    Attributes:
        probability_source: Where probabilities come from, or why there are none.
        reliability: Of the probabilities, classes weighted equally.
        weighs_lookalikes: Whether half of the strangers' weight there is that of look-alikes.
        quality: None where `quality_reason` says why.
        people: None without names of photos.
        provenance: Where the scores come from, in words.
        facts: What the verifier costs, where several are compared.
        worst: The pairs decided most wrongly, by "false_accepts" and "false_rejects", farthest from
            the threshold first; None without names.
    """

    name: str
    source: str
    summary: EvaluationSummary
    trade_offs: list[TradeOff]
    curve: Roc
    histogram: Histogram
    probability_source: str
    reliability: Reliability | None
    weighs_lookalikes: bool
    quality: list[QualityErrors] | None
    quality_reason: str
    people: ErrorsByPerson | None
    worst: dict[str, list[WrongPair]] | None
    origin: Origin
    provenance: str
    facts: ModelFacts | None = None

    @property
    def points(self) -> list[PointErrors]:
        """The operating points."""
        return self.summary.operating_points

    @property
    def default_point(self) -> PointErrors:
        """As in the summary."""
        return self.summary.default_point

    def threshold_range(self, point: PointErrors) -> tuple[float, float] | None:
        """Return the lowest and the highest threshold of a point; None where they are not known."""
        if point.threshold is not None:
            return point.threshold, point.threshold
        values = [part.threshold for part in self.summary.folds]
        return (min(values), max(values)) if values and point is self.points[0] else None


@dataclass(frozen=True, kw_only=True)
class PairData:
    """The pairs and photos that were measured; what is unknown is None."""

    source: str
    folder: str | None
    pairs: int
    genuine_pairs: int
    impostor_pairs: int
    folds: int
    photos: int | None = None
    people: int | None = None
    photos_missing: int | None = None
    folder_photos: int | None = None
    folder_people: int | None = None
    folder_fingerprint: str | None = None
    sha256: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """Everything a report shows.

    Attributes:
        created: Time in UTC.
        dataset: What was measured on, in a few words.
        comparison: None for one verifier.
    """

    schema: int = SCHEMA
    created: str
    dataset: str
    command: str
    version: str
    machine: dict[str, Any]
    seeds: dict[str, int | str]
    warnings: list[str]
    data: PairData
    models: list[ModelData]
    comparison: Comparison | None


def report_data(
    evaluation: Evaluation, command: str, progress: ProgressFactory = ignore_phases
) -> ReportData:
    """Compute everything a report shows.

    Args:
        evaluation: The measurements.
        command: The command line, which the report quotes.
        progress: Called with the name of each phase.

    Raises:
        BadData: The folder of photos holds none of the photos that the scores name.
    """
    photos = PhotoFinder.below(evaluation.data, evaluation.measurements[0].scores)

    @cache  # verifiers that see the same crop share the measurements
    def measure(crop: CropSpec, aligned: bool) -> dict[str, Floats]:
        assert photos is not None
        return photo_qualities(photos.paths(), crop, aligned, progress("measuring photos"))

    return ReportData(
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        dataset=_dataset(evaluation),
        command=command,
        version=__version__,
        machine=describe(),
        seeds=_seeds(evaluation),
        warnings=evaluation.warnings,
        data=_pair_data(evaluation, photos),
        models=[
            _model_data(one, *_errors_by_quality(one, photos, measure))
            for one in evaluation.measurements
        ],
        comparison=evaluation.comparison,
    )


def _errors_by_quality(
    one: Measurement,
    photos: PhotoFinder | None,
    measure: Callable[[CropSpec, bool], dict[str, Floats]],
) -> tuple[list[QualityErrors] | None, str]:
    """Return errors by quality, or None and the reason."""
    if photos is None:
        return None, "needs the folder of photos: give DATA, and scores with names of photos"
    try:
        qualities = measure(one.crop, one.summary.aligned)
    except FacepairsError as error:
        return None, f"not measured: {error}"
    worse = worse_of_pairs(one.scores.left, one.scores.right, qualities)
    return errors_by_quality(one.scores.genuine, one.accepted, worse), ""


def _model_data(
    one: Measurement, quality: list[QualityErrors] | None, quality_reason: str
) -> ModelData:
    scores = one.scores
    people = worst = reliability = None
    if one.probability is not None:
        reliability = reliability_curve(scores.genuine, one.probability, one.lookalike)
    if scores.has_names:
        people = errors_by_person(scores.left, scores.right, scores.genuine, one.accepted)
        wrong = one.accepted != scores.genuine
        worst = {
            "false_accepts": _worst(one, wrong & one.accepted),
            "false_rejects": _worst(one, wrong & ~one.accepted),
        }
    return ModelData(
        name=one.name,
        source=one.source,
        summary=one.summary,
        trade_offs=trade_offs(scores.genuine, scores.score, one.scores.cluster),
        curve=thinned_roc(scores.genuine, scores.score),
        histogram=score_histogram(scores.genuine, scores.score),
        probability_source=one.probability_source,
        reliability=reliability,
        weighs_lookalikes=one.lookalike is not None,
        quality=quality,
        quality_reason=quality_reason,
        people=people,
        worst=worst,
        origin=one.origin,
        provenance=_provenance(one),
        facts=one.facts,
    )


def _provenance(one: Measurement) -> str:
    """Return in words where the scores come from."""
    made_by = one.summary.scored_by
    if made_by is None:
        return "of unknown origin"
    network = one.provenance.network_sha256 if one.provenance else None
    return f"by {made_by}" + (f" (network {network[:12]})" if network else "")


def _worst(one: Measurement, chosen: Bools) -> list[WrongPair]:
    """Return the chosen pairs that are farthest from their threshold."""
    scores = one.scores
    places = np.flatnonzero(chosen)
    distance = np.abs(scores.score - one.threshold)[places]
    return [
        WrongPair(
            left=scores.left[k],
            right=scores.right[k],
            score=float(scores.score[k]),
            threshold=float(one.threshold[k]),
            fold=int(scores.fold[k]),
            probability=None if one.probability is None else float(one.probability[k]),
        )
        for k in places[np.argsort(-distance, kind="stable")][:WORST].tolist()
    ]


def point_label(point: PointErrors) -> str:
    """Return the name of an operating point: `balanced`, or the rate that it promises."""
    return point.label if point.max_fmr is None else f"FMR {100 * point.max_fmr:g} %"


def _dataset(evaluation: Evaluation) -> str:
    """Return a name of what was measured on: a protocol, a folder of photos or a file of scores."""
    selection, first = evaluation.selection, evaluation.measurements[0]
    if _is_view2(evaluation):
        return "LFW, View 2"
    if selection is not None and selection.protocol == "view1":
        return "LFW, View 1"
    if selection is None or evaluation.data is None:
        return Path(first.source).name
    folder = evaluation.data.resolve().name
    return f"{folder}, {selection.source if selection.protocol else Path(selection.source).name}"


def _is_view2(evaluation: Evaluation) -> bool:
    """Return whether the pairs are all those of LFW's View 2; other data sets have its shape."""
    first = evaluation.measurements[0]
    is_protocol = first.provenance is not None and first.provenance.protocol == "view2"
    return is_protocol and len(np.unique(first.scores.fold)) == VIEW2_FOLDS


def _seeds(evaluation: Evaluation) -> dict[str, int | str]:
    seeds: dict[str, int | str] = {}
    if evaluation.selection is not None and evaluation.selection.protocol == "heldout":
        seeds["pairs drawn"] = HELDOUT_SEED
    if evaluation.comparison is not None:
        seeds["bootstrap"] = evaluation.comparison.seed
    for one in evaluation.measurements:
        if one.origin.seeds:
            seeds[f"training of {one.name}"] = ", ".join(map(str, one.origin.seeds))
    return seeds


def _pair_data(evaluation: Evaluation, photos: PhotoFinder | None) -> PairData:
    first, selection = evaluation.measurements[0], evaluation.selection
    scores = first.scores
    facts: dict[str, Any] = {}
    if scores.has_names:
        names = sorted({*scores.left, *scores.right})
        facts |= {"photos": len(names), "people": len(set(map(person_of, names)))}
    if selection is not None:
        facts |= {
            "folder_photos": len(selection.index),
            "folder_people": len(selection.index.people),
            "folder_fingerprint": selection.index.fingerprint,
        }
    files = [one.source for one in evaluation.measurements if Path(one.source).is_file()]
    return PairData(
        source=first.summary.pairs,
        folder=str(evaluation.data) if evaluation.data else None,
        pairs=len(scores),
        genuine_pairs=first.summary.genuine_pairs,
        impostor_pairs=first.summary.impostor_pairs,
        folds=len(np.unique(scores.fold)),
        photos_missing=None if photos is None else len(photos.missing),
        sha256={file: file_sha256(Path(file)) for file in files},
        **facts,
    )
