import json
import math

import msgspec
import numpy as np
import pytest
from by_hand import accuracy, error_rates
from figures import figures_of, fold_accuracy
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from facepairs.bundles.error_profile import Calibration
from facepairs.bundles.rates import Errors, OperatingPoint, Rate
from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.error_rates import (
    ThresholdFrom,
    decide,
    decide_at,
)
from facepairs.evaluation.lookalikes import LookAlikes
from facepairs.evaluation.metrics.curves import (
    auc,
    best_threshold,
    eer,
    threshold_at_far,
)
from facepairs.evaluation.metrics.intervals import PeopleOfPairs, clopper_pearson
from facepairs.evaluation.report.table import facts_of
from facepairs.evaluation.report.tables import figure_rows
from facepairs.evaluation.summary import About, Summary, summarise, wrong_pairs
from facepairs.support.results import to_plain


def texts(summary: Summary) -> dict[str, str]:
    """Return what a terminal shows of a summary."""
    rows = facts_of(
        "figures", "", figure_rows(msgspec.structs.replace(summary, about=About(pairs="p.csv")))
    ).rows
    return {label.text: value.text for label, value in rows}


unhurried = settings(deadline=None, max_examples=40)  # the first call imports SciPy


def drawn(seed, pairs=600, apart=2.0):
    """Return pairs/2 genuine and pairs/2 impostor, in alternation, and ten folds in a row."""
    rng = np.random.Generator(np.random.Philox(seed))
    genuine = np.arange(pairs) % 2 == 0
    return genuine, rng.normal(size=pairs) + apart * genuine, np.arange(pairs) * 10 // pairs + 1


def test_summary_with_a_given_threshold():
    genuine, score, fold = drawn(1)
    summary = figures_of(genuine, score, 1.0, fold)
    rates, errors = error_rates(genuine, score >= 1.0), summary.point.errors
    assert summary.accuracy.value == accuracy(genuine, score, 1.0)
    assert summary.balanced_accuracy == summary.accuracy
    low, high = summary.accuracy.interval
    right = 600 - rates.false_accepts - rates.false_rejects
    assert (low, high) == pytest.approx(clopper_pearson(right, 600), abs=0.004)
    assert low < summary.accuracy.value < high
    assert (summary.point.threshold, summary.threshold_source) == (1.0, ThresholdFrom.MODEL)
    passed, missed = rates.false_accepts, rates.false_rejects
    assert errors.fmr == Rate(rates.fmr, clopper_pearson(passed, 300), passed, 300)
    assert errors.fnmr == Rate(rates.fnmr, clopper_pearson(missed, 300), missed, 300)
    assert summary.auc.value == auc(genuine, score)
    assert summary.eer.value == eer(genuine, score)
    assert (summary.genuine_pairs, summary.impostor_pairs) == (300, 300)
    assert summary.ece is None


def test_balanced_accuracy_is_not_fooled_by_unequal_classes():
    genuine, score, _ = drawn(13)
    few = ~genuine | (np.arange(600) < 30)
    refused = figures_of(genuine[few], score[few], 100.0)  # "different people", always
    assert refused.balanced_accuracy.value == 0.5
    assert refused.accuracy is None
    summary = figures_of(genuine[few], score[few], 1.0)
    rates = error_rates(genuine[few], score[few] >= 1.0)
    assert summary.balanced_accuracy.value == pytest.approx(1 - (rates.fmr + rates.fnmr) / 2)
    low, high = summary.balanced_accuracy.interval
    assert low < summary.balanced_accuracy.value < high


