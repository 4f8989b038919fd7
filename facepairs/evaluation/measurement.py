"""`Measurement`: the scores of one verifier and their figures, wherever the scores come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from facepairs.bundles.calibration import Calibration
from facepairs.bundles.rates import (
    BALANCED,
    FILE,
    GIVEN,
    HasThresholds,
    OperatingPoint,
    operating_point,
)
from facepairs.data.groups import PeopleGroups
from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.by_group import cluster_errors, group_errors
from facepairs.evaluation.decisions import (
    Decisions,
    ThresholdFrom,
    calibrated_probability,
    decide,
    decide_at,
    decisions_of_file,
)
from facepairs.evaluation.fitting import cross_fitted_probability, lookalikes_of
from facepairs.evaluation.metrics.arrays import Bools, Floats, Ints
from facepairs.evaluation.pair_scores import ScoredPairs
from facepairs.evaluation.protocols import PairSelection, category_of
from facepairs.evaluation.scores import ScoreTable, read_scores
from facepairs.evaluation.sources.find import RESULT, SCORES, ScoreSource
from facepairs.evaluation.sources.known_people import known_in_file
from facepairs.evaluation.sources.origin import (
    ModelFacts,
    Origin,
    origin_of,
    read_alignment,
    read_result,
)
from facepairs.evaluation.summary import Summary, summarise_decisions
from facepairs.support.extras import require_extras
from facepairs.verification.loading import Model
from facepairs.verification.provenance import Provenance, provenance_of, read_provenance

if TYPE_CHECKING:
    import pandas

OWN_PROBABILITY = "the verifier's own"
REFITTED = "fitted here, for each part of the pairs on the other parts"


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurement:
    """Scored pairs of one verifier, their decisions and figures.

    Attributes:
        name: Short name, for tables.
        source: Path of the verifier or of the scores.
        scores: The N pairs.
        summary: The figures.
        accepted: bool[N], the decisions of the summary.
        threshold: float64[N], what each pair was decided with.
        probability: float64[N] at equal priors, or None.
        probability_source: Where probabilities come from, or why there are none.
        lookalike: bool[N], strangers that make up half of those whose probability is judged; None
            for strangers at random.
        origin: How the verifier was made.
        provenance: What made the scores; None for scores of unknown origin.
        facts: What the verifier costs and where it comes from; None where it was not asked for.
        warnings: What limits the figures, one line each.
    """

    name: str
    source: str
    scores: ScoreTable
    summary: Summary
    accepted: Bools
    threshold: Floats
    probability: Floats | None
    probability_source: str
    lookalike: Bools | None = None
    origin: Origin = field(default_factory=Origin)
    provenance: Provenance | None = None
    facts: ModelFacts | None = None
    warnings: Sequence[str] = ()

    def to_frame(self) -> "pandas.DataFrame":
        """Return a row for each pair: left, right, genuine, score, threshold, accepted, …

        Raises:
            MissingExtra: The extra `measure` is not installed.
        """
        require_extras(["measure"], "Measurement.to_frame")
        import pandas

        scores = self.scores
        names = {"left": scores.left, "right": scores.right} if scores.has_names else {}
        columns = {"genuine": scores.genuine, "fold": scores.fold, "score": scores.score}
        decisions = {"threshold": self.threshold, "accepted": self.accepted}
        return pandas.DataFrame({**names, **columns, **decisions, "probability": self.probability})

    def take(self, order: Ints) -> "Measurement":
        """Return the same measurement with its pairs in another order, int64[N]."""
        return replace(
            self,
            scores=self.scores.take(order),
            accepted=self.accepted[order],
            threshold=self.threshold[order],
            probability=None if self.probability is None else self.probability[order],
            lookalike=None if self.lookalike is None else self.lookalike[order],
        )


def measure_scores(
    source: ScoreSource, threshold: float | None = None, groups: PeopleGroups | None = None
) -> Measurement:
    """Measure a scores file, also one of another system.

    Pairs are decided by `threshold`, or else as the file says (its column `same`), or else with the
    threshold of its model, which lies beside it; without all of them, with a threshold that is
    chosen for each part of the pairs on the other parts.

    Args:
        source: The file.
        threshold: A score.
        groups: Groups of people, to measure the errors within them.

    Raises:
        BadData: The file cannot be read, or has pairs of a protocol with people of its model.
        NotEnough: A class is missing or too rare.
    """
    path = Path(source.path)
    scores, known_by = read_scores(path), read_provenance(path)
    known, warnings = known_in_file(scores, known_by, path)
    warnings += [f"{path}: {line}" for line in scores.limits()]
    decisions, verify_point = _decisions_of_file(scores, known_by, threshold)
    measured = _measure(
        source,
        scores,
        decisions,
        known_by.calibration if known_by else None,
        verify_point,
        by_cluster=known_by is None or known_by.embedder_sha256 is not None,
        groups=groups,
        pairs=known_by.pairs if known_by else source.path,
        scored_by=known_by.model if known_by else None,
        pairs_with_known_people=known,
        alignment=known_by.alignment if known_by else None,
    )
    return replace(measured, provenance=known_by, warnings=[*warnings, *measured.warnings])


def _decisions_of_file(
    scores: ScoreTable, known_by: Provenance | None, threshold: float | None
) -> tuple[list[Decisions], str | None]:
    """Return what decides the pairs of a file, and the point with which `verify` decides."""
    genuine, score, fold = scores.genuine, scores.score, scores.fold
    name, cut = (known_by.operating_point, known_by.threshold) if known_by else (None, None)
    if threshold is not None:
        return [decide(genuine, score, threshold, fold)], None
    if scores.decision is not None:
        return [decisions_of_file(score, scores.decision, fold, cut)], FILE
    balanced = known_by.balanced_threshold if known_by else None
    decided = decide(genuine, score, balanced, fold, ThresholdFrom.SIDECAR)
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

    Raises:
        NotEnough: A class is missing or too rare.
    """
    scores = scored.table()
    from_model = None if selection.protocol == "view2" else model
    own = from_model.threshold if from_model else None
    decided = decide(scores.genuine, scores.score, own, scores.fold, ThresholdFrom.VERIFIER)
    point = operating_point(model)
    measured = _measure(
        source,
        scores,
        [decided, *(_promises(from_model, scores.score) if from_model else [])],
        from_model.calibration if from_model else None,
        point.name if own is not None else None,
        groups=groups,
        pairs=selection.source,
        scored_by=source.path,
        pairs_with_known_people=known_pairs,
        photos_left_out=selection.photos_left_out,
        pairs_left_out=selection.pairs_left_out,
        alignment=model.alignment,
        category=category_of(model, selection),
        model=model.model,
        bundle=source.path,
    )
    made_by = provenance_of(
        model, source.path, selection.source, point, protocol=selection.protocol or None
    )
    if from_model is None:  # nothing of its own decides on View 2
        made_by = msgspec.structs.replace(
            made_by, threshold=None, balanced_threshold=None, calibration=None
        )
    return replace(measured, origin=origin_of(model), provenance=made_by)


