"""What figures draw is what was measured."""

import numpy as np
import pytest
from sklearn.metrics import roc_curve
from tiny.scores import invented, write_method

from facepairs.evaluation.evaluate import evaluate
from facepairs.evaluation.metrics.reliability import reliability_curve
from facepairs.evaluation.report.figures import (
    DASHES,
    HIGH,
    LONGEST_NAME,
    SERIES,
    percent_tick,
    series,
    shorten_name,
)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("figures")
    return evaluate(write_method(root / "fisher", invented()))


@pytest.fixture(scope="module")
def drawn(found):
    """The axes of each figure."""
    return {key: figure.figure.axes[0] for key, figure in found.figures().items()}


def errors_of(found):
    errors = found.summary.default_point.errors
    return errors.fmr.value, errors.fnmr.value


def test_curves_pass_through_all_thresholds_and_a_dot_is_where_the_verifier_decides(found, drawn):
    pairs = found.measurements[0].pairs
    fmr, tmr, _ = roc_curve(pairs.genuine, pairs.score, drop_intermediate=False)
    guessing, curve = (line.get_xydata() for line in drawn["roc"].lines)
    assert guessing.tolist() == [[0, 0], [1, 1]]
    assert curve == pytest.approx(np.stack([fmr, tmr], axis=1))
    (dot,) = drawn["roc"].collections
    at = errors_of(found)
    assert dot.get_offsets().tolist() == [[at[0], 1 - at[1]]]
    low = 0.5 / found.summary.impostor_pairs
    equal, curve = (line.get_xydata() for line in drawn["det"].lines)
    assert equal.tolist() == [[low, low], [HIGH, HIGH]]
    rates = np.stack([fmr, 1 - tmr], axis=1).clip(low, 1 - low)
    assert curve == pytest.approx(rates)
    (dot,) = drawn["det"].collections
    assert dot.get_offsets().tolist() == [list(at)]
    for side in (drawn["det"].get_xlim(), drawn["det"].get_ylim()):
        assert side == pytest.approx((low, HIGH))
    assert drawn["det"].get_xticks().tolist() == [0.01, 0.05, 0.2, 0.5, 0.8]
    texts = [text.get_text() for text in drawn["det"].get_xticklabels()]
    assert texts == ["1 %", "5 %", "20 %", "50 %", "80 %"]


def test_histograms_have_the_shares_of_both_kinds_and_the_thresholds(found, drawn):
    one, axes = found.measurements[0], drawn["scores-1"]
    genuine, score = one.pairs.genuine, one.pairs.score
    edges = np.histogram_bin_edges(score, 50)
    shares = [np.histogram(score[kind], edges)[0] / kind.sum() for kind in (~genuine, genuine)]
    for number, patch in enumerate(axes.patches):  # filled, then its outline
        values, at, _ = patch.get_data()
        assert values == pytest.approx(shares[number // 2])
        assert at == pytest.approx(edges)
    assert axes.get_xlim() == (edges[0], edges[-1])
    assert axes.get_ylim() == pytest.approx((0, 1.04 * np.max(shares)))
    thresholds = [fold.threshold for fold in found.summary.folds]
    assert len(set(thresholds)) > 2
    shown = [line.get_xdata()[0] for line in axes.lines]
    assert shown == [min(thresholds), max(thresholds)]
    fmr, fnmr = errors_of(found)
    labels = [line.get_label() for line in axes.lines]
    assert labels[0].endswith(f": {100 * fmr:.2f} % pass, {100 * fnmr:.2f} % missed")
    assert labels[1].startswith("_")  # no second line in the legend


def test_reliability_has_its_bins_on_the_diagonal_of_a_perfect_one(found, drawn):
    one, axes = found.measurements[0], drawn["reliability-1"]
    bins = reliability_curve(one.pairs.genuine, one.probability, one.lookalike)
    perfect, curve = (line.get_xydata() for line in axes.lines)
    points = np.stack([bins.probability, bins.genuine_share], axis=1)
    assert perfect.tolist() == [[0, 0], [1, 1]]
    assert curve == pytest.approx(points)
    (dots,) = axes.collections
    assert np.asarray(dots.get_offsets()) == pytest.approx(points)
    heaviest = dots.get_sizes().argmax()
    assert bins.weight[heaviest] == bins.weight.max()
    assert axes.texts[0].get_text().endswith(f" {found.summary.ece:.4f}")


def test_names_and_lines_can_be_told_apart():
    assert shorten_name("a" * LONGEST_NAME) == "a" * LONGEST_NAME
    assert shorten_name("a" * (LONGEST_NAME + 1)) == "a" * (LONGEST_NAME - 1) + "…"
    assert not shorten_name("_mine").startswith("_")  # which matplotlib leaves out
    looks = [tuple(map(str, series(place).values())) for place in range(len(SERIES))]
    assert len(set(looks)) == len(SERIES) == len(DASHES)
    assert series(len(SERIES)) == series(0)
    assert [percent_tick(value, 0) for value in (0.1234567, 0.5, 1)] == [
        "12.3457 %",
        "50 %",
        "100 %",
    ]