def test_intervals_are_wider_where_people_recur():
    genuine = np.repeat([True, False], [200, 400])
    score = np.random.Generator(np.random.Philox(14)).normal(size=600) + 2 * genuine
    person = np.concatenate([np.arange(200) // 10, np.arange(400) // 20])  # 20 people
    other = np.where(genuine, person, (person + 1) % 20)
    score += person % 2  # pairs of one person are alike
    alone = figures_of(genuine, score, 1.0)
    summary = figures_of(genuine, score, 1.0, people=(person, other))
    assert alone.point.errors.fmr.value == summary.point.errors.fmr.value
    before, after = (
        (one.point.errors.fmr, one.point.errors.fnmr, one.auc, one.balanced_accuracy)
        for one in (alone, summary)
    )
    for narrow, wide in zip(before, after, strict=True):
        (low, high), (below, above) = narrow.interval, wide.interval
        assert below <= low < high <= above
        assert above - below > 1.1 * (high - low)


def test_errors_among_look_alikes_and_at_every_point():
    genuine, score, _ = drawn(15)
    alike = (np.arange(600) % 20 < 2) & ~genuine
    hard = score + alike
    decided = decide(genuine, hard, 1.0)
    strict = decide_at(hard, OperatingPoint(3.0, "fmr-0.01"))
    pairs = PeopleOfPairs(None, len(genuine))
    summary = summarise(genuine, hard, [decided, strict], pairs, LookAlikes.of(alike))
    balanced, point = summary.operating_points
    assert (balanced.name, point.name, point.threshold) == ("balanced", "fmr-0.01", 3.0)
    found = balanced.errors.lookalike_fmr
    assert (found.count, found.of) == ((hard[alike] >= 1).sum(), alike.sum())
    assert found.value == (hard[alike] >= 1).mean() > balanced.errors.fmr.value
    assert balanced.errors.fmr.value > point.errors.fmr.value
    assert found.interval[0] < found.value < found.interval[1]
    assert figures_of(genuine, hard, 1.0).point.errors.lookalike_fmr is None


def test_tar_at_far_has_figures_or_a_reason():
    genuine, score, _ = drawn(3)
    tars = figures_of(genuine, score, 1.0).tar_at_far
    assert list(tars) == ["0.1", "0.01", "0.001"]
    assert tars["0.01"].threshold == threshold_at_far(genuine, score, 0.01)
    assert tars["0.01"].errors.fmr == Rate(0.01, clopper_pearson(3, 300), 3, 300)
    too_few = tars["0.001"]
    assert (too_few.errors, too_few.threshold) == (Errors(), None)
    assert too_few.reason == "not enough pairs: needs 3000 impostor pairs, has 300"


def test_each_fold_is_decided_with_the_threshold_of_the_others():
    genuine, score, fold = drawn(5)
    summary = figures_of(genuine, score, None, fold)
    assert (summary.point.threshold, summary.threshold_source) == (None, ThresholdFrom.OTHER_FOLDS)
    accuracies, false_accepts = [], 0
    for part, number in zip(summary.folds, range(1, 11), strict=True):
        held_out = fold == number
        threshold = best_threshold(genuine[~held_out], score[~held_out])
        accuracies.append(accuracy(genuine[held_out], score[held_out], threshold))
        false_accepts += int((score[held_out & ~genuine] >= threshold).sum())
        assert (part.name, part.threshold) == (str(number), threshold)
        assert fold_accuracy(part) == pytest.approx(accuracies[-1])
        assert wrong_pairs(part)[-1] == 60
    assert summary.accuracy.value == pytest.approx(sum(accuracies) / 10)
    error = np.std(accuracies, ddof=1) / math.sqrt(10)
    assert summary.balanced_accuracy.standard_error == pytest.approx(error)
    low, high = summary.accuracy.interval
    assert (high - low) / 2 == pytest.approx(2.2621571628 * error)  # Student's t, 9 degrees
    assert summary.point.errors.fmr.value == false_accepts / 300


def test_without_folds_halves_set_each_others_threshold():
    genuine, score, _ = drawn(7)
    summary = figures_of(genuine, score, None, np.zeros(600, int))
    assert summary == figures_of(genuine, score, None)
    assert (summary.point.threshold, summary.threshold_source) == (None, ThresholdFrom.OTHER_HALF)
    assert summary.balanced_accuracy.standard_error is None
    first, second = summary.folds
    assert (first.name, second.name) == ("1", "2")
    assert (wrong_pairs(first)[-1], wrong_pairs(second)[-1]) == (300, 300)
    accuracy = (fold_accuracy(first) + fold_accuracy(second)) / 2
    assert summary.accuracy.value == pytest.approx(accuracy)
    low, high = summary.accuracy.interval
    assert low < accuracy < high


def test_the_draw_of_halves_is_golden():
    # The same scores file must give the same figures in every version.
    halves = [2, 1, 1, 1, 2, 1, 1, 2, 1, 2, 2, 2]
    genuine, score, _ = drawn(12, pairs=12)
    folds = figures_of(genuine, score, None, halves).folds
    assert figures_of(genuine, score, None).folds == folds


@pytest.mark.parametrize("ordered", [False, True])
def test_held_out_accuracy_of_noise_is_chance_but_the_best_threshold_is_optimistic(ordered):
    held_out, flattering = [], []
    for seed in range(60):
        genuine, score, _ = drawn(100 + seed, pairs=40, apart=0.0)
        if ordered:  # a file sorted by score
            order = np.argsort(score)
            genuine, score = genuine[order], score[order]
        held_out.append(figures_of(genuine, score, None).accuracy.value)
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
        summary = figures_of(genuine, score, threshold, fold, Calibration(1.0, 0.0))
    except NotEnough:
        reject()
    plain = to_plain(summary)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    errors = summary.point.errors
    for rate in (summary.balanced_accuracy, errors.fmr, errors.fnmr, summary.auc):
        low, high = rate.interval
        assert 0 <= low <= rate.value + 1e-12
        assert rate.value - 1e-12 <= high <= 1
    assert all(label and text for label, text in texts(summary).items())


def test_summary_refuses_what_cannot_be_measured():
    genuine, score, _ = drawn(8)
    with pytest.raises(NotEnough):
        figures_of(genuine[1::2], score[1::2], 1.0)
    with pytest.raises(NotEnough):
        figures_of([True, False, False, False], [1.0, 2.0, 3.0, 4.0], None)
    with pytest.raises(NotEnough):
        figures_of([True, False, False], [1.0, 2.0, 3.0], None, [1, 2, 2])
    with pytest.raises(BadData):
        figures_of([True, False], [1.0, math.nan], 0.0)


def test_rows_with_a_given_threshold():
    genuine = np.repeat([True, False], [4, 40])
    score = np.concatenate([[3.0, 2.0, 1.0, -1.0], np.full(40, -2.0)])
    summary = figures_of(genuine, score, 0.0, calibration=Calibration(1.0, 0.0))
    assert texts(summary) == {
        "Pairs from": "p.csv",
        "Scored by": "unknown",
        "Pairs": "4 genuine, 40 impostor",
        "Balanced accuracy": "87.50 % (95 % interval 48.49 to 99.54)",
        "Threshold": "0 (the model's own)",
        "Strangers accepted (FMR)": "0.00 % (0.00 to 8.81)",
        "Genuine pairs missed (FNMR)": "25.00 % (0.63 to 80.59)",
        "AUC": "1.0000 (0.6306 to 1.0000)",
        "Equal error rate (EER)": "0.00 % (0.00 to 60.24)",
        "TAR at FAR 10 %": "100.00 % (39.76 to 100.00); 0 of 40 impostor pairs accepted",
        "TAR at FAR 1 %": "not enough pairs: needs 300 impostor pairs, has 40",
        "TAR at FAR 0.1 %": "not enough pairs: needs 3000 impostor pairs, has 40",
        "Calibration error (ECE)": f"{summary.ece:.4f}",
    }
