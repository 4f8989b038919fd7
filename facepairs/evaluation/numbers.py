"""All that a report shows, as one plain dict: the pages and plots draw it and count nothing."""

import datetime
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import facepairs
from facepairs.errors import FacepairsError
from facepairs.evaluation.calibration import (
    expected_calibration_error,
    reliability_curve,
    thresholds_for,
)
from facepairs.evaluation.curves import drawn_roc, score_histogram
from facepairs.evaluation.evaluate import Evaluation
from facepairs.evaluation.measured import Measured
from facepairs.evaluation.metrics import Floats, accuracy, fmr_fnmr
from facepairs.evaluation.people import errors_by_person, person_of
from facepairs.evaluation.photos import Photos
from facepairs.evaluation.protocols import HELDOUT_SEED
from facepairs.evaluation.published import BASELINES, PUBLISHED
from facepairs.evaluation.quality import errors_by_quality, photo_qualities, worse_of_pairs
from facepairs.evaluation.summary import FARS
from facepairs.images.photo import Framing
from facepairs.support.machine import describe

SCHEMA = 1
WORST = 12
LFW_FOLDS, LFW_FOLD_PAIRS = 10, 600

Tick = Callable[[int, int], None]


def numbers_of(
    evaluation: Evaluation, command: str, progress: Callable[[str], Tick] | None = None
) -> dict[str, Any]:
    """Give everything a report shows; ready for JSON.

    Keys: `schema`, `created` (UTC), `command`, `version`, `machine`, `seeds`, `warnings`, `data`,
    `models` (one dict a verifier), `comparison` (None for one), `published` (label and figures, and
    whether these pairs are LFW's, so that they may be drawn beside them).
    """
    tick = progress or (lambda label: lambda done, total: None)
    first = evaluation.measured[0]
    photos = Photos.below(evaluation.data, first.scores)
    warnings = list(evaluation.warnings)
    models = []
    seen: dict[Framing, dict[str, Floats]] = {}  # verifiers of one framing see the same photos
    for one in evaluation.measured:
        worse, why = _qualities(one, photos, seen, tick)
        models.append(_model(one, worse, why))
    lfw = _is_lfw(evaluation)
    return {
        "schema": SCHEMA,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "version": facepairs.__version__,
        "machine": describe(),
        "seeds": _seeds(evaluation),
        "warnings": warnings,
        "data": _data(evaluation, photos),
        "models": models,
        "comparison": evaluation.comparison,
        "published": {
            "drawn": lfw,
            "rows": [row._asdict() for row in PUBLISHED],
            "baselines": [row._asdict() for row in BASELINES],
        },
    }


def _model(one: Measured, worse: Floats | None, why: str) -> dict[str, Any]:
    scores = one.scores
    curve = drawn_roc(scores.genuine, scores.score)
    histogram = score_histogram(scores.genuine, scores.score)
    named = bool(scores.left[0])
    return {
        "name": one.name,
        "source": one.source,
        "summary": one.summary,
        "thresholds": _thresholds(one),
        "curve": {
            "fmr": curve.fmr.tolist(),
            "tmr": curve.tmr.tolist(),
            "threshold": [None, *curve.thresholds[1:].tolist()],
        },
        "histogram": {key: value.tolist() for key, value in histogram._asdict().items()},
        "reliability": _reliability(one),
        "folds": _folds(one),
        "quality": None
        if worse is None
        else errors_by_quality(scores.genuine, one.accepted, worse),
        "quality_reason": why,
        "people": errors_by_person(scores.left, scores.right, scores.genuine, one.accepted)
        if named
        else None,
        "worst": _worst(one) if named else None,
        "about": one.about,
        "history": one.history,
        "view2": one.view2,
    }


def _qualities(
    one: Measured,
    photos: Photos | None,
    seen: dict[Framing, dict[str, Floats]],
    tick: Callable[[str], Tick],
) -> tuple[Floats | None, str]:
    """Give the qualities of each pair's worse photo, or None and why there are none."""
    if photos is None:
        return None, "needs the folder of photos: give DATA, and scores with names of photos"
    try:
        if one.framing not in seen:
            label = "looking at photos"
            seen[one.framing] = photo_qualities(photos.paths(), one.framing, tick(label))
    except FacepairsError as error:
        return None, f"not measured: {error}"
    return worse_of_pairs(one.scores.left, one.scores.right, seen[one.framing]), ""


def _thresholds(one: Measured) -> list[dict[str, Any]]:
    """Give rows of thresholds with what they do on these pairs, and who chose them."""
    genuine, score = one.scores.genuine, one.scores.score
    used = np.unique(one.threshold)
    rows = [
        {
            "name": "in force",
            "set_by": one.summary["threshold_source"],
            "threshold": float(used[0]),
            "threshold_high": float(used[-1]),
            **_rates(one.accepted.astype(np.float64), 1.0, genuine),
        }
    ]
    for row in one.promised:
        if row.get("threshold") is not None and isinstance(row.get("fmr"), float | int):
            threshold = float(row["threshold"])
            rows.append(
                {
                    "name": f"for FMR {row['fmr']:g}",
                    "set_by": "the bundle, on people set aside in its training",
                    "threshold": threshold,
                    "threshold_high": threshold,
                    **_rates(score, threshold, genuine),
                }
            )
    for row in thresholds_for(genuine, score, FARS):
        threshold = row["threshold"]
        told = {"reason": row["reason"]} if threshold is None else _rates(score, threshold, genuine)
        rows.append(
            {
                "name": f"FMR {row['fmr']:g} here",
                "set_by": "these very pairs: a point of the curve, no promise",
                "threshold": threshold,
                "threshold_high": threshold,
                **told,
            }
        )
    return rows


