"""`Measurement`: the scores of one verifier and their figures, wherever the scores come from."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np

from facepairs.bundles.error_profile import Calibration, ErrorProfile, operating_point
from facepairs.bundles.model import Model
from facepairs.bundles.rates import BALANCED, Errors, OperatingPoint
from facepairs.data.groups import PeopleGroups
from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.error_rates import (
    Decisions,
    ThresholdFrom,
    decide,
    decide_at,
    measure_acquisition,
    with_generalised_rates,
)
from facepairs.evaluation.factors import Column, measure_factors
from facepairs.evaluation.fitting import cross_fitted_probability
from facepairs.evaluation.group_errors import measure_groups
from facepairs.evaluation.identification import IdentificationFigures
from facepairs.evaluation.metrics.arrays import Bools, Floats
from facepairs.evaluation.metrics.estimates import CHANCE
from facepairs.evaluation.metrics.reliability import (
    expected_calibration_error,
    likelihood_ratio_cost,
    minimum_cost,
)
from facepairs.evaluation.protocols import FOLDED
from facepairs.evaluation.scores import ScoredPairs, read_scores
from facepairs.evaluation.sources import (
    RESULT,
    SCORES,
    CrossvalResult,
    known_in_file,
    read_result,
    short_name,
)
from facepairs.evaluation.summary import About, Summary, summarise
from facepairs.photos.face_sample import FaceSample
from facepairs.support.words import counted
from facepairs.verification.provenance import FaceNumbers, provenance_of, with_photos

Curves = Mapping[int, Calibration]
"""The calibration of each fold; empty where a verifier has none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurement:
    """Scored pairs of one verifier, their decisions and figures.

    Attributes:
        pairs: The N pairs, and what made their scores.
        summary: The figures.
        decided: The decisions of the accuracy.
        by_default: Those of `verify`.
        probability: float64[N] at equal priors; None where pairs are too few to fit one.
        refitted: Whether probabilities were fitted here, for each part of the pairs on the other
            parts; otherwise they are the verifier's own.
        lookalike: bool[N], strangers that make up half of those whose probability is judged; None
            for strangers at random.
        warnings: What limits the figures, one line each.
        faces: Which face of a photo was compared where it is not the most prominent one, by the
            photo's name: its number from 1.
    """

    pairs: ScoredPairs
    summary: Summary
    decided: Decisions
    by_default: Decisions
    probability: Floats | None
    refitted: bool
    lookalike: Bools | None
    warnings: Sequence[str]
    faces: Mapping[str, int] = field(default_factory=dict)


def measure_scores(
    path: Path,
    name: str = "",
    groups: PeopleGroups | None = None,
    families: PeopleGroups | None = None,
    factors: Sequence[Column] | None = None,
    points: Sequence[OperatingPoint] | None = None,
) -> Measurement:
    """Measure a scores file, also one of another system, or the folder of a `crossval` method.

    Pairs of a file are decided with the thresholds of its model, which lie beside it; without them,
    with a threshold that is chosen for each part of the pairs on the other parts. Each fold of a
    `crossval` method is decided at the threshold of its own network, which `result.json` has. All
    figures are computed again from the scores.

    Args:
        path: The file, or the folder.
        name: A short name, for tables; "" for the end of the path.
        groups: Groups of people, to measure the errors within them.
        families: Families of people, for intervals that know who is related.
        factors: What is known of photos or pairs, to measure the errors by it, and by what the file
            knows of faces; None for nothing.
        points: Thresholds to measure at beside the balanced one; None for that of the file's model.

    Raises:
        BadConfig: Factors are missing.
        BadData: A file cannot be read, files do not fit together, or pairs of a protocol show
            people of their model.
        NotEnough: A class is missing or too rare.
    """
    is_method = path.is_dir()
    file = path / SCORES if is_method else path
    pairs = replace(read_scores(file), families=families)
    origin = pairs.origin
    known, warnings = known_in_file(pairs, file)
    if pairs.unscored:
        left_out = counted(pairs.unscored, "pair")
        warnings.append(f"{file}: left out: {left_out} without a score or a label")
    point = origin.operating_point if origin and not is_method else None
    if is_method:
        result = read_result(path / RESULT)
        decisions, curves = _decide_by_fold(pairs, result, path)
        done, total = len(set(pairs.fold.tolist())), result.folds_in_all
        if total not in (None, done):
            warnings.append(f"{path}: {done} of {total} folds are done; View 2 needs all")
    else:
        if points is None:
            points = [point] if point and point.name != BALANCED else []
        decisions, curves = _decide(pairs, origin.calibration if origin else None, points)
    about = About(
        name=name or short_name(path),
        source=str(path),
        pairs=origin.pairs if origin else path.name,
        scored_by=origin.model if origin else None,
        network_sha256=origin.embedder_sha256 if origin else None,
        manifest_sha256=origin.manifest_sha256 if origin else None,
        alignment=origin.alignment if origin else None,
        pairs_with_known_people=known,
    )
    return _measure(pairs, decisions, point, curves, about, groups, factors, warnings)


