"""All done folds of a cross-validation, summed up: a method's figures, and those of all methods."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.evaluation.scores import Scores, write_scores
from facepairs.evaluation.view2 import view2_summary
from facepairs.support.atomic import atomic_file
from facepairs.training.view2.fold_record import SCORES, DoneFold, fold_folder, read_fold
from facepairs.training.view2.methods import CONFIG, METHODS, check_data

RESULT = "result.json"
SCHEMA = 1
FROM_RECORD = ("people", "images", "identities_digest", "epochs", "minutes", "seed")


def check_all_data(out: Path, digests: Mapping[str, str]) -> None:
    """Raise BadRun where any method in the folder was run on other images or lists."""
    for method in METHODS:
        if (out / method / CONFIG).exists():
            check_data(out / method, digests)


def write_results(out: Path, folds: int, digests: Mapping[str, str]) -> dict[str, Any]:
    """Sum up every method that has a done fold, of the `folds` there are; give RUN/result.json."""
    methods = {}
    for method in METHODS:
        done = [
            fold
            for number in range(1, folds + 1)
            if (fold := read_fold(fold_folder(out / method, number), method, number))
        ]
        if done:
            methods[method] = _method_result(out / method, method, done, folds)
    results = {"schema": SCHEMA, "protocol": "view2", "data": dict(digests), "methods": methods}
    _write_json(out / RESULT, results)
    return results


def _method_result(folder: Path, method: str, done: list[DoneFold], folds: int) -> dict[str, Any]:
    scores = _joined(done)
    write_scores(folder / SCORES, scores)
    number = [int(fold.record["fold"]) for fold in done]
    summary = view2_summary(
        scores.genuine,
        scores.score,
        scores.fold,
        {k: fold.threshold for k, fold in zip(number, done, strict=True)},
        {k: fold.calibration for k, fold in zip(number, done, strict=True)},
    )
    for row, fold in zip(summary["folds"], done, strict=True):
        row |= {key: fold.record[key] for key in FROM_RECORD}
    machines: list[Any] = []
    for fold in done:
        if fold.record["machine"] not in machines:
            machines.append(fold.record["machine"])
    result = {
        **summary,
        "method": method,
        "folds_done": len(done),
        "folds_in_all": folds,
        "minutes": round(sum(row["minutes"] for row in summary["folds"]), 2),
        "machines": machines,
    }
    _write_json(folder / RESULT, result)
    return result


def _joined(done: list[DoneFold]) -> Scores:
    parts = [fold.scores for fold in done]
    return Scores(
        [name for part in parts for name in part.left],
        [name for part in parts for name in part.right],
        np.concatenate([part.genuine for part in parts]),
        np.concatenate([part.fold for part in parts]),
        np.concatenate([part.score for part in parts]),
    )


def _write_json(path: Path, value: dict[str, Any]) -> None:
    with atomic_file(path) as handle:
        handle.write(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
