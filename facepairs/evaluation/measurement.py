"""`Measurement`: the scores of one verifier and their figures, wherever the scores come from."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from facepairs.bundles.measured import Calibration, operating_point
from facepairs.bundles.rates import BALANCED, GIVEN, OperatingPoint
from facepairs.data.groups import PeopleGroups
from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.decisions import (
    Decisions,
    ThresholdFrom,
    decide,
    decide_at,
)
from facepairs.evaluation.error_rates import cluster_errors, group_errors
from facepairs.evaluation.fitting import cross_fitted_probability, lookalikes_of
from facepairs.evaluation.identification import IdentificationFigures
from facepairs.evaluation.metrics.arrays import Bools, Floats
from facepairs.evaluation.pair_scores import MOST_PROMINENT, ScoredPairs
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
from facepairs.verification.fitting_faces import FittingFaces
from facepairs.verification.loading import Model
from facepairs.verification.provenance import Provenance, provenance_of, read_provenance


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


def measure_scores(source: ScoreSource, groups: PeopleGroups | None = None) -> Measurement:
    """Measure a scores file, also one of another system, or the folder of a `crossval` method.

    Pairs of a file are decided with the thresholds of its model, which lie beside it; without them,
    with a threshold that is chosen for each part of the pairs on the other parts. Each fold of a
    `crossval` method is decided at the threshold of its own network, which `result.json` has. All
    figures are computed again from the scores.

    Args:
        source: The file, or the folder.
        groups: Groups of people, to measure the errors within them.

    Raises:
        BadData: A file cannot be read, files do not fit together, or pairs of a protocol show
            people of their model.
        NotEnough: A class is missing or too rare.
    """
    folder = Path(source.path) if source.kind == "view2" else None
    path = folder / SCORES if folder else Path(source.path)
    scores, known_by = read_scores(path), read_provenance(path)
    known, warnings = known_in_file(scores, known_by, path)
    if scores.unscored:
        pairs = counted(scores.unscored, "pair")
        warnings.append(f"{path}: left out: {pairs} without a score or a label")
    calibration: Calibration | dict[int, Calibration] | None
    if folder:
        result = read_result(folder / RESULT)
        decisions, verify_point = [_decide_by_fold(scores, result, folder)], None
        calibration = {fold.fold: fold.calibration for fold in result.folds}
        done, total = len(set(scores.fold.tolist())), result.folds_in_all
        if total not in (None, done):
            warnings.append(f"{folder}: {done} of {total} folds are done; View 2 needs all")
    else:
        decisions, verify_point = _decisions_of_file(scores, known_by)
        calibration = known_by.calibration if known_by else None
    measured = _measure(
        source,
        scores,
        decisions,
        calibration,
        verify_point,
        by_cluster=known_by is None or known_by.embedder_sha256 is not None,
        groups=groups,
        pairs=known_by.pairs if known_by else path.name,
        scored_by=known_by.model if known_by else None,
        pairs_with_known_people=known,
        alignment=known_by.alignment if known_by else None,
    )
    return replace(measured, provenance=known_by, warnings=warnings)


def _decide_by_fold(scores: ScoreTable, result: CrossvalResult, folder: Path) -> Decisions:
    """Return the decisions at the thresholds of the folds' own networks."""
    thresholds = {fold.fold: fold.threshold for fold in result.folds}
    folds = scores.fold.astype(np.int64)
    if missing := sorted(set(folds.tolist()) - set(thresholds)):
        raise BadData(f"{folder}: fold {missing[0]} has scores, no threshold; run crossval again")
    by_pair = np.array([thresholds[number] for number in folds.tolist()])
    point = OperatingPoint(None, BALANCED)
    return decide_at(scores.score, point, ThresholdFrom.OWN_NETWORKS, folds, by_pair)


def _decisions_of_file(
    scores: ScoreTable, known_by: Provenance | None
) -> tuple[list[Decisions], str | None]:
    """Return what decides the pairs of a file, and the point with which `verify` decides."""
    genuine, score, fold = scores.genuine, scores.score, scores.fold
    name, cut = (known_by.operating_point, known_by.threshold) if known_by else (None, None)
    balanced = known_by.balanced_threshold if known_by else None
    decided = decide(genuine, score, balanced, fold)
    if known_by is None or cut is None or name == BALANCED:
        return [decided], name if name == BALANCED else None
    point = OperatingPoint(cut, name or GIVEN, known_by.max_fmr)
    return [decided, decide_at(score, point)], point.name


