"""Figures that this package publishes, computed again from the scores that it publishes."""

import csv
import json
import statistics
from pathlib import Path

import pytest
from figures import fold_accuracy

from facepairs.evaluation.measurement import Measurement, measure_scores
from facepairs.evaluation.metrics.curves import auc

RESULTS = Path(__file__).parents[3] / "scripts" / "results"
VIEW2 = RESULTS / "view2"
ACCURACY = Path(__file__).parents[3] / "docs" / "results" / "accuracy.md"
FOLDERS = sorted(path.parent for path in RESULTS.glob("view2*/*/result.json"))
METHODS = ["difference-article", "fisher"]  # today's files of results have thresholds alone


@pytest.fixture(scope="module")
def measured() -> dict[str, Measurement]:
    return {name: measure_scores(VIEW2 / name, name) for name in METHODS}


def test_every_published_folder_is_measured():
    assert sorted(path.parent.name for path in VIEW2.glob("*/scores.csv")) == [
        "difference",
        *METHODS,
    ]


@pytest.mark.parametrize("method", METHODS)
def test_result_files_follow_from_scores_and_thresholds(measured, method):
    published = json.loads((VIEW2 / method / "result.json").read_text())
    summary = measured[method].summary
    errors = summary.point.errors
    figures = {
        "accuracy": summary.accuracy.value,
        "accuracy_standard_error": summary.accuracy.standard_error,
        "auc": summary.auc.value,
        "eer": summary.eer.value,
        "fmr": errors.fmr.value,
        "fnmr": errors.fnmr.value,
        "ece": summary.ece,
    }
    for key, value in figures.items():
        assert value == pytest.approx(published[key], abs=1e-12), key
    low, high = published["auc_interval"]  # for independent pairs; now people may recur
    assert summary.auc.interval[0] <= low + 1e-9
    assert summary.auc.interval[1] >= high - 1e-9
    for far, tar in published["tar_at_far"].items():
        point = summary.tar_at_far[far]
        assert (point.threshold, point.reason) == (tar["threshold"], tar["reason"])
        assert summary.true_accepts(far).value == pytest.approx(tar["tar"], abs=1e-12)
        assert point.errors.fmr.count == tar["false_accepts"]
    scores = measured[method].pairs
    for fold, row in zip(summary.folds, published["folds"], strict=True):
        own = scores.fold == row["fold"]
        fmr, fnmr = fold.errors.fmr, fold.errors.fnmr
        assert (fold.name, fmr.of, fnmr.of) == (
            str(row["fold"]),
            row["impostor_pairs"],
            row["genuine_pairs"],
        )
        assert fold.threshold == pytest.approx(row["threshold"], abs=1e-12)
        assert fold_accuracy(fold) == pytest.approx(row["accuracy"], abs=1e-12)
        assert auc(scores.genuine[own], scores.score[own]) == pytest.approx(row["auc"], abs=1e-12)


def by_lfws_rule(folder: Path) -> tuple[float, float]:
    """Count from the scores alone: each fold's threshold is the best of the other nine folds."""
    with open(folder / "scores.csv", newline="") as handle:
        rows = [
            (int(row["fold"]), float(row["score"]), row["genuine"] == "1")
            for row in csv.DictReader(handle)
        ]
    rows.sort(key=lambda row: -row[1])
    accuracies = []
    for number in range(1, 11):
        others = [(score, genuine) for fold, score, genuine in rows if fold != number]
        gains, gain = [0], 0  # genuine less impostor pairs among the 0, 1, … highest
        for place, (score, genuine) in enumerate(others, 1):
            gain += 1 if genuine else -1
            tied = place < len(others) and others[place][0] == score
            gains.append(-len(others) if tied else gain)
        most = max(gains)
        best = [place for place, value in enumerate(gains) if value == most]
        place = best[(len(best) - 1) // 2]
        threshold = (others[place - 1][0] + others[place][0]) / 2
        right = [(score >= threshold) == genuine for fold, score, genuine in rows if fold == number]
        accuracies.append(statistics.mean(right))
    return statistics.mean(accuracies), statistics.stdev(accuracies) / len(accuracies) ** 0.5


@pytest.mark.parametrize(
    "folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}"
)
def test_accuracies_by_lfws_rule_follow_from_the_scores(folder):
    mean, error = by_lfws_rule(folder)
    summary = measure_scores(folder, folder.name).summary
    assert summary.lfw_accuracy.value == pytest.approx(mean)
    assert summary.lfw_accuracy.standard_error == pytest.approx(error)
    by_file = measure_scores(folder / "scores.csv", folder.name).summary
    assert by_file.lfw_accuracy == summary.lfw_accuracy
    figures = [f"{value:.4f}".lstrip("0") for value in (mean, error, summary.accuracy.value)]
    assert f"| {figures[0]} ± {figures[1]} | {figures[2]} ± " in ACCURACY.read_text("utf-8")
