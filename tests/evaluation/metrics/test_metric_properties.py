"""Properties of the metrics that no scores may break, and slow versions that they agree with."""

import math
from fractions import Fraction
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from by_hand import accuracy, error_rates
from figures import checked, figures_of
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from facepairs.errors import BadData, NotEnough
from facepairs.evaluation.metrics import curves
from facepairs.evaluation.metrics.curves import threshold_at_fmr
from facepairs.evaluation.metrics.estimates import area
from facepairs.evaluation.metrics.intervals import PeopleOfPairs, clopper_pearson
from facepairs.support.results import to_plain

auc, eer = checked(curves.auc), checked(curves.eer)
best_threshold = checked(curves.best_threshold)
threshold_at_far = checked(curves.threshold_at_far)

unhurried = settings(deadline=None)  # the first call imports SciPy
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TIED = st.integers(-3, 3).map(float)


@st.composite
def pairs(draw, values=FINITE | TIED, min_size=2, max_size=16):
    """Return genuine bool[N] and score float64[N] with a pair of either class, often with ties."""
    rows = draw(st.lists(st.tuples(st.booleans(), values), min_size=min_size, max_size=max_size))
    genuine = np.array([row[0] for row in rows])
    genuine[:2] = draw(st.sampled_from([(True, False), (False, True)]))
    return genuine, np.array([row[1] for row in rows])


@checked
def auc_interval(genuine, score):
    independent = PeopleOfPairs(None, len(genuine))
    return area(independent, genuine, score).interval(independent, genuine)


# Slow, independent versions.


def slow_auc(genuine, score):
    won = Fraction(0)
    for a in score[genuine]:
        for b in score[~genuine]:
            won += Fraction(int(a > b)) + Fraction(int(a == b), 2)
    return won / (int(genuine.sum()) * int((~genuine).sum()))


def slow_rates(genuine, score, threshold):
    accepts = [s >= threshold for s in score]
    impostors = [a for a, g in zip(accepts, genuine, strict=True) if not g]
    hits = [a for a, g in zip(accepts, genuine, strict=True) if g]
    return Fraction(sum(impostors), len(impostors)), Fraction(len(hits) - sum(hits), len(hits))


def slow_eer(genuine, score):
    points = [slow_rates(genuine, score, t) for t in [math.inf, *sorted(set(score), reverse=True)]]
    for (fmr0, fnmr0), (fmr1, fnmr1) in pairwise(points):
        if fmr1 >= fnmr1:  # fmr0 + t (fmr1 - fmr0) = fnmr0 + t (fnmr1 - fnmr0)
            t = (fnmr0 - fmr0) / ((fmr1 - fmr0) - (fnmr1 - fnmr0))
            return fmr0 + t * (fmr1 - fmr0)
    raise AssertionError("the curve ends at FMR 1, FNMR 0")


def tars(genuine, score, far):
    threshold = threshold_at_far(genuine, score, far)
    return None if threshold is None else (score[genuine] >= threshold).mean()


# ROC, AUC, EER.


@unhurried
@given(pairs())
def test_auc_and_eer_agree_with_slow_versions(data):
    assert auc(*data) == float(slow_auc(*data))
    assert eer(*data) == pytest.approx(float(slow_eer(*data)), abs=1e-12)


@unhurried
@given(pairs(), st.data())
def test_strictly_monotone_maps_of_scores_change_no_rate(data, more):
    genuine, score = data
    values, rank = np.unique(score, return_inverse=True)
    images = more.draw(
        st.lists(FINITE, min_size=len(values), max_size=len(values), unique=True).map(sorted)
    )
    mapped = genuine, np.array(images)[rank]
    assert auc(*data) == auc(*mapped)
    assert eer(*data) == eer(*mapped)
    assert auc_interval(*data) == auc_interval(*mapped)
    for far in (0.3, 0.6):
        accepted = [tars(*one, far) for one in (data, mapped)]
        assert accepted[0] == accepted[1]


@unhurried
@given(pairs())
def test_swapped_labels_and_negated_scores_mirror_the_metrics(data):
    genuine, score = data
    mirrored = ~genuine, -score
    assert auc(*data) == auc(*mirrored)
    assert auc(~genuine, score) == pytest.approx(1 - auc(*data), abs=1e-15)
    assert eer(*data) == pytest.approx(eer(*mirrored), abs=1e-12)
    assert auc_interval(*data) == pytest.approx(auc_interval(*mirrored), abs=1e-9)


