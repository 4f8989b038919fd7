"""Quantiles and shares agree with SciPy's, from one pair to ten million."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from facepairs.evaluation.metrics.beta import (
    NORMAL_975,
    beta_quantile,
    beta_share,
    student_quantile_975,
)
from facepairs.evaluation.metrics.comparison import mcnemar
from facepairs.evaluation.metrics.intervals import clopper_pearson

COUNTS = st.integers(0, 3).flatmap(lambda power: st.integers(1, 10 * 100**power))


@given(n=COUNTS, share=st.floats(0, 1))
def test_clopper_pearson_is_scipys(n, share):
    k = round(n * share)
    # Not binomtest's interval, whose root is found to eight digits only.
    low = stats.beta.ppf(0.025, k, n - k + 1) if k else 0
    high = stats.beta.ppf(0.975, k + 1, n - k) if k < n else 1
    assert clopper_pearson(k, n) == pytest.approx((low, high), rel=1e-9, abs=0)


@given(
    share=st.floats(0.001, 0.999),
    a=st.floats(0.5, 1e5),
    b=st.floats(0.5, 1e5),
)
def test_quantiles_and_shares_are_scipys(share, a, b):
    x = beta_quantile(share, a, b)
    assert x == pytest.approx(stats.beta.ppf(share, a, b), rel=1e-9, abs=0)
    assert beta_share(x, a, b) == pytest.approx(stats.beta.cdf(x, a, b), rel=1e-9, abs=0)


@pytest.mark.parametrize("degrees", [1, 2, 9, 30, 1000])
def test_student_and_normal_quantiles_are_scipys(degrees):
    assert student_quantile_975(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-9)
    assert pytest.approx(stats.norm.ppf(0.975), rel=1e-15) == NORMAL_975


@given(first=st.integers(0, 300), second=st.integers(0, 300))
def test_mcnemar_is_the_exact_binomial_test(first, second):
    right = [True] * first + [False] * second
    wrong = [not one for one in right]
    expected = stats.binomtest(first, first + second).pvalue if right else 1.0
    assert mcnemar(right, wrong).p == pytest.approx(expected, rel=1e-9)
