"""`Measurement`: the scores of one verifier and their figures, wherever the scores come from."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from facepairs.bundles.error_profile import Calibration, operating_point
from facepairs.bundles.model import Model
from facepairs.bundles.rates import BALANCED, GIVEN, OperatingPoint
from facepairs.data.groups import PeopleGroups
from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.decisions import (
    Decisions,
    ThresholdFrom,
    decide,
    decide_at,
)
from facepairs.evaluation.error_rates import group_errors
from facepairs.evaluation.fitting import cross_fitted_probability
from facepairs.evaluation.metrics.arrays import Bools, Floats
from facepairs.evaluation.metrics.estimates import CHANCE
from facepairs.evaluation.metrics.reliability import expected_calibration_error
from facepairs.evaluation.protocols import PairSelection
from facepairs.evaluation.scores import ScoreTable, read_scores
from facepairs.evaluation.sources import (
    RESULT,
    SCORES,
    CrossvalResult,
    ScoreSource,
    known_in_file,
    read_result,
)
from facepairs.evaluation.summary import Summary, summarise
from facepairs.support.words import counted
from facepairs.verification.provenance import Provenance, provenance_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurement:
    """Scored pairs of one verifier, their decisions and figures.

    Attributes:
        name: Short name, for tables.
        source: Path of the verifier or of the scores.
        scores: The N pairs.
        summary: The figures.
        decided: The decisions of the accuracy.
        by_default: Those of `verify`.
        probability: float64[N] at equal priors; None where pairs are too few to fit one.
        refitted: Whether probabilities were fitted here, for each part of the pairs on the other
            parts; otherwise they are the verifier's own.
        lookalike: bool[N], strangers that make up half of those whose probability is judged; None
            for strangers at random.
        provenance: What made the scores; None for scores of unknown origin.
        warnings: What limits the figures, one line each.
        faces: Which face of a photo was compared where it is not the most prominent one, by the
            photo's name: its number from 1.
    """

    name: str
    source: str
    scores: ScoreTable
    summary: Summary
    decided: Decisions
    by_default: Decisions
    probability: Floats | None
    refitted: bool
    lookalike: Bools | None = None
    provenance: Provenance | None = None
    warnings: Sequence[str] = ()
    faces: Mapping[str, int] = field(default_factory=dict)


def measure_scores(
    source: ScoreSource,
    groups: PeopleGroups | None = None,
    families: PeopleGroups | None = None,
) -> Measurement:
    """Measure a scores file, also one of another system, or the folder of a `crossval` method.

    Pairs of a file are decided with the thresholds of its model, which lie beside it; without them,
    with a threshold that is chosen for each part of the pairs on the other parts. Each fold of a
    `crossval` method is decided at the threshold of its own network, which `result.json` has. All
    figures are computed again from the scores.

    Args:
        source: The file, or the folder.
        groups: Groups of people, to measure the errors within them.
        families: Families of people, for intervals that know who is related.

    Raises:
        BadData: A file cannot be read, files do not fit together, or pairs of a protocol show
            people of their model.
        NotEnough: A class is missing or too rare.
    """
    folder = Path(source.path) if source.kind == "view2" else None
    path = folder / SCORES if folder else Path(source.path)
    scores = replace(read_scores(path), families=families)
    if scores.people is not None:
        if groups is not None:
            groups.check_groups(scores.people_names)
        if families is not None:
            families.check_some(scores.people_names)
    origin = scores.origin
    known, warnings = known_in_file(scores, path)
    if scores.unscored:
        pairs = counted(scores.unscored, "pair")
        warnings.append(f"{path}: left out: {pairs} without a score or a label")
    if folder:
        result = read_result(folder / RESULT)
        decisions = [_decide_by_fold(scores, result, folder)]
        curves = {fold.fold: fold.calibration for fold in result.folds}
        done, total = len(set(scores.fold.tolist())), result.folds_in_all
        if total not in (None, done):
            warnings.append(f"{folder}: {done} of {total} folds are done; View 2 needs all")
    else:
        points = []
        if origin and origin.threshold is not None and origin.operating_point != BALANCED:
            name = origin.operating_point or GIVEN
            points = [OperatingPoint(origin.threshold, name, origin.max_fmr, origin.among)]
        decisions, curves = _decide(scores, origin, points), _curves(scores, origin)
    measured = _measure(
        source, scores, origin, decisions, curves, groups, pairs_with_known_people=known
    )
    return replace(measured, warnings=[*warnings, *measured.warnings])


def measure_model(
    source: ScoreSource,
    model: Model,
    selection: PairSelection,
    scores: ScoreTable,
    groups: PeopleGroups | None = None,
    **about: Any,
) -> Measurement:
    """Measure the scores that a bundle or an external embedder gave to pairs of photos.

    Args:
        source: Name and path of the model.
        model: Its threshold and calibration are used where it has them, but not on View 2;
            otherwise parts of the pairs set them for the others.
        selection: The pairs.
        scores: Their scores.
        groups: Groups of people, to measure the errors within them.
        **about: What else the summary says.

    Raises:
        NotEnough: A class is missing or too rare.
    """
    protocol, point = selection.protocol or None, operating_point(model.profile)
    origin = provenance_of(model, selection.source, point, protocol=protocol)
    points = [one for one in model.profile.thresholds if one.threshold is not None]
    points.sort(key=lambda one: one.threshold or 0)
    if protocol == "view2":  # nothing of its own decides there
        own = ("operating_point", "threshold", "max_fmr", "balanced_threshold", "calibration")
        origin, points = msgspec.structs.replace(origin, **dict.fromkeys(own)), []
    return _measure(
        source,
        scores,
        origin,
        _decide(scores, origin, points),
        _curves(scores, origin),
        groups,
        people_left_out=selection.people_left_out,
        **about,
    )


def _decide_by_fold(scores: ScoreTable, result: CrossvalResult, folder: Path) -> Decisions:
    """Return the decisions at the thresholds of the folds' own networks."""
    thresholds = {fold.fold: fold.threshold for fold in result.folds}
    folds = scores.fold.astype(np.int64)
    if missing := sorted(set(folds.tolist()) - set(thresholds)):
        raise BadData(f"{folder}: fold {missing[0]} has no threshold; run crossval again")
    by_pair = np.array([thresholds[number] for number in folds.tolist()])
    point = OperatingPoint(None, BALANCED)
    return decide_at(scores.score, point, ThresholdFrom.OWN_NETWORKS, folds, by_pair)


