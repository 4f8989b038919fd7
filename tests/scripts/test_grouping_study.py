"""Agreement of groups with people: against scikit-learn and by definition."""

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes.script_runner import ROOT

from facepairs.errors import NotEnough

labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=40)


@pytest.fixture(scope="module")
def agreement():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts" / "studies"))
        return importlib.import_module("grouping").agreement


@given(labels)
def test_agrees_with_scikit_learn_and_the_definitions(agreement, rows):
    from sklearn.metrics import v_measure_score
    from sklearn.metrics.cluster import pair_confusion_matrix

    person, group = np.array(rows).T
    found = agreement(person, group).figures
    (_, mixed), (missed, joined) = pair_confusion_matrix(person, group) / 2
    for name, part, whole in (
        ("pair_precision", joined, joined + mixed),
        ("pair_recall", joined, joined + missed),
    ):
        rate = found[name]
        assert (rate is None) == (whole == 0)
        assert rate is None or rate.value == pytest.approx(part / whole)
    assert found["v_measure"].value == pytest.approx(v_measure_score(person, group))
    precision = [np.mean(person[group == group[i]] == person[i]) for i in range(len(rows))]
    assert found["b3_precision"].value == pytest.approx(np.mean(precision))
    assert all(
        rate.interval[0] <= rate.value <= rate.interval[1] for rate in found.values() if rate
    )


def test_nobody_cannot_be_measured(agreement):
    with pytest.raises(NotEnough):
        agreement([], [])
