"""Thresholds to choose from: against a slower count."""

import numpy as np
import pytest

from facepairs.evaluation.report.tradeoff import trade_offs


def test_trade_offs_are_those_that_one_counts_by_hand():
    draw = np.random.Generator(np.random.Philox(0))
    genuine = np.arange(1400) < 400
    score = draw.normal(size=1400) + 2 * genuine
    alike = ~genuine & (draw.random(1400) < 0.2)
    rows = trade_offs(genuine, score, 3 * alike)
    assert [(row.among, row.one_in) for row in rows] == [
        ("strangers", 10),
        ("strangers", 30),
        ("strangers", 100),
        ("strangers", 300),
        ("look-alikes", 10),
        ("look-alikes", 30),
    ]
    for row in rows:
        impostor = score[alike if row.among == "look-alikes" else ~genuine]
        assert row.impostor_pairs == len(impostor)
        accepted = (impostor >= row.threshold).sum()
        assert accepted <= len(impostor) / row.one_in < accepted + 1
        missed = (score[genuine] < row.threshold).mean()
        assert row.fnmr == pytest.approx(missed)
        assert row.fnmr_interval[0] <= missed <= row.fnmr_interval[1]
    assert {row.among for row in trade_offs(genuine, score)} == {"strangers"}


def test_rates_that_the_pairs_cannot_support_are_left_out():
    genuine = np.array([True, False] * 5)
    assert trade_offs(genuine, np.arange(10.0)) == []
    assert trade_offs(genuine, np.arange(10.0), np.zeros(10, int)) == []
