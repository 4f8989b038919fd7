"""The operating points of a verifier: from its bundle, or from what lies beside a scores file."""

from dataclasses import replace
from pathlib import Path

from facepairs.bundles.operating_point import BALANCED, HasThresholds, operating_point
from facepairs.evaluation.metrics.arrays import Floats
from facepairs.evaluation.metrics.decisions import (
    FROM_CALLER,
    Thresholds,
    choose_thresholds,
    decisions_of_file,
)
from facepairs.evaluation.metrics.operating_points import Decisions
from facepairs.evaluation.scores import ScoreTable
from facepairs.verification.provenance import Provenance


def points_of_model(model: HasThresholds, score: Floats) -> list[Decisions]:
    """Return the decisions at a model's promises, from lenient to strict.

    Args:
        model: A bundle or an external embedder.
        score: float64[N].
    """
    default = operating_point(model).name
    points = []
    for row in model.thresholds:
        if row.threshold is not None:
            name = f"fmr-{row.fmr:g}"
            among = " among look-alikes" if row.among == "look-alikes" else ""
            points.append(
                Decisions(
                    name=name,
                    label=f"FMR {100 * row.fmr:g} %{among} where it was set",
                    accepted=score >= row.threshold,
                    threshold=row.threshold,
                    max_fmr=row.fmr,
                    is_default=name == default,
                )
            )
    return sorted(points, key=lambda point: point.threshold or 0.0)


def thresholds_of_file(
    scores: ScoreTable, known_by: Provenance | None, path: Path, threshold: float | None
) -> Thresholds:
    """Return what decides the pairs of a scores file.

    Args:
        scores: The pairs.
        known_by: What made the scores, None where that is not known.
        path: The file, for messages.
        threshold: What the user wants, or None.
    """
    if threshold is None and scores.decision is not None:
        name = known_by.operating_point if known_by else None
        cut = known_by.threshold if known_by else None
        return decisions_of_file(scores.score, scores.decision, scores.fold, name or "", cut)
    source = FROM_CALLER
    if threshold is None and known_by is not None:
        threshold, source = known_by.balanced_threshold, f"the model's own, in {path.name}.json"
    chosen = choose_thresholds(scores.genuine, scores.score, threshold, scores.fold, source)
    is_default = known_by is not None and known_by.operating_point == chosen.name
    return replace(chosen, is_default=is_default)


def points_of_file(score: Floats, known_by: Provenance | None) -> list[Decisions]:
    """Return the point at which `verify` decides with the model of a file, where it is known."""
    if known_by is None or known_by.threshold is None or known_by.operating_point == BALANCED:
        return []
    return [
        Decisions(
            name=known_by.operating_point or "",
            label=f"FMR {100 * known_by.max_fmr:g} % where it was set"
            if known_by.max_fmr
            else known_by.operating_point or "",
            accepted=score >= known_by.threshold,
            threshold=known_by.threshold,
            max_fmr=known_by.max_fmr,
            is_default=True,
        )
    ]
