"""The figures of a cross-validation, against what one can count by hand."""

import json

import numpy as np
import pytest
from figures import figures_of, fold_accuracy
from tiny.scores import invented, write_method

from facepairs.bundles.error_profile import Calibration
from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.measurement import measure_scores
from facepairs.evaluation.metrics.curves import auc
from facepairs.evaluation.metrics.reliability import expected_calibration_error


def drawn(folds=10, each=50, seed=0):
    draw = np.random.default_rng(seed)
    genuine = np.tile(np.repeat([True, False], each // 2), folds)
    score = draw.normal(size=len(genuine)) + 1.5 * genuine
    return genuine, score, np.repeat(np.arange(1, folds + 1), each)


def test_two_folds_by_hand():
    genuine = np.array([True, True, False, False] * 2)
    score = np.array([0.9, 0.4, 0.5, 0.1, 3.0, 2.0, 1.0, 0.5])
    found = figures_of(genuine, score, {1: 0.45, 2: 2.0}, [1] * 4 + [2] * 4)
    rows = found.folds
    assert [fold_accuracy(row) for row in rows] == [0.5, 1.0]
    assert [row.threshold for row in rows] == [0.45, 2.0]
    assert found.accuracy.value == 0.75
    assert found.balanced_accuracy.standard_error == pytest.approx(0.25)  # sigma .3536 over root 2
    assert found.point.errors.fmr.value == found.point.errors.fnmr.value == 0.25
    assert found.auc.value == auc(genuine, score)
    assert (found.genuine_pairs, found.impostor_pairs) == (4, 4)
    assert found.ece is None


def test_lfws_rule_takes_each_folds_threshold_from_the_other_folds():
    genuine, score, fold = drawn()
    by_rule = figures_of(genuine, score, None, fold)
    expected = (by_rule.accuracy.value, by_rule.balanced_accuracy.standard_error)
    for threshold in (dict.fromkeys(range(1, 11), 5.0), 5.0, None):
        found = figures_of(genuine, score, threshold, fold)
        assert (found.lfw_accuracy.value, found.lfw_accuracy.standard_error) == expected
    shifted = score + 100 * (fold == 3)  # no other threshold serves the third fold
    own = {number: 0.75 + 100 * (number == 3) for number in range(1, 11)}
    found = figures_of(genuine, shifted, own, fold)
    assert found.lfw_accuracy.value < found.accuracy.value - 0.02
    assert figures_of(genuine, score, 5.0).lfw_accuracy is None
    assert figures_of(genuine[:50], score[:50], {1: 5.0}, fold[:50]).lfw_accuracy is None


def test_ece_uses_each_folds_own_calibration():
    genuine, score, fold = drawn(folds=2, each=400)
    shifted = score + 5 * (fold == 2)  # another network, another scale
    thresholds = {1: 0.75, 2: 5.75}
    right = {1: Calibration(1.5, -1.1), 2: Calibration(1.5, -1.1 - 7.5)}
    found = figures_of(genuine, shifted, thresholds, fold, right)
    plain = expected_calibration_error(genuine, right[1].probability(score))
    assert found.ece == pytest.approx(plain)
    swapped = {1: right[2], 2: right[1]}
    assert figures_of(genuine, shifted, thresholds, fold, swapped).ece > found.ece + 0.1


def test_a_fold_without_a_threshold_or_a_class_is_refused(tmp_path):
    folder = write_method(tmp_path / "fisher", invented())
    result = json.loads((folder / "result.json").read_text())
    result["folds"].pop()
    (folder / "result.json").write_text(json.dumps(result))
    with pytest.raises(BadData):
        measure_scores(folder)
    genuine, score, _ = drawn(folds=2)
    with pytest.raises(NotEnough):
        figures_of(genuine, score, {1: 0.5, 2: 0.5}, np.where(genuine, 1, 2))
