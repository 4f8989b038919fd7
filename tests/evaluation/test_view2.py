"""The figures of a cross-validation, against what one can count by hand."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from facepairs.bundles.calibration import Calibration
from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.metrics.calibration import expected_calibration_error
from facepairs.evaluation.metrics.curves import auc, eer
from facepairs.evaluation.metrics.summary import view2_summary
from facepairs.evaluation.metrics.thresholds import tar_at_far
from facepairs.evaluation.report.cells import lines_of
from facepairs.evaluation.report.summary_tables import summaries_table
from facepairs.evaluation.serialize import to_plain


def drawn(folds=10, each=50, seed=0):
    draw = np.random.default_rng(seed)
    genuine = np.tile(np.repeat([True, False], each // 2), folds)
    score = draw.normal(size=len(genuine)) + 1.5 * genuine
    return genuine, score, np.repeat(np.arange(1, folds + 1), each)


def test_two_folds_by_hand():
    genuine = [True, True, False, False] * 2
    score = [0.9, 0.4, 0.5, 0.1, 3.0, 2.0, 1.0, 0.5]
    found = view2_summary(genuine, score, [1] * 4 + [2] * 4, {1: 0.45, 2: 2.0})
    rows = found.folds
    assert [row.accuracy for row in rows] == [0.5, 1.0]
    assert [row.threshold for row in rows] == [0.45, 2.0]
    assert [row.auc for row in rows] == [0.75, 1.0]
    assert found.accuracy == 0.75
    assert found.accuracy_standard_error == pytest.approx(0.25)  # sigma .3536 over root 2
    assert found.fmr == found.fnmr == 0.25
    assert found.auc == auc(genuine, score)
    assert (found.genuine_pairs, found.impostor_pairs) == (4, 4)
    assert found.ece is None


def test_all_scores_together_give_the_curve():
    genuine, score, fold = drawn(each=200)
    found = view2_summary(genuine, score, fold, dict.fromkeys(range(1, 11), 0.7))
    assert found.auc == auc(genuine, score)
    assert found.eer == eer(genuine, score)
    assert found.tar_at_far["0.1"].tar == tar_at_far(genuine, score, 0.1).tar
    assert found.tar_at_far["0.001"].tar is None
    assert "not enough pairs" in found.tar_at_far["0.001"].reason
    accuracies = [row.accuracy for row in found.folds]
    assert found.accuracy == pytest.approx(np.mean(accuracies))
    assert found.accuracy_standard_error == pytest.approx(np.std(accuracies, ddof=1) / 10**0.5)
    json.dumps(to_plain(found), allow_nan=False)


def test_one_fold_has_no_standard_error_and_says_so():
    genuine, score, fold = drawn(folds=1)
    found = view2_summary(genuine, score, fold + 6, {7: 0.7})
    assert found.accuracy_standard_error is None
    assert "2 folds" in found.accuracy_standard_error_reason
    assert found.folds[0].fold == 7


def test_each_fold_is_judged_by_its_own_probabilities():
    genuine, score, fold = drawn(folds=2, each=400)
    shifted = score + 5 * (fold == 2)  # another network, another scale
    thresholds = {1: 0.75, 2: 5.75}
    right = {1: Calibration(1.5, -1.1), 2: Calibration(1.5, -1.1 - 7.5)}
    found = view2_summary(genuine, shifted, fold, thresholds, right)
    plain = expected_calibration_error(genuine, right[1].probability(score), prior=0.5)
    assert found.ece == pytest.approx(plain)
    swapped = {1: right[2], 2: right[1]}
    assert view2_summary(genuine, shifted, fold, thresholds, swapped).ece > found.ece + 0.1


@given(st.permutations(range(40)), st.floats(-2, 3))
def test_the_order_of_pairs_does_not_matter(order, threshold):
    genuine, score, fold = drawn(folds=4, each=10)
    thresholds = {k: threshold + k / 10 for k in range(1, 5)}
    one = view2_summary(genuine, score, fold, thresholds)
    other = view2_summary(genuine[order], score[order], fold[order], thresholds)
    assert one == other


def test_what_cannot_be_summed_up():
    genuine, score, fold = drawn(folds=2)
    with pytest.raises(BadData, match="fold 2 has scores and no threshold"):
        view2_summary(genuine, score, fold, {1: 0.5})
    with pytest.raises(BadData, match="fold 2 has scores and no calibration"):
        view2_summary(genuine, score, fold, {1: 0.5, 2: 0.5}, {1: Calibration(1, 0)})
    with pytest.raises(BadData, match="one number for each"):
        view2_summary(genuine, score, fold[:-1], {1: 0.5, 2: 0.5})
    with pytest.raises(NotEnough, match="impostor"):
        view2_summary(genuine, score, np.where(genuine, 1, 2), {1: 0.5, 2: 0.5})


def test_the_table_has_a_line_a_method():
    genuine, score, fold = drawn(folds=2)
    two = view2_summary(genuine, score, fold, {1: 0.7, 2: 0.7})
    one = view2_summary(genuine[:50], score[:50], fold[:50], {1: 0.7}, {1: Calibration(1, 0)})
    head, first, second = lines_of(summaries_table("method", {"pixels": two, "difference": one}))
    assert head.split()[:3] == ["method", "folds", "accuracy"]
    assert first.startswith("pixels")
    assert f"{100 * two.accuracy:.2f} % ± {100 * two.accuracy_standard_error:.2f}" in first
    assert "(1 fold: no s.e.)" in second
    assert "too few pairs" in first
    assert first.index("±") > head.index("accuracy")
