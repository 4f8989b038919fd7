"""Limits of the histograms, on which dashboards rely."""

import re

import pytest
from tiny.bundles import error_table, tiny_bundle

from facepairs.server.metrics import Metrics
from facepairs.server.service import Service
from facepairs.verification.verifier import Verifier

TIMES = ["0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "+Inf"]


def test_limits_of_times_and_of_faces_and_how_many_requests_wait():
    metrics = Metrics(lambda: 3, [0.25, 0.75])
    metrics.seconds.labels("/").observe(0.3)
    text = metrics.text().decode()
    found = {
        name: re.findall(rf'^facepairs_{name}_bucket{{.*?le="([^"]+)"', text, re.MULTILINE)
        for name in ("request_seconds", "face_px", "score")
    }
    assert found == {
        "request_seconds": TIMES,
        "face_px": ["24.0", "36.0", "60.0", "100.0", "200.0", "400.0", "+Inf"],
        "score": ["0.25", "0.75", "+Inf"],
    }
    assert "\nfacepairs_queue 3.0\n" in text
    assert "\nprocess_cpu_seconds_total " in text


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ({"errors": error_table()}, [-0.1, 0.0, 0.5, 0.75, 1.0]),
        ({}, [step / 10 for step in range(-10, 11)]),
    ],
)
def test_scores_are_counted_between_those_of_known_rates(tmp_path, errors, expected):
    bundle = tiny_bundle(tmp_path / "b", "embedding", **errors)
    service = Service(Verifier.load(bundle.folder), None, False, 2**20)
    assert service.score_limits() == pytest.approx(expected)
    model = service.model()
    assert (model.gallery, model.max_bytes, bool(model.curve)) == (None, 2**20, bool(errors))