def _decide(
    scores: ScoreTable, origin: Provenance | None, points: Sequence[OperatingPoint]
) -> list[Decisions]:
    """Return the decisions at the balanced threshold of a model, if any, then at its points."""
    balanced = origin.balanced_threshold if origin else None
    first = decide(scores.genuine, scores.score, balanced, scores.fold)
    return [first, *(decide_at(scores.score, point) for point in points)]


def _curves(scores: ScoreTable, origin: Provenance | None) -> dict[int, Calibration]:
    """Return the calibration of a model for every fold; none where it has none."""
    if origin is None or origin.calibration is None:
        return {}
    return dict.fromkeys(np.unique(scores.fold).tolist(), origin.calibration)


def _measure(
    source: ScoreSource,
    scores: ScoreTable,
    origin: Provenance | None,
    decisions: Sequence[Decisions],
    curves: Mapping[int, Calibration],
    groups: PeopleGroups | None,
    **about: Any,
) -> Measurement:
    """Compute the figures of decided pairs.

    Args:
        source: Of the scores.
        scores: The pairs.
        origin: What made the scores, if that is known.
        decisions: How they are decided, and at the verifier's other operating points.
        curves: The calibration of each fold; without any, one is fitted here.
        groups: The user's groups.
        **about: What else the summary says.
    """
    genuine, score = scores.genuine, scores.score
    probability, ece = None, None
    if curves:
        probability = np.empty(len(scores))
        for number, curve in curves.items():
            members = scores.fold == number
            probability[members] = curve.probability(score[members])
    # A probability is judged on such strangers as its curves were fitted to.
    judged_alike = all(curve.lookalikes for curve in curves.values())
    alike = scores.alike.pairs if scores.alike and judged_alike else None
    if probability is not None:
        ece = expected_calibration_error(genuine, probability, alike)
    decided, verify_point = decisions[0], origin.operating_point if origin else None
    summary = summarise(
        genuine,
        score,
        decisions,
        scores.alike,
        scores.people,
        scores.relatives,
        ece=ece,
        verify_point=verify_point,
    )
    if probability is None:
        with suppress(NotEnough):
            probability = cross_fitted_probability(genuine, score, scores.fold, alike)
    default = next((one for one in decisions if one.point.name == verify_point), decided)
    summary = replace(
        summary,
        pairs=origin.pairs if origin else Path(source.path).name,
        scored_by=origin.model if origin else None,
        alignment=origin.alignment if origin else None,
        groups=group_errors(groups, scores, default.accepted) if groups else {},
        **about,
    )
    warnings = []
    if summary.auc.interval[1] < CHANCE:
        warnings.append(
            f"{source.path}: genuine pairs score lower than strangers (AUC "
            f"{summary.auc.value:.3g}), as distances do; higher must mean more alike: give 1 - "
            "distance, or the distance times -1"
        )
    return Measurement(
        name=source.name,
        source=source.path,
        warnings=warnings,
        scores=scores,
        summary=summary,
        decided=decided,
        by_default=default,
        probability=probability,
        refitted=not curves,
        lookalike=alike,
        provenance=origin,
    )
