"""The model in the package agrees with its card and the published results."""

import csv
import json
import statistics
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from facepairs.bundles.bundle import MODEL, Bundle
from facepairs.bundles.default import FOLDER
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import read_pairs
from facepairs.data.synth.faces import draw_face
from facepairs.verification.verifier import Verifier

RESULTS = Path(__file__).parents[2] / "scripts" / "results" / "view2_aligned" / "siamese"


@pytest.fixture(scope="module")
def verifier():
    return Verifier.load()


@pytest.fixture(scope="module")
def photos():
    return [draw_face(3, person, photo) for person in range(2) for photo in range(2)]


def test_it_is_small_and_complete():
    sizes = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    training = sizes.pop(MODEL)  # for `--init default` and `export` alone
    assert sum(sizes.values()) <= 12_000_000  # network, manifest, identities, errors, card
    assert training <= 9_000_000
    Bundle.open(FOLDER).check_all()


def test_order_and_mirroring_do_not_matter(verifier, photos):
    changes = []
    for left, right in pairwise(photos):
        verdict = verifier.verify(left, right)
        assert verifier.verify(right, left) == verdict
        mirrored = verifier.verify(np.ascontiguousarray(left[:, ::-1]), right)
        changes.append(abs(mirrored.probability - verdict.probability))
    assert np.median(changes) < 0.05


@pytest.mark.lfw
def test_a_mirrored_photo_of_lfw_changes_the_probability_little(verifier, lfw):
    index = FaceIndex.scan(lfw / "lfw-deepfunneled")
    pairs = read_pairs(lfw / "pairs.txt", index)
    changes = []
    for left, right in zip(pairs.left[::100], pairs.right[::100], strict=True):
        photo, other = (np.asarray(Image.open(index.path(k))) for k in (left, right))
        as_it_is = verifier.verify(photo, other).probability
        mirrored = verifier.verify(np.ascontiguousarray(photo[:, ::-1]), other).probability
        changes.append(abs(mirrored - as_it_is))
    assert np.median(changes) < 0.001
    assert np.quantile(changes, 0.95) < 0.05


def test_its_figures_equal_those_of_the_published_scores():
    result = json.loads((RESULTS / "result.json").read_text())
    folds = {row["fold"]: row for row in result["folds"]}
    right: dict[int, list[bool]] = {fold: [] for fold in folds}
    with open(RESULTS / "scores.csv", newline="") as handle:
        for row in csv.DictReader(handle):
            accepted = float(row["score"]) >= folds[int(row["fold"])]["threshold"]
            right[int(row["fold"])].append(accepted == (row["genuine"] == "1"))
    assert [len(answers) for answers in right.values()] == [600] * 10
    accuracy = [statistics.mean(answers) for answers in right.values()]
    error = statistics.stdev(accuracy) / 10**0.5
    published = Bundle.open(FOLDER).results.view2
    assert published is not None
    for mean, spread in (
        (result["accuracy"], result["accuracy_standard_error"]),
        (published.accuracy, published.accuracy_standard_error),
    ):
        assert mean == pytest.approx(statistics.mean(accuracy))
        assert spread == pytest.approx(error)


def test_its_errors_are_those_of_the_published_scores():
    with open(RESULTS / "scores.csv", newline="") as handle:
        rows = [(float(row["score"]), row["genuine"] == "1") for row in csv.DictReader(handle)]
    bundle = Bundle.open(FOLDER)
    for threshold in (bundle.threshold, *(row.threshold for row in bundle.thresholds)):
        expected = bundle.errors.at(threshold)
        passed = sum(score >= threshold for score, genuine in rows if not genuine)
        missed = sum(score < threshold for score, genuine in rows if genuine)
        assert expected.fnmr.rate == pytest.approx(missed / 3000, abs=0.002)
        low, high = expected.fmr.interval  # other impostor pairs of the same people
        margin = 3 * (expected.fmr.rate / 3000) ** 0.5
        assert low - margin <= passed / 3000 <= high + margin


def test_its_probability_is_calibrated():
    ece = Bundle.open(FOLDER).calibration.ece
    assert ece is not None
    assert ece <= 0.03
