"""Figures of all finished folds of a cross-validation, by method."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.bundles.calibration import Calibration
from facepairs.evaluation.metrics.summary import FoldSummary, Summary, summarise
from facepairs.evaluation.scores import ScoreTable, write_scores
from facepairs.evaluation.serialize import write_json
from facepairs.training.run_folder.folder import CONFIG
from facepairs.training.view2.fold_record import SCORES, FinishedFold, fold_folder, read_fold
from facepairs.training.view2.methods import METHODS, category_of, check_data
from facepairs.verification.provenance import Provenance

RESULT = "result.json"
SCHEMA = 2
FROM_RECORD = ("people", "images", "identities_digest", "epochs", "minutes", "seed", "calibration")


@dataclass(frozen=True, kw_only=True)
class FoldFigures(FoldSummary):
    """Figures of a fold, and from its `FoldRecord` how its network was trained."""

    people: dict[str, int]
    images: dict[str, int]
    identities_digest: str
    epochs: int
    minutes: float
    seed: int
    calibration: Calibration


@dataclass(frozen=True, kw_only=True)
class MethodFigures(Summary):
    """Figures of a method over its finished folds; `minutes` is the time of all trainings."""

    method: str
    folds_done: int
    folds_in_all: int
    minutes: float
    machines: list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class CrossvalResults:
    """Figures of all methods; `data` are digests of the images and lists."""

    schema: int = SCHEMA
    protocol: str = "view2"
    data: dict[str, str]
    methods: dict[str, MethodFigures]


def check_all_data(out: Path, digests: Mapping[str, str]) -> None:
    """Raise BadRun if any method's folder was made from other images or lists."""
    for method in METHODS:
        if (out / method / CONFIG).exists():
            check_data(out / method, digests)


def write_results(out: Path, folds: int, digests: Mapping[str, str]) -> CrossvalResults:
    """Write and return the figures of every method that has a finished fold.

    Args:
        out: The run folder.
        folds: Number of folds of the protocol.
        digests: SHA-256 of the images' index and of the lists.
    """
    methods: dict[str, MethodFigures] = {}
    for method in METHODS:
        done = [
            fold
            for number in range(1, folds + 1)
            if (fold := read_fold(fold_folder(out / method, number), method, number))
        ]
        if done:
            methods[method] = _method_result(out / method, method, done, folds)
    results = CrossvalResults(data=dict(digests), methods=methods)
    write_json(out / RESULT, results)
    return results


def _method_result(
    folder: Path, method: str, done: list[FinishedFold], folds: int
) -> MethodFigures:
    """Write the scores and figures of a method, and return the figures."""
    scores = _join_scores(done)
    provenance = Provenance(model=method, pairs="LFW View 2", protocol="view2")
    write_scores(folder / SCORES, scores, provenance)
    by_fold = {fold.record.fold: fold for fold in done}
    summary = summarise(
        scores.genuine,
        scores.score,
        {number: fold.record.threshold for number, fold in by_fold.items()},
        scores.fold,
        {number: fold.record.calibration for number, fold in by_fold.items()},
        cluster=scores.cluster,
    )
    rows = [
        FoldFigures(
            **vars(row), **{key: getattr(by_fold[row.fold].record, key) for key in FROM_RECORD}
        )
        for row in summary.folds
    ]
    machines: list[dict[str, Any]] = []
    for fold in done:
        if fold.record.machine not in machines:
            machines.append(fold.record.machine)
    result = MethodFigures(
        **vars(summary) | {"folds": rows, "category": category_of(folder)},
        method=method,
        folds_done=len(done),
        folds_in_all=folds,
        minutes=round(sum(row.minutes for row in rows), 2),
        machines=machines,
    )
    write_json(folder / RESULT, result)
    return result


def _join_scores(done: list[FinishedFold]) -> ScoreTable:
    """Return the scores of all folds in one table."""
    parts = [fold.scores for fold in done]
    clusters = [part.cluster for part in parts if part.cluster is not None]
    return ScoreTable(
        [name for part in parts for name in part.left],
        [name for part in parts for name in part.right],
        np.concatenate([part.genuine for part in parts]),
        np.concatenate([part.fold for part in parts]),
        np.concatenate([part.score for part in parts]),
        np.concatenate(clusters) if len(clusters) == len(parts) else None,
    )
