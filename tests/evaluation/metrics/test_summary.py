import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from facepairs.bundles.calibration import Calibration
from facepairs.errors import BadConfig, BadData, NotEnough
from facepairs.evaluation.measurement import EvaluationSummary
from facepairs.evaluation.metrics.curves import auc, auc_interval, eer
from facepairs.evaluation.metrics.decisions import (
    OTHER_FOLDS,
    OTHER_HALF,
    decide,
    decide_at,
    decisions_of_file,
)
from facepairs.evaluation.metrics.rates import accuracy, clopper_pearson, error_rates
from facepairs.evaluation.metrics.reliability import expected_calibration_error
from facepairs.evaluation.metrics.summary import Summary, summarise, summarise_decisions
from facepairs.evaluation.metrics.thresholds import best_threshold, tar_at_far
from facepairs.evaluation.report.verifier_tables import figure_rows
from facepairs.evaluation.serialize import to_plain

KEYS = {
    *("schema", "accuracy", "accuracy_interval", "threshold", "threshold_source", "folds"),
    *("accuracy_standard_error", "accuracy_standard_error_reason"),
    *("lfw_accuracy", "lfw_accuracy_standard_error"),
    *("fmr", "fmr_interval", "fnmr", "fnmr_interval", "auc", "auc_interval", "eer"),
    *("balanced_accuracy", "balanced_accuracy_interval", "operating_points"),
    *("tar_at_far", "genuine_pairs", "impostor_pairs", "false_accepts", "false_rejects", "ece"),
    "category",
}


def texts(summary: Summary) -> dict[str, str]:
    """Return what a terminal shows of a summary."""
    rows = figure_rows(EvaluationSummary(**vars(summary), pairs="p.csv"))
    return {label: getattr(value, "text", value) for label, value in rows}


unhurried = settings(deadline=None, max_examples=40)  # the first call imports SciPy


def drawn(seed, pairs=600, apart=2.0):
    """Return pairs/2 genuine and pairs/2 impostor, in alternation, and ten folds in a row."""
    rng = np.random.Generator(np.random.Philox(seed))
    genuine = np.arange(pairs) % 2 == 0
    return genuine, rng.normal(size=pairs) + apart * genuine, np.arange(pairs) * 10 // pairs + 1


def test_summary_with_a_given_threshold():
    genuine, score, fold = drawn(1)
    result = summarise(genuine, score, 1.0, fold)
    summary = to_plain(result)
    rates = error_rates(genuine, score >= 1.0)
    assert set(summary) == KEYS
    assert summary["schema"] == 3
    assert summary["accuracy"] == accuracy(genuine, score, 1.0)
    assert summary["balanced_accuracy"] == summary["accuracy"]
    low, high = summary["accuracy_interval"]
    right = 600 - rates.false_accepts - rates.false_rejects
    assert (low, high) == pytest.approx(clopper_pearson(right, 600), abs=0.004)
    assert low < summary["accuracy"] < high
    assert (summary["threshold"], summary["threshold_source"]) == (1.0, "given by the caller")
    assert (summary["fmr"], summary["fnmr"]) == (rates.fmr, rates.fnmr)
    assert summary["fmr_interval"] == list(rates.fmr_interval)
    assert summary["fnmr_interval"] == list(rates.fnmr_interval)
    assert summary["auc"] == auc(genuine, score)
    assert summary["auc_interval"] == list(auc_interval(genuine, score))
    assert summary["eer"] == eer(genuine, score)
    assert (summary["genuine_pairs"], summary["impostor_pairs"]) == (300, 300)
    assert summary["ece"] is None


def test_balanced_accuracy_is_not_fooled_by_unequal_classes():
    genuine, score, _ = drawn(13)
    few = ~genuine | (np.arange(600) < 30)
    refused = summarise(genuine[few], score[few], 100.0)  # "different people", always
    assert refused.balanced_accuracy == 0.5
    assert (refused.accuracy, refused.accuracy_interval) == (None, None)
    summary = summarise(genuine[few], score[few], 1.0)
    rates = error_rates(genuine[few], score[few] >= 1.0)
    assert summary.balanced_accuracy == pytest.approx(1 - (rates.fmr + rates.fnmr) / 2)
    low, high = summary.balanced_accuracy_interval
    assert low < summary.balanced_accuracy < high


