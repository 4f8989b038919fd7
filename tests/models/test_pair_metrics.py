"""`PairMetrics` gives the figures of the evaluation's own functions."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import facepairs
from facepairs.evaluation.metrics.curves import auc, threshold_at_far

PAIRS = st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), min_size=2, max_size=80)


def expected(genuine, scores, far):
    threshold = threshold_at_far(genuine, scores, far)
    return np.nan if threshold is None else float((scores[genuine] >= threshold).mean())


@settings(max_examples=30, deadline=None)
@given(PAIRS)
def test_figures_are_those_of_the_evaluation_with_ties(pairs):
    genuine = np.array([True, False, *(one for one, _ in pairs)])
    scores = np.array([0.5, 0.25, *(score for _, score in pairs)], np.float64)
    metrics = facepairs.PairMetrics((0.1, 0.5))
    for part in np.array_split(np.arange(len(scores)), 3)[::-1]:  # the larger parts last
        metrics.update_state(genuine[part].astype(np.float32), scores[part, None])
    figures = {name: float(value) for name, value in metrics.result().items()}
    assert figures == pytest.approx(
        {
            "pair_auc": auc(genuine, scores),
            "pair_tar_at_far_0.1": expected(genuine, scores, 0.1),
            "pair_tar_at_far_0.5": expected(genuine, scores, 0.5),
        },
        nan_ok=True,
        abs=1e-5,
    )


def test_embeddings_are_scored_by_their_cosine_and_the_latest_pairs_count():
    metrics = facepairs.PairMetrics((), capacity=4)
    rows = np.float32([[[1, 0], [1, 0]], [[1, 0], [0, 1]]])
    metrics.update_state([0, 1], rows)
    assert float(metrics.result()["pair_auc"]) == 0
    metrics.update_state([1, 0, 1, 0], np.concatenate([rows, rows]))
    assert float(metrics.result()["pair_auc"]) == 1
    metrics.reset_state()
    assert np.isnan(metrics.result()["pair_auc"])


@pytest.mark.parametrize(("impostors", "is_told"), [(29, False), (30, True)])
def test_a_rate_is_told_from_three_expected_false_accepts_on(impostors, is_told):
    metrics = facepairs.PairMetrics((0.1,))
    scores = np.arange(impostors + 1, dtype=np.float32)[::-1, None]
    metrics.update_state([1] + [0] * impostors, scores)
    tar = float(metrics.result()["pair_tar_at_far_0.1"])
    assert tar == 1 if is_told else np.isnan(tar)


def test_fit_logs_the_figures_and_keras_restores_the_metric():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[facepairs.PairMetrics()])
    rows, genuine = np.eye(3, dtype=np.float32)[[0, 1, 2, 0]], np.float32([0, 1, 0, 1])
    found = model.fit(rows, genuine, validation_data=(rows, genuine), verbose=0).history
    assert {"pair_auc", "val_pair_auc", "val_pair_tar_at_far_0.01"} <= set(found)
    metrics = facepairs.PairMetrics((0.2,), prefix="")
    again = facepairs.PairMetrics.from_config(metrics.get_config())
    assert list(again.result()) == ["auc", "tar_at_far_0.2"]