def _promises(model: HasThresholds, score: Floats) -> list[Decisions]:
    """Return the decisions at a model's promises, from lenient to strict."""
    points = [point for point in model.thresholds if point.threshold is not None]
    return [decide_at(score, point) for point in sorted(points, key=lambda one: one.threshold or 0)]


def measure_view2(source: ScoreSource, groups: PeopleGroups | None = None) -> Measurement:
    """Measure a method's folder of `crossval`: each fold at the threshold of its own network.

    All figures are computed again from the scores. Thresholds, calibrations and records of the
    training come from `result.json`.

    Raises:
        BadData: The files cannot be read or do not fit together.
        NotEnough: A class is missing in a fold.
    """
    folder = Path(source.path)
    scores, origin = read_scores(folder / SCORES), read_result(folder / RESULT)
    thresholds = {fold.fold: fold.threshold for fold in origin.folds}
    calibrations = {fold.fold: fold.calibration for fold in origin.folds}
    alignment, category = read_alignment(folder)
    try:
        measured = _measure(
            source,
            scores,
            [decide(scores.genuine, scores.score, thresholds, scores.fold)],
            calibrations,
            by_cluster=False,
            groups=groups,
            pairs=str(folder / SCORES),
            scored_by=str(folder),
            alignment=alignment,
            category=category,
        )
    except BadData as error:
        raise BadData(f"{folder}: {error}; run crossval again") from None
    done, total, warnings = len(measured.summary.folds), origin.folds_in_all, measured.warnings
    if total not in (None, done):
        missing = f"{folder}: {done} of {total} folds are done; View 2's figures need all"
        warnings = [missing, *warnings]
    return replace(
        measured,
        origin=origin,
        provenance=read_provenance(folder / SCORES),
        facts=ModelFacts(training_data="LFW: the people of the other sets"),
        warnings=warnings,
    )


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
    genuine, score, fold, cluster = scores.genuine, scores.score, scores.fold, scores.cluster
    probability = calibrated_probability(score, fold, calibration)
    alike = lookalikes_of(calibration, genuine, cluster)
    summary = summarise_decisions(
        genuine,
        score,
        decisions,
        probability,
        alike,
        verify_point=verify_point,
        cluster=cluster,
        people=scores.people,
    )
    probability_source = OWN_PROBABILITY
    if probability is None:
        try:
            probability = cross_fitted_probability(genuine, score, fold, alike)
            probability_source = REFITTED
        except NotEnough as error:
            probability_source = f"no probability: {error}"
    decided = decisions[0]
    default = next((one for one in decisions if one.point.name == verify_point), decided)
    clusters = cluster_errors(scores, default.accepted) if by_cluster else {}
    rows, warnings = group_errors(groups, scores, default.accepted) if groups else ({}, [])
    return Measurement(
        name=source.name,
        source=source.path,
        scores=scores,
        summary=replace(summary, clusters=clusters, groups=rows, **about),
        accepted=decided.accepted,
        threshold=decided.by_pair,
        probability=probability,
        probability_source=probability_source,
        lookalike=alike,
        warnings=warnings,
    )
