"""Figures that this package publishes, computed again from the scores that it publishes."""

import json
from pathlib import Path

import pytest

from facepairs.evaluation.measurement import Measurement, measure_view2
from facepairs.evaluation.serialize import to_plain
from facepairs.evaluation.sources.find import ScoreSource

VIEW2 = Path(__file__).parents[3] / "scripts" / "results" / "view2"
METHODS = sorted(path.parent.name for path in VIEW2.glob("*/result.json"))


@pytest.fixture(scope="module")
def measured() -> dict[str, Measurement]:
    return {name: measure_view2(ScoreSource("view2", str(VIEW2 / name), name)) for name in METHODS}


def test_every_published_folder_is_measured():
    assert METHODS == ["difference", "difference-article", "siamese"]


@pytest.mark.parametrize("method", METHODS)
def test_result_files_follow_from_scores_and_thresholds(measured, method):
    published = json.loads((VIEW2 / method / "result.json").read_text())
    summary = to_plain(measured[method].summary)
    for key in ("accuracy", "accuracy_standard_error", "auc", "eer", "fmr", "fnmr", "ece"):
        assert summary[key] == pytest.approx(published[key], abs=1e-12), key
    low, high = published["auc_interval"]  # for independent pairs; now people may recur
    assert summary["auc_interval"][0] <= low + 1e-9
    assert summary["auc_interval"][1] >= high - 1e-9
    for far, tar in published["tar_at_far"].items():
        for key in ("tar", "threshold", "false_accepts", "reason"):
            assert summary["tar_at_far"][far][key] == tar[key]
    for fold, row in zip(summary["folds"], published["folds"], strict=True):
        for key in ("fold", "accuracy", "threshold", "auc", "genuine_pairs", "impostor_pairs"):
            assert fold[key] == pytest.approx(row[key], abs=1e-12)