def measure_model(
    source: ScoreSource,
    model: Model,
    selection: PairSelection,
    scored: ScoredPairs,
    known_pairs: int | None,
    groups: PeopleGroups | None = None,
    identification: IdentificationFigures | None = None,
    faces: FittingFaces = MOST_PROMINENT,
) -> Measurement:
    """Measure the scores that a bundle or an external embedder gave to pairs of photos.

    Args:
        source: Name and path of the model.
        model: Its threshold and calibration are used where it has them, but not on View 2;
            otherwise parts of the pairs set them for the others.
        selection: The pairs.
        scored: Their scores.
        known_pairs: How many of them show people that the model knows; None where not known.
        groups: Groups of people, to measure the errors within them.
        identification: How well it identifies people, where that was measured.
        faces: Which face of each photo was used.

    Raises:
        NotEnough: A class is missing or too rare.
    """
    scores = scored.table()
    from_model = None if selection.protocol == "view2" else model
    own = from_model.threshold if from_model else None
    decisions = [decide(scores.genuine, scores.score, own, scores.fold)]
    promises = [one for one in model.thresholds if from_model and one.threshold is not None]
    promises.sort(key=lambda one: one.threshold or 0)
    decisions += [decide_at(scores.score, promise) for promise in promises]
    point = operating_point(model)
    measured = _measure(
        source,
        scores,
        decisions,
        from_model.calibration if from_model else None,
        point.name if own is not None else None,
        groups=groups,
        pairs=selection.source,
        scored_by=source.path,
        pairs_with_known_people=known_pairs,
        people_left_out=selection.people_left_out,
        photos_left_out=selection.photos_left_out,
        pairs_left_out=selection.pairs_left_out,
        other_faces=len(faces.chosen),
        alignment=model.alignment,
        model=model.model,
        identification=identification,
    )
    made_by = provenance_of(
        model, source.path, selection.source, point, protocol=selection.protocol or None
    )
    if from_model is None:  # nothing of its own decides on View 2
        made_by = msgspec.structs.replace(
            made_by, threshold=None, balanced_threshold=None, calibration=None
        )
    return replace(measured, provenance=made_by)


def _measure(
    source: ScoreSource,
    scores: ScoreTable,
    decisions: Sequence[Decisions],
    calibration: Calibration | Mapping[int, Calibration] | None = None,
    verify_point: str | None = None,
    *,
    by_cluster: bool = True,
    groups: PeopleGroups | None = None,
    **about: Any,
) -> Measurement:
    """Compute the figures of decided pairs; without a calibration, one is fitted here.

    Args:
        source: Of the scores.
        scores: The pairs.
        decisions: How they are decided, and at the verifier's other operating points.
        calibration: Of the verifier, if it has one.
        verify_point: Name of the operating point with which `verify` decides.
        by_cluster: Whether one network clustered all photos, so that clusters can be compared.
        groups: The user's groups.
        **about: What else the summary says.
    """
    genuine, score, cluster = scores.genuine, scores.score, scores.cluster
    probability = _calibrated(scores, calibration)
    alike = lookalikes_of(calibration, genuine, cluster)
    summary = summarise(
        genuine,
        score,
        decisions,
        probability,
        alike,
        verify_point=verify_point,
        cluster=cluster,
        people=scores.people,
    )
    if probability is None:
        with suppress(NotEnough):
            probability = cross_fitted_probability(genuine, score, scores.fold, alike)
    decided = decisions[0]
    default = next((one for one in decisions if one.point.name == verify_point), decided)
    clusters = cluster_errors(
        cluster if by_cluster else None, genuine, default.accepted, scores.people
    )
    rows = group_errors(groups, scores, default.accepted) if groups else {}
    return Measurement(
        name=source.name,
        source=source.path,
        scores=scores,
        summary=replace(summary, clusters=clusters, groups=rows, **about),
        decided=decided,
        by_default=default,
        probability=probability,
        refitted=calibration is None,
        lookalike=alike,
    )


def _calibrated(
    scores: ScoreTable, calibration: Calibration | Mapping[int, Calibration] | None
) -> Floats | None:
    """Return the probability of each pair, float64[N]; folds may have their own calibration."""
    if not isinstance(calibration, Mapping):
        return None if calibration is None else calibration.probability(scores.score)
    probability = np.empty(len(scores))
    for number, curve in calibration.items():
        members = scores.fold == number
        probability[members] = curve.probability(scores.score[members])
    return probability