def test_intervals_are_wider_where_people_recur():
    genuine = np.repeat([True, False], [200, 400])
    score = np.random.Generator(np.random.Philox(14)).normal(size=600) + 2 * genuine
    person = np.concatenate([np.arange(200) // 10, np.arange(400) // 20])  # 20 people
    other = np.where(genuine, person, (person + 1) % 20)
    score += person % 2  # pairs of one person are alike
    alone = summarise(genuine, score, 1.0)
    summary = summarise(genuine, score, 1.0, people=(person, other))
    assert alone.fmr == summary.fmr
    for name in ("fmr", "fnmr", "auc", "balanced_accuracy"):
        (low, high), (below, above) = (getattr(s, f"{name}_interval") for s in (alone, summary))
        assert below <= low < high <= above
        assert above - below > 1.1 * (high - low)


def test_errors_among_look_alikes_and_at_every_point():
    genuine, score, _ = drawn(15)
    cluster = np.where(np.arange(600) % 20 < 2, 1 + np.arange(600) % 3, 0)
    hard = score + (cluster > 0) * ~genuine
    decided = decide(genuine, hard, 1.0, source="the bundle")
    strict = decide_at(hard, 3.0, "fmr-0.01", "FMR 1 %")
    summary = summarise_decisions(genuine, hard, decided, cluster=cluster, points=[strict])
    balanced, point = summary.operating_points
    assert (balanced.name, point.name, point.threshold) == ("balanced", "fmr-0.01", 3.0)
    alike = (cluster > 0) & ~genuine
    assert balanced.lookalike_pairs == alike.sum()
    assert balanced.lookalike_fmr == (hard[alike] >= 1).mean() > balanced.fmr > point.fmr
    assert balanced.fmr == summary.fmr
    low, high = balanced.lookalike_fmr_interval
    assert low < balanced.lookalike_fmr < high
    unknown = summarise(genuine, hard, 1.0).operating_points[0]
    assert (unknown.lookalike_pairs, unknown.lookalike_fmr) == (None, None)


def test_decisions_of_a_file_are_honoured():
    genuine, score, _ = drawn(16)
    decided = decisions_of_file(score, score >= 1.7, None, "", None)
    summary = summarise_decisions(genuine, score, decided)
    assert summary.fmr == error_rates(genuine, score >= 1.7).fmr
    assert summary.threshold_source == "decided as in the file"
    assert ((score >= summary.threshold) == (score >= 1.7)).all()
    odd = decisions_of_file(score, (score >= 1.7) ^ (np.arange(600) == 5), None, "", None)
    assert summarise_decisions(genuine, score, odd).threshold is None  # no threshold says so
    for accepted in (np.ones(600, bool), np.zeros(600, bool)):
        decided = decisions_of_file(score, accepted, None, "", None)
        assert summarise_decisions(genuine, score, decided).balanced_accuracy == 0.5


def test_a_threshold_of_zero_is_used():
    genuine, score, _ = drawn(2)
    summary = summarise(genuine, score, 0.0, threshold_source="the bundle")
    assert (summary.threshold, summary.threshold_source) == (0.0, "the bundle")
    assert summary.accuracy == accuracy(genuine, score, 0.0)


def test_tar_at_far_has_figures_or_a_reason():
    genuine, score, _ = drawn(3)
    tars = summarise(genuine, score, 1.0).tar_at_far
    point = tar_at_far(genuine, score, 0.01)
    assert list(tars) == ["0.1", "0.01", "0.001"]
    assert tars["0.01"] == point
    assert (point.false_accepts, point.impostor_pairs) == (3, 300)
    assert point.far_interval == clopper_pearson(3, 300)
    too_few = tars["0.001"]
    assert (too_few.tar, too_few.tar_interval, too_few.threshold) == (None, None, None)
    assert too_few.reason == "not enough pairs: needs 3000 impostor pairs, has 300"
    assert too_few.impostor_pairs == 300


def test_ece_weights_classes_equally():
    genuine, score, _ = drawn(4)
    few = ~genuine | (np.arange(600) < 60)
    calibration = Calibration(2.0, -2.0)
    summary = summarise(genuine[few], score[few], 1.0, calibration=calibration)
    probability = calibration.probability(score[few])
    assert summary.ece == expected_calibration_error(genuine[few], probability)


def test_each_fold_is_decided_with_the_threshold_of_the_others():
    genuine, score, fold = drawn(5)
    summary = summarise(genuine, score, None, fold)
    assert set(to_plain(summary)) == KEYS
    assert (summary.threshold, summary.threshold_source) == (None, OTHER_FOLDS)
    accuracies, false_accepts = [], 0
    for part, number in zip(summary.folds, range(1, 11), strict=True):
        held_out = fold == number
        threshold = best_threshold(genuine[~held_out], score[~held_out])
        accuracies.append(accuracy(genuine[held_out], score[held_out], threshold))
        false_accepts += int((score[held_out & ~genuine] >= threshold).sum())
        assert (part.fold, part.accuracy, part.threshold) == (number, accuracies[-1], threshold)
        assert part.pairs == 60
        assert part.auc == auc(genuine[held_out], score[held_out])
    assert summary.accuracy == pytest.approx(sum(accuracies) / 10)
    error = np.std(accuracies, ddof=1) / math.sqrt(10)
    assert summary.accuracy_standard_error == pytest.approx(error)
    low, high = summary.accuracy_interval
    assert (high - low) / 2 == pytest.approx(2.2621571628 * error)  # Student's t, 9 degrees
    assert summary.fmr == false_accepts / 300


def test_a_folds_own_pairs_do_not_change_its_threshold():
    genuine, score, fold = drawn(6)
    before = summarise(genuine, score, None, fold).folds[2].threshold
    held_out = fold == 3
    shifted = np.where(held_out, score * 5 + 3, score)
    assert summarise(genuine, shifted, None, fold).folds[2].threshold == before
    assert summarise(genuine ^ held_out, score, None, fold).folds[2].threshold == before


def test_without_folds_halves_set_each_others_threshold():
    genuine, score, _ = drawn(7)
    summary = summarise(genuine, score, None, np.zeros(600, int))
    assert summary == summarise(genuine, score, None)
    assert set(to_plain(summary)) == KEYS
    assert (summary.threshold, summary.threshold_source) == (None, OTHER_HALF)
    assert summary.accuracy_standard_error is None
    first, second = summary.folds
    assert (first.fold, first.pairs, second.fold, second.pairs) == (1, 300, 2, 300)
    accuracy = (first.accuracy + second.accuracy) / 2
    assert summary.accuracy == pytest.approx(accuracy)
    low, high = summary.accuracy_interval
    assert low < accuracy < high


def test_the_draw_of_halves_is_golden():
    # The same scores file must give the same figures in every version.
    halves = [2, 1, 1, 1, 2, 1, 1, 2, 1, 2, 2, 2]
    genuine, score, _ = drawn(12, pairs=12)
    folds = summarise(genuine, score, None, halves).folds
    assert summarise(genuine, score, None).folds == folds


@pytest.mark.parametrize("ordered", [False, True])
def test_held_out_accuracy_of_noise_is_chance_but_the_best_threshold_is_optimistic(ordered):
    held_out, flattering = [], []
    for seed in range(60):
        genuine, score, _ = drawn(100 + seed, pairs=40, apart=0.0)
        if ordered:  # a file sorted by score
            order = np.argsort(score)
            genuine, score = genuine[order], score[order]
        held_out.append(summarise(genuine, score, None).accuracy)
        best = best_threshold(genuine, score)
        flattering.append(accuracy(genuine, score, best))
    assert np.mean(held_out) < 0.52
    assert np.mean(flattering) > 0.58


@unhurried
@given(
    st.lists(st.tuples(st.booleans(), st.integers(-3, 3), st.integers(0, 2)), min_size=2),
    st.none() | st.floats(-4, 4),
)
def test_any_summary_is_valid_json_and_has_rows(rows, threshold):
    genuine, score, fold = (list(column) for column in zip(*rows, strict=True))
    try:
        summary = summarise(genuine, score, threshold, fold, Calibration(1.0, 0.0))
    except NotEnough:
        reject()
    plain = to_plain(summary)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    for name in ("balanced_accuracy", "fmr", "fnmr", "auc"):
        low, high = plain[f"{name}_interval"]
        assert 0 <= low <= plain[name] + 1e-12
        assert plain[name] - 1e-12 <= high <= 1
    assert all(label and text for label, text in texts(summary).items())


def test_summary_refuses_what_cannot_be_measured():
    genuine, score, fold = drawn(8)
    with pytest.raises(NotEnough, match="has 0 genuine and 300 impostor"):
        summarise(genuine[1::2], score[1::2], 1.0)
    with pytest.raises(NotEnough, match="has 1 and 3"):
        summarise([True, False, False, False], [1.0, 2.0, 3.0, 4.0], None)
    with pytest.raises(NotEnough, match=r"outside fold 1 .* has 0 genuine and 2 impostor"):
        summarise([True, False, False], [1.0, 2.0, 3.0], None, [1, 2, 2])
    with pytest.raises(BadData, match="fold"):
        summarise(genuine, score, None, fold[1:])
    with pytest.raises(BadData, match="nan"):
        summarise([True, False], [1.0, math.nan], 0.0)
    for threshold in (math.nan, math.inf):
        with pytest.raises(BadConfig, match="threshold"):
            summarise(genuine, score, threshold)


def test_rows_with_a_given_threshold():
    genuine = np.repeat([True, False], [4, 40])
    score = np.concatenate([[3.0, 2.0, 1.0, -1.0], np.full(40, -2.0)])
    summary = summarise(genuine, score, 0.0, calibration=Calibration(1.0, 0.0))
    assert texts(summary) == {
        "Pairs from": "p.csv",
        "Scored by": "unknown",
        "Pairs": "4 genuine, 40 impostor",
        "Balanced accuracy": "87.50 % (95 % interval 59.36 to 99.68)",
        "Threshold": "0 (given by the caller)",
        "Strangers accepted (FMR)": "0.00 % (0.00 to 8.81)",
        "Genuine pairs missed (FNMR)": "25.00 % (0.63 to 80.59)",
        "AUC": "1.0000 (0.3976 to 1.0000)",
        "Equal error rate (EER)": "0.00 %",
        "TAR at FAR 0.1": "100.00 % (39.76 to 100.00); 0 of 40 impostor pairs accepted",
        "TAR at FAR 0.01": "not enough pairs: needs 300 impostor pairs, has 40",
        "TAR at FAR 0.001": "not enough pairs: needs 3000 impostor pairs, has 40",
        "Calibration error (ECE)": f"{summary.ece:.4f}",
    }


def test_rows_name_the_threshold_that_errors_belong_to():
    genuine = np.repeat([True, False], [4, 40])
    score = np.concatenate([[3.0, 2.0, 1.0, -1.0], np.full(39, -2.0), [1.5]])
    balanced = decide(genuine, score, 0.0, None, "the bundle's own")
    strict = decide_at(score, 2.0, "fmr-0.01", "FMR 1 % where it was set")
    points = [replace(strict, max_fmr=0.01, is_default=True)]
    rows = texts(summarise_decisions(genuine, score, balanced, points=points))
    assert rows["  Threshold"] == "0 (the bundle's own)"
    assert rows["As verify decides"] == "FMR 1 % where it was set, threshold 2"
    assert rows["  Strangers accepted (FMR)"].startswith("0.00 %")
    assert rows["  Genuine pairs missed (FNMR)"].startswith("50.00 %")
    assert "Threshold" not in rows


def test_rows_over_folds():
    genuine, score, fold = drawn(9)
    rows = texts(summarise(genuine, score, None, fold))
    assert "(mean ± standard error of 10 folds; 95 % interval" in rows["Accuracy"]
    assert rows["Threshold"].endswith(f"({OTHER_FOLDS})")
    assert " to " in rows["Threshold"]
    assert "Calibration error (ECE)" not in rows
