"""Comparisons against what one can count by hand, and against other ways to the same figure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facepairs.evaluation.metrics.comparison import compare
from facepairs.evaluation.metrics.curves import auc, threshold_at_far
from facepairs.evaluation.metrics.intervals import PeopleOfPairs


def alone(genuine):
    return PeopleOfPairs(None, len(genuine))


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=25, deadline=None)
def test_differences_agree_with_the_metrics(seed, tied):
    draw = np.random.default_rng(seed)
    genuine = np.arange(60) % 2 == 0
    score = draw.normal(size=60) + genuine
    score = np.round(score) if tied else score
    found = compare("ab", genuine, [score, -score], [genuine, ~genuine], [0.1], alone(genuine))
    (two,) = found.differences
    assert two.auc.difference == pytest.approx(auc(genuine, score) - auc(genuine, -score))
    tars = [(s[genuine] >= threshold_at_far(genuine, s, 0.1)).mean() for s in (score, -score)]
    assert two.tar_at_far["0.1"].difference == pytest.approx(tars[0] - tars[1])


def test_only_pairs_on_which_verifiers_differ_count():
    draw = np.random.default_rng(1)
    genuine = np.arange(200) % 2 == 0
    score = draw.normal(size=200) + genuine
    above = score >= 0.5
    found = compare("ab", genuine, [score, 3 * score - 1], [above] * 2, [0.1], alone(genuine))
    (two,) = found.differences
    for gap in (two.balanced_accuracy, two.auc, two.tar_at_far["0.1"]):
        # Same order of pairs, same shares: as if no genuine pair had been missed by one alone.
        most = 1 - 0.025 ** (0.01 if gap is two.tar_at_far["0.1"] else 0.005)
        assert gap.difference == pytest.approx(0, abs=1e-12)
        assert gap.interval == pytest.approx((-most, most))
    (two,) = compare(
        "ab", genuine, [score, -score], [above, ~above], [], alone(genuine)
    ).differences
    low, high = two.auc.interval
    assert low < 2 * auc(genuine, score) - 1 < high
    assert 0.1 < high - low < 0.5


def test_a_better_verifier_is_distinguished_from_an_equal_one():
    draw = np.random.default_rng(2)
    genuine = np.arange(600) % 2 == 0
    good = draw.normal(size=600) + 2 * genuine
    bad = draw.normal(size=600) + 0.5 * genuine
    twin = draw.normal(size=600) + 2 * genuine
    accepted = [s >= m for s, m in ((good, 1), (bad, 0.25), (twin, 1))]
    found = compare(
        ("good", "bad", "twin"),
        genuine,
        [good, bad, twin],
        accepted,
        [0.1, 0.001],
        alone(genuine),
    )
    by_names = {(t.first, t.second): t for t in found.differences}
    better, equal = by_names["good", "bad"], by_names["good", "twin"]
    assert better.auc.interval[0] > 0
    assert equal.auc.interval[0] < 0 < equal.auc.interval[1]
    assert list(better.tar_at_far) == ["0.1"]  # 300 impostor pairs are too few for .001
    assert found.independent == "pairs"
    assert better.balanced_accuracy.difference == pytest.approx(
        (accepted[0] == genuine).mean() - (accepted[1] == genuine).mean()
    )


def test_unequal_classes_are_compared_by_balanced_accuracy():
    draw = np.random.default_rng(3)
    genuine = np.arange(600) < 60
    score = draw.normal(size=600) + 2 * genuine
    never = np.zeros(600, bool)  # right about 540 of 600 pairs
    found = compare("ab", genuine, [score, score], [score >= 1, never], [], alone(genuine))
    (two,) = found.differences
    assert two.balanced_accuracy.difference > 0.2
    assert two.balanced_accuracy.interval[0] > 0


def test_people_are_independent_where_they_are_known():
    draw = np.random.default_rng(4)
    genuine = np.repeat([True, False], 300)
    person = np.arange(600) % 300 // 15  # 20 people with 15 pairs of each kind
    other = np.where(genuine, person, (person + 1) % 20)
    one, two = (draw.normal(size=600) + 2 * genuine + draw.normal(size=20)[person] for _ in "12")
    accepted = [one >= 1, two >= 1]
    by_pair = compare("ab", genuine, [one, two], accepted, [], alone(genuine)).differences[0]
    found = compare(
        "ab", genuine, [one, two], accepted, [], PeopleOfPairs((person, other), len(genuine))
    )
    assert found.independent == "people"
    by_person = found.differences[0]
    assert by_person.balanced_accuracy.difference == by_pair.balanced_accuracy.difference
    widths = [np.ptp(two.balanced_accuracy.interval) for two in (by_person, by_pair)]
    assert widths[0] > 1.3 * widths[1]


def test_errors_of_verify_are_compared_and_shown_by_one_rule():
    draw = np.random.default_rng(6)
    genuine = np.arange(400) % 2 == 0
    scores = [draw.normal(size=400) + 2 * genuine, draw.normal(size=400) + genuine]
    balanced, strict = ([score >= cut for score in scores] for cut in (1.0, 1.5))
    for decided in (strict, None):
        found = compare("ab", genuine, scores, balanced, [], alone(genuine), decided=decided)
        used = decided or balanced
        assert found.errors_by == ("verify" if decided else "balanced")
        (two,) = found.differences
        for gap, members, events in (
            (two.fmr, ~genuine, used),
            (two.fnmr, genuine, [~one for one in used]),
        ):
            rates = [float(one[members].mean()) for one in events]
            assert gap.difference == pytest.approx(rates[0] - rates[1])
            # Independent pairs: the variance of the difference of the pairs themselves.
            each = events[0][members].astype(float) - events[1][members]
            half = 1.96 * each.std() / np.sqrt(members.sum())
            low, high = gap.interval
            independent = 2 * np.hypot(half, 1 - 0.025**0.005)
            assert 0.99 * independent < high - low < 1.05 * independent
        for one, accepted in zip(found.verifiers, used, strict=True):
            assert one.fmr.value == pytest.approx(accepted[~genuine].mean())
            assert one.fnmr.value == pytest.approx((~accepted)[genuine].mean())
            assert one.fmr.interval[0] < one.fmr.value < one.fmr.interval[1]
