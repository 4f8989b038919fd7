"""Comparisons against what one can count by hand, and against other ways to the same figure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facepairs.evaluation.metrics import intervals
from facepairs.evaluation.metrics.comparison import compare, holm, mcnemar
from facepairs.evaluation.metrics.curves import auc
from facepairs.evaluation.metrics.thresholds import threshold_at_far


def test_mcnemar_by_hand():
    first = np.repeat([True, False, True], [10, 2, 50])
    second = np.repeat([False, True], [10, 52])
    found = mcnemar(first, second)
    # twice the chance of 2 or fewer heads in 12 throws: (1 + 12 + 66) / 4096
    assert found == pytest.approx(2 * 79 / 4096)
    assert mcnemar(second, first) == pytest.approx(found)
    assert mcnemar(first, first) == 1


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=25, deadline=None)
def test_differences_agree_with_the_metrics(seed, tied):
    draw = np.random.default_rng(seed)
    genuine = np.arange(60) % 2 == 0
    score = draw.normal(size=60) + genuine
    score = np.round(score) if tied else score
    with pytest.MonkeyPatch.context() as patch:  # intervals are not looked at here
        patch.setattr(intervals, "DRAWS", 20)
        patch.setattr(intervals, "MIN_DRAWS", 20)
        found = compare("ab", genuine, [score, -score], [genuine, ~genuine], [0.1])
    (test,) = found.tests
    assert test.auc.difference == pytest.approx(auc(genuine, score) - auc(genuine, -score))
    tars = [(s[genuine] >= threshold_at_far(genuine, s, 0.1)).mean() for s in (score, -score)]
    assert test.tar_at_far["0.1"].difference == pytest.approx(tars[0] - tars[1])


def test_draws_are_paired_and_reproducible():
    draw = np.random.default_rng(1)
    genuine = np.arange(200) % 2 == 0
    score = draw.normal(size=200) + genuine
    above = score >= 0.5
    found = compare("ab", genuine, [score, 3 * score - 1], [above] * 2, [0.1])
    (test,) = found.tests
    for gap in (test.balanced_accuracy, test.auc, test.tar_at_far["0.1"]):
        assert (gap.difference, gap.interval) == (0, (0, 0))  # same order of pairs, same figures
    assert found == compare("ab", genuine, [score, 3 * score - 1], [above] * 2, [0.1])
    (low, high) = compare("ab", genuine, [score, -score], [above, ~above], []).tests[0].auc.interval
    assert low < 2 * auc(genuine, score) - 1 < high
    assert 0.1 < high - low < 0.5


def test_a_better_verifier_is_distinguished_from_an_equal_one():
    draw = np.random.default_rng(2)
    genuine = np.arange(600) % 2 == 0
    good = draw.normal(size=600) + 2 * genuine
    bad = draw.normal(size=600) + 0.5 * genuine
    twin = draw.normal(size=600) + 2 * genuine
    accepted = [s >= m for s, m in ((good, 1), (bad, 0.25), (twin, 1))]
    found = compare(("good", "bad", "twin"), genuine, [good, bad, twin], accepted, [0.1, 0.001])
    by_names = {(t.first, t.second): t for t in found.tests}
    better, equal = by_names["good", "bad"], by_names["good", "twin"]
    assert better.p_adjusted < 1e-6
    assert better.auc.interval[0] > 0
    assert better.auc.p < 0.01
    assert equal.p > 0.05
    assert equal.auc.interval[0] < 0 < equal.auc.interval[1]
    assert list(better.tar_at_far) == ["0.1"]  # 300 impostor pairs are too few for .001
    assert better.p_adjusted >= better.p
    assert found.drawn == "pairs"
    assert better.balanced_accuracy.difference == pytest.approx(
        (accepted[0] == genuine).mean() - (accepted[1] == genuine).mean()
    )


def test_unequal_classes_are_compared_by_balanced_accuracy():
    draw = np.random.default_rng(3)
    genuine = np.arange(600) < 60
    score = draw.normal(size=600) + 2 * genuine
    never = np.zeros(600, bool)  # right about 540 of 600 pairs
    found = compare("ab", genuine, [score, score], [score >= 1, never], [])
    (test,) = found.tests
    assert test.balanced_accuracy.difference > 0.2
    assert test.p == test.balanced_accuracy.p < 0.01


def test_people_are_drawn_where_they_are_known():
    draw = np.random.default_rng(4)
    genuine = np.repeat([True, False], 300)
    person = np.arange(600) % 300 // 15  # 20 people with 15 pairs of each kind
    other = np.where(genuine, person, (person + 1) % 20)
    one, two = (draw.normal(size=600) + 2 * genuine + draw.normal(size=20)[person] for _ in "12")
    accepted = [one >= 1, two >= 1]
    by_pair = compare("ab", genuine, [one, two], accepted, []).tests[0]
    found = compare("ab", genuine, [one, two], accepted, [], (person, other))
    assert found.drawn == "people"
    by_person = found.tests[0]
    assert by_person.balanced_accuracy.difference == by_pair.balanced_accuracy.difference
    widths = [np.ptp(test.balanced_accuracy.interval) for test in (by_person, by_pair)]
    assert widths[0] > 1.3 * widths[1]
