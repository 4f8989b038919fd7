"""Every verdict says at which threshold it was made, and which errors to expect there."""

import math
from dataclasses import replace

import numpy as np
import pytest
from drawn.photos import noise_photos
from tiny.bundles import AMONG_LOOKALIKES, embedding_network, score_pairs, tiny_bundle

from facepairs.bundles.error_profile import Calibration, ErrorProfile
from facepairs.bundles.rates import OperatingPoint
from facepairs.errors import BadConfig, BadData
from facepairs.support.results import SCHEMA
from facepairs.verification.verdict import Verdict, verdict_rows
from facepairs.verification.verifier import Verifier


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return noise_photos(tmp_path_factory.mktemp("photos"), 2)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A verifier that knows its errors: threshold .75 by default, .5 balanced."""
    folder = tmp_path_factory.mktemp("known") / "bundle"
    return Verifier.load(tiny_bundle(folder, **AMONG_LOOKALIKES).folder, threads=1)


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """A verifier like those that older versions wrote: balanced, errors not known."""
    folder = tmp_path_factory.mktemp("older") / "bundle"
    bundle = tiny_bundle(folder, "embedding", calibration=Calibration(20.0, -10.0))
    return Verifier.load(bundle.folder, threads=1)


def verdict_of(known, score, threshold, curve):
    """Return the verdict of a model with another calibration, or with none."""
    model = replace(known.model, profile=ErrorProfile(calibration=curve))
    return Verdict.of(model, score, OperatingPoint(threshold))


def test_without_a_threshold_or_a_calibration_there_is_a_score_alone(known):
    verdict = verdict_of(known, 0.25, None, None)
    assert (verdict.threshold, verdict.words) == (None, "none: no threshold")
    assert verdict.describe_probability() == "none: not calibrated"
    values = verdict.to_json()
    assert (values["same"], values["probability"]) == (None, None)
    assert values["verdict"] == "none: no threshold"
    assert (values["score"], values["left"], values["right"]) == (0.25, None, None)
    assert values["schema"] == SCHEMA
    with pytest.raises(BadData):
        bool(verdict)


@pytest.mark.parametrize(
    ("same", "probability", "words"),
    [
        (True, 0.2, "same person"),
        (False, 0.5, "not confirmed"),
        (False, 0.499, "different people"),
        (False, None, "different people"),
    ],
)
def test_a_verdict_in_words(known, same, probability, words):
    odds = probability and probability / (1 - probability)
    curve = None if odds is None else Calibration(1.0, math.log(odds))  # at the score 0
    verdict = verdict_of(known, 0.0, -1.0 if same else 1.0, curve)
    assert verdict.probability == (probability and pytest.approx(probability))
    assert (verdict.words, verdict.to_json()["verdict"]) == (words, words)
    assert bool(verdict) is same


def test_the_promise_of_the_bundle_decides_and_its_errors_come_along(known, photos):
    point = known.verify(*photos).point
    assert (point.name, point.threshold, point.max_fmr) == ("fmr-0.01", 0.75, 0.01)
    assert (point.errors.fmr.value, point.errors.lookalike_fmr.value) == (0.001, 0.01)
    assert point.label == "FMR 1 % among look-alikes"


def test_other_thresholds_have_their_errors_too(known, photos):
    for options, name, threshold, fmr in (
        ({"max_fmr": 0.01}, "fmr-0.01", 0.75, 0.001),
        ({"threshold": 0.0}, "threshold", 0.0, 0.4),
        ({"threshold": 0.6}, "threshold", 0.6, pytest.approx(0.0064)),
    ):
        verdict = known.verify(*photos, **options)
        assert (verdict.point.name, verdict.threshold) == (name, threshold)
        assert verdict.point.errors.fmr.value == fmr
        assert verdict.same == (verdict.score >= threshold)
    with pytest.raises(BadConfig):
        known.verify(*photos, threshold=0.5, max_fmr=0.01)
    with pytest.raises(BadConfig):
        known.verify(*photos, max_fmr=0.5)


def test_an_older_bundle_is_balanced_and_says_that_its_errors_are_unknown(older, photos):
    verdict = older.verify(*photos)
    assert (verdict.point.name, verdict.threshold) == ("balanced", 0.5)
    assert verdict.point.describe().startswith("unknown")
    assert "errors" not in verdict.to_json()["operating_point"]


def test_the_words_of_a_verdict(known):
    point = known.operating_point()  # .75; the probability is one half at .5
    for score, words, same in (
        (0.75, "same person", True),
        (0.74, "not confirmed", False),
        (0.5, "not confirmed", False),
        (0.49, "different people", False),
    ):
        verdict = Verdict.of(known.model, score, point)
        assert (verdict.words, verdict.same, bool(verdict)) == (words, same, same)
        assert verdict.to_json()["verdict"] == words
        assert verdict_rows(verdict)[0][1].startswith(words)
    assert Verdict.of(known.model, 0.9, OperatingPoint(None)).words == "none: no threshold"


def test_a_prior_moves_the_probability_and_is_named(known, photos):
    point = known.operating_point()
    equal, rare = (
        Verdict.of(known.model, 0.6, point),
        Verdict.of(known.model, 0.6, point, prior=0.01),
    )
    odds = equal.probability / (1 - equal.probability) / 99
    assert rare.probability == pytest.approx(odds / (1 + odds))
    assert equal.describe_probability() == f"{equal.probability:.3f} (at equal priors)"
    assert rare.describe_probability() == f"{rare.probability:.3f} (at prior 0.01)"
    for score, word in ((1.0, "above"), (-1.0, "below")):
        assert word in Verdict.of(known.model, score, point).describe_probability()
    assert (equal.words, rare.words) == ("not confirmed", "different people")
    assert known.verify(*photos, prior=0.2).to_json()["prior"] == 0.2
    for prior in (0, 1, -1, 2, math.nan):
        with pytest.raises(BadConfig):
            known.verify(*photos, prior=prior)


@pytest.mark.parametrize("threshold", [90, 1.1, -1.0001])
def test_thresholds_that_no_cosine_reaches_are_refused(known, photos, threshold):
    with pytest.raises(BadConfig):
        known.verify(*photos, threshold=threshold)


def test_no_cosine_is_above_one(tmp_path):
    bundle = tiny_bundle(tmp_path / "wide", "embedding", embedding_network(width=301))
    verifier = Verifier.load(bundle.folder)
    rng = np.random.default_rng(3)
    crops = rng.integers(0, 256, (64, 16, 16, 3), np.uint8)
    scores = score_pairs(verifier.scorer, crops, crops)
    assert np.abs(scores).max() <= 1
    assert scores == pytest.approx(1, abs=1e-6)
    rows = verifier.scorer.represent(crops)
    assert verifier.compare(rows, -rows).min() == -1