# Thresholds.


@unhurried
@given(pairs())
def test_no_threshold_is_more_accurate_than_best_threshold(data):
    def balanced(threshold):
        rates = error_rates(data[0], np.asarray(data[1]) >= threshold)
        return 1 - (rates.fmr + rates.fnmr) / 2

    best = balanced(best_threshold(*data))
    for threshold in [*data[1], math.inf]:
        assert balanced(threshold) <= best + 1e-12


@unhurried
@given(st.lists(FINITE | TIED, min_size=1, max_size=40), st.floats(0, 1, exclude_max=True))
def test_threshold_at_fmr_is_the_smallest_that_keeps_to_it(scores, fmr):
    def measured(threshold):
        return sum(s >= threshold for s in scores) / len(scores)

    threshold = threshold_at_fmr(np.array(scores), fmr)
    assert measured(threshold) <= fmr
    assert measured(math.nextafter(threshold, -math.inf)) > fmr


# TAR at FAR, and intervals.


@unhurried
@given(pairs(min_size=20, max_size=40), st.sampled_from([0.2, 0.3, 0.5, 0.9]))
def test_tar_is_the_best_tmr_of_the_roc_within_the_far(data, far):
    tar = tars(*data, far)
    assume(tar is not None)
    from sklearn.metrics import roc_curve

    fmr, tmr, _ = roc_curve(*data, drop_intermediate=False)
    assert tar == pytest.approx(tmr[fmr <= far].max(), abs=1e-12)


@unhurried
@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_clopper_pearson_contains_the_share_and_is_symmetric(kn):
    k, n = kn
    low, high = clopper_pearson(k, n)
    assert 0 <= low <= k / n <= high <= 1
    assert low < high
    mirrored = clopper_pearson(n - k, n)
    assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=1e-9)


# Whatever the scores are.


MEASURES = {
    "auc": auc,
    "eer": eer,
    "auc_interval": lambda genuine, score: auc_interval(genuine, score)[0],
    "fmr": lambda genuine, score: figures_of(genuine, score, 0.0).point.errors.fmr.value,
    "fnmr": lambda genuine, score: figures_of(genuine, score, 0.0).point.errors.fnmr.value,
    "tar": lambda genuine, score: tars(genuine, score, 0.5) or 0,
    "best": lambda genuine, score: accuracy(genuine, score, best_threshold(genuine, score)),
}


ANY = st.floats(allow_nan=True, allow_infinity=True) | TIED


@unhurried
@given(st.lists(st.tuples(st.booleans(), ANY), max_size=12), st.sampled_from(list(MEASURES)))
def test_any_pairs_give_a_rate_or_the_right_error(rows, name):
    genuine, score = np.array([r[0] for r in rows], bool), np.array([r[1] for r in rows], float)
    wanted = None
    if not len(rows) or (np.isfinite(score).all() and len(set(genuine.tolist())) < 2):
        wanted = NotEnough
    elif not np.isfinite(score).all():
        wanted = BadData
    if wanted is None:
        assert 0 <= MEASURES[name](genuine, score) <= 1
    else:
        with pytest.raises(wanted):
            MEASURES[name](genuine, score)


@unhurried
@given(pairs(max_size=40), st.randoms(use_true_random=False), st.sampled_from([None, 0.5]))
def test_summary_does_not_depend_on_pair_order(data, random, threshold):
    genuine, score = data
    fold = np.arange(len(score)) % 3
    order = list(range(len(score)))
    random.shuffle(order)
    try:
        summary = figures_of(genuine, score, threshold, fold)
    except NotEnough:
        reject()
    shuffled = figures_of(genuine[order], score[order], threshold, fold[order])
    summed = ("auc", "balanced_accuracy", "accuracy", "lfw_accuracy", "tar_at_far")
    for name in summed:  # intervals from sums of floats
        found, wanted = (to_plain({name: getattr(one, name)}) for one in (shuffled, summary))
        assert found == approx(wanted)
    assert (
        msgspec.structs.replace(shuffled, **{name: getattr(summary, name) for name in summed})
        == summary
    )


def approx(plain):
    """Return nested plain values, to be compared but for rounding."""
    if isinstance(plain, dict):
        return {name: approx(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [approx(value) for value in plain]
    return pytest.approx(plain, abs=1e-9) if isinstance(plain, float) else plain