def _rates(score: Floats, threshold: float, genuine: Any) -> dict[str, Any]:
    rates = fmr_fnmr(genuine, score, threshold)
    return {
        "false_accepts": rates.false_accepts,
        "false_rejects": rates.false_rejects,
        "fmr": rates.fmr,
        "fmr_interval": list(rates.fmr_interval),
        "fnmr": rates.fnmr,
        "fnmr_interval": list(rates.fnmr_interval),
    }


def _reliability(one: Measured) -> dict[str, Any]:
    """Give the filled bins of the reliability diagram and their ECE, classes weighted equally."""
    if one.probability is None:
        return {"source": one.probability_source, "bins": None, "ece": None}
    genuine = one.scores.genuine
    curve = reliability_curve(genuine, one.probability, prior=0.5)
    bins = {key: value.tolist() for key, value in curve._asdict().items()}
    ece = expected_calibration_error(genuine, one.probability, prior=0.5)
    return {"source": one.probability_source, "bins": bins, "ece": ece}


def _folds(one: Measured) -> list[dict[str, Any]]:
    """Give each fold's errors at the threshold in force, where there are folds."""
    scores = one.scores
    numbers = np.unique(scores.fold).tolist()
    if len(numbers) < 2:
        return []
    rows = []
    for number in numbers:
        mine = scores.fold == number
        genuine, accepted = scores.genuine[mine], one.accepted[mine]
        rows.append(
            {
                "fold": number,
                "accuracy": accuracy(genuine, accepted.astype(np.float64), 1.0),
                "false_accepts": int((accepted & ~genuine).sum()),
                "false_rejects": int((~accepted & genuine).sum()),
                "pairs": int(mine.sum()),
                "threshold": float(one.threshold[mine][0]),
            }
        )
    return rows


def _worst(one: Measured) -> dict[str, list[dict[str, Any]]]:
    """Give the pairs decided most wrongly, farthest beyond their threshold first."""
    scores, margin = one.scores, one.scores.score - one.threshold
    found = {}
    for key, chosen, sign in (
        ("false_accepts", one.accepted & ~scores.genuine, -1),
        ("false_rejects", ~one.accepted & scores.genuine, 1),
    ):
        places = np.flatnonzero(chosen)
        order = places[np.argsort(sign * margin[places], kind="stable")][:WORST]
        found[key] = [
            {
                "left": scores.left[k],
                "right": scores.right[k],
                "score": float(scores.score[k]),
                "threshold": float(one.threshold[k]),
                "fold": int(scores.fold[k]),
                "probability": None if one.probability is None else float(one.probability[k]),
            }
            for k in order.tolist()
        ]
    return found


def _is_lfw(evaluation: Evaluation) -> bool:
    """Whether the pairs are a protocol's of LFW, or have the very shape of View 2."""
    task, first = evaluation.task, evaluation.measured[0]
    if task is not None and task.protocol in ("view1", "view2"):
        return True
    folds, counts = np.unique(first.scores.fold, return_counts=True)
    return len(folds) == LFW_FOLDS and bool((counts == LFW_FOLD_PAIRS).all())


def _seeds(evaluation: Evaluation) -> dict[str, Any]:
    seeds: dict[str, Any] = {}
    if evaluation.task is not None and evaluation.task.protocol == "heldout":
        seeds["pairs drawn"] = HELDOUT_SEED
    if evaluation.comparison is not None:
        seeds["bootstrap"] = evaluation.comparison["seed"]
    for one in evaluation.measured:
        rows: Sequence[Mapping[str, Any]] = one.about.get("folds", [one.about.get("training", {})])
        found = {row["seed"] for row in rows if "seed" in row}
        if found:
            seeds[f"training of {one.name}"] = ", ".join(map(str, sorted(found)))
    return seeds


def _data(evaluation: Evaluation, photos: Photos | None) -> dict[str, Any]:
    first = evaluation.measured[0]
    scores, task = first.scores, evaluation.task
    facts: dict[str, Any] = {
        "source": task.source if task else first.summary.get("pairs", first.source),
        "folder": str(evaluation.data) if evaluation.data else None,
        "pairs": len(scores),
        "genuine_pairs": int(scores.genuine.sum()),
        "impostor_pairs": int((~scores.genuine).sum()),
        "folds": len(np.unique(scores.fold)),
    }
    if scores.left[0]:
        names = sorted({*scores.left, *scores.right})
        images = np.unique([person_of(name) for name in names], return_counts=True)[1]
        facts |= {
            "photos": len(names),
            "people": len(images),
            "people_with_one_photo": int((images == 1).sum()),
            "most_photos_of_a_person": int(images.max()),
        }
    if photos is not None:
        facts["photos_missing"] = len(photos.missing)
    if task is not None:
        facts["folder_photos"] = len(task.index)
        facts["folder_people"] = len(task.index.people)
        facts["folder_fingerprint"] = task.index.fingerprint
    files = [one.source for one in evaluation.measured if Path(one.source).is_file()]
    facts["sha256"] = {file: _sha256(Path(file)) for file in files}
    return facts


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