def measure_model(
    model: Model,
    pairs: ScoredPairs,
    about: About,
    *,
    protocol: str,
    groups: PeopleGroups | None = None,
    factors: Sequence[Column] | None = None,
    samples: Mapping[str, FaceSample],
    of_faces: dict[str, FaceNumbers] | None = None,
    identification: IdentificationFigures | None = None,
    faces: Mapping[str, int],
    warnings: Sequence[str],
) -> Measurement:
    """Measure the scores that a bundle or an external embedder gave to pairs of photos.

    Args:
        model: Its threshold and calibration are used where it has them, but not where pairs
            have folds; otherwise parts of the pairs set them for the others.
        pairs: The pairs and their scores.
        about: What is measured, and on what.
        protocol: The protocol of the pairs, "" for none.
        groups: Groups of people, to measure the errors within them.
        factors: What is known of photos or pairs, to measure the errors by it.
        samples: The faces of all photos of the pairs, by the photos' names.
        of_faces: What is known of the faces, likewise.
        identification: How well people are identified.
        faces: As `Measurement` has them.
        warnings: What limits the figures.

    Raises:
        NotEnough: A class is missing or too rare.
    """
    own = ErrorProfile() if protocol in FOLDED else model.profile  # folds decide there
    point = None if protocol in FOLDED else operating_point(own)
    points = [row for row in own.thresholds if row.threshold is not None]
    points.sort(key=lambda one: one.threshold or 0)
    origin = provenance_of(model, about.pairs, point, protocol=protocol or None)
    origin = msgspec.structs.replace(with_photos(origin, samples), faces=of_faces)
    pairs = replace(pairs, origin=origin)
    decisions, curves = _decide(pairs, own.calibration, points)
    return _measure(
        pairs, decisions, point, curves, about, groups, factors, warnings, identification, faces
    )


def _decide_by_fold(
    pairs: ScoredPairs, result: CrossvalResult, folder: Path
) -> tuple[list[Decisions], Curves]:
    """Decide pairs at the balanced thresholds of the folds' own networks."""
    curves = {fold.fold: fold.calibration for fold in result.folds}
    folds = pairs.fold.astype(np.int64)
    if missing := sorted(set(folds.tolist()) - set(curves)):
        raise BadData(f"{folder}: fold {missing[0]} has no threshold; run crossval again")
    by_pair = np.array([curves[number].threshold for number in folds.tolist()])
    point = OperatingPoint(None, BALANCED)
    return [decide_at(pairs.score, point, ThresholdFrom.OWN_NETWORKS, folds, by_pair)], curves


def _decide(
    pairs: ScoredPairs, curve: Calibration | None, points: Sequence[OperatingPoint]
) -> tuple[list[Decisions], Curves]:
    """Decide pairs at the balanced threshold of a model, if any, then at its points."""
    balanced = None if curve is None else curve.threshold
    first = decide(pairs.genuine, pairs.score, balanced, pairs.fold)
    folds = np.unique(pairs.fold).tolist()
    curves = {} if curve is None else dict.fromkeys(folds, curve)
    return [first, *(decide_at(pairs.score, point) for point in points)], curves


def _measure(
    pairs: ScoredPairs,
    decisions: Sequence[Decisions],
    verify_point: OperatingPoint | None,
    curves: Curves,
    about: About,
    groups: PeopleGroups | None,
    factors: Sequence[Column] | None,
    warnings: Sequence[str],
    identification: IdentificationFigures | None = None,
    faces: Mapping[str, int] | None = None,
) -> Measurement:
    """Compute the figures of decided pairs; the first decisions are those of the accuracy."""
    genuine, score = pairs.genuine, pairs.score
    name = verify_point.name if verify_point and verify_point.threshold is not None else None
    default = next((made for made in decisions if made.point.name == name), decisions[0])
    # A probability is judged on such strangers as its curves were fitted to.
    judged_alike = all(curve.lookalikes for curve in curves.values())
    alike = pairs.alike.pairs if pairs.alike and judged_alike else None
    probability = ece = cllr = None
    if curves:
        probability, log_ratio = np.empty((2, len(pairs)))
        for number, curve in curves.items():
            members = pairs.fold == number
            probability[members] = curve.probability(score[members])
            log_ratio[members] = curve.log_likelihood_ratio(score[members])
        ece = expected_calibration_error(genuine, probability, alike)
        cllr = likelihood_ratio_cost(genuine, log_ratio, alike)
    within, differences = dict[str, Errors](), None
    if groups is not None:
        within, differences = measure_groups(groups, pairs, default.accepted)
    summary = summarise(genuine, score, decisions, pairs.sample, pairs.alike)
    summary = msgspec.structs.replace(
        summary,
        about=about,
        verify_point=name,
        ece=ece,
        groups=within,
        identification=identification,
        acquisition=measure_acquisition(pairs),
        cllr=cllr,
        min_cllr=minimum_cost(genuine, score, alike),
        group_differences=differences,
        factors=[] if factors is None else measure_factors(factors, pairs, default.accepted),
        operating_points=with_generalised_rates(summary.operating_points, decisions, pairs),
    )
    if not curves:
        with suppress(NotEnough):
            probability = cross_fitted_probability(genuine, score, pairs.fold, alike)
    if summary.auc.interval[1] < CHANCE:
        advice = (
            f"{about.source}: genuine pairs score lower than strangers (AUC "
            f"{summary.auc.value:.3g}), as distances do; higher must mean more alike: give 1 - "
            "distance, or the distance times -1"
        )
        warnings = [*warnings, advice]
    return Measurement(
        pairs=pairs,
        summary=summary,
        decided=decisions[0],
        by_default=default,
        probability=probability,
        refitted=not curves,
        lookalike=alike,
        warnings=warnings,
        faces=faces or {},
    )
