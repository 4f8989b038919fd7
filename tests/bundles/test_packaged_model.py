"""The model in the package agrees with its card and the published results."""

import csv
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import onnxruntime
import pytest
from PIL import Image

from facepairs.bundles.bundle import CARD, FOLDER, IDENTITIES, MEASURED, MODEL, Bundle
from facepairs.bundles.model import open_model
from facepairs.bundles.writer import model_card
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import read_pairs
from facepairs.data.synth.faces import draw_face
from facepairs.evaluation.measurement import measure_scores
from facepairs.photos.crop import CropSpec, load_crop
from facepairs.verification.verifier import Verifier

SCORES = Path(__file__).parents[2] / "scripts" / "results" / "view2_included" / "scores.csv"


@pytest.fixture(scope="module")
def verifier():
    return Verifier.load()


@pytest.fixture(scope="module")
def photos():
    return [draw_face(3, person, photo) for person in range(2) for photo in range(2)]


def test_it_is_small_and_complete():
    sizes = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    training = sizes.pop(MODEL)  # for `--init default` and `export` alone
    assert sum(sizes.values()) <= 7_000_000  # network, manifest, identities, errors, card
    assert training <= 13_000_000
    bundle = Bundle.open(FOLDER)
    bundle.check_all()
    assert bundle.identities.to_bytes() == bundle.read(IDENTITIES)
    assert bundle.profile.to_bytes() == bundle.read(MEASURED)
    assert model_card(bundle.manifest, bundle.profile).encode() == bundle.read(CARD)


def test_its_form_in_float32_computes_what_keras_does(photos):
    from facepairs.training.keras_models import load_keras

    crops = np.stack([load_crop(photo, CropSpec(150, 150)) for photo in photos])
    network = open_model(None).network
    session = onnxruntime.InferenceSession(network.read_float32())
    (rows,) = session.run([network.output], {network.inputs[0]: crops})
    assert np.abs(rows - np.asarray(load_keras()(crops))).max() < 1e-5


def test_order_and_mirroring_do_not_matter(verifier, photos):
    changes = []
    for left, right in pairwise(photos):
        verdict = verifier.verify(left, right)
        turned = verifier.verify(right, left)
        assert (turned.score, turned.probability) == (verdict.score, verdict.probability)
        assert (turned.left, turned.right, turned.point) == (
            msgspec.structs.replace(verdict.right, photo="first image"),
            msgspec.structs.replace(verdict.left, photo="second image"),
            verdict.point,
        )
        mirrored = verifier.verify(np.ascontiguousarray(left[:, ::-1]), right)
        changes.append(abs(mirrored.probability - verdict.probability))
    assert np.median(changes) < 0.05


@pytest.mark.lfw
def test_a_mirrored_photo_of_lfw_changes_the_probability_little(verifier, lfw):
    index = FaceIndex.scan(lfw / "lfw-deepfunneled")
    pairs, _ = read_pairs(lfw / "pairs.txt", index)
    changes = []
    for left, right in zip(pairs.left[::100], pairs.right[::100], strict=True):
        photo, other = (np.asarray(Image.open(index.path(k))) for k in (left, right))
        as_it_is = verifier.verify(photo, other).probability
        mirrored = verifier.verify(np.ascontiguousarray(photo[:, ::-1]), other).probability
        changes.append(abs(mirrored - as_it_is))
    assert np.median(changes) < 0.001
    assert np.quantile(changes, 0.95) < 0.05


def test_its_result_follows_from_the_published_scores():
    summary = measure_scores(SCORES, "included").summary
    published = Bundle.open(FOLDER).manifest.view2
    assert published is not None
    assert published.accuracy == pytest.approx(summary.lfw_accuracy.value, abs=0.0005)
    assert published.accuracy >= 0.9925
    assert summary.true_accepts("0.001").value >= 0.970


def test_its_errors_are_those_of_the_published_scores():
    with open(SCORES, newline="") as handle:
        rows = [(float(row["score"]), row["genuine"] == "1") for row in csv.DictReader(handle)]
    profile = Bundle.open(FOLDER).profile
    for threshold in (profile.balanced_threshold, *(row.threshold for row in profile.thresholds)):
        expected = profile.errors.at(threshold)
        passed = sum(score >= threshold for score, genuine in rows if not genuine)
        missed = sum(score < threshold for score, genuine in rows if genuine)
        for rate, count in ((expected.fnmr, missed), (expected.fmr, passed)):
            low, high = rate.interval  # other pairs of the same people
            margin = (3 * (3000 * rate.value) ** 0.5 + 1) / 3000
            assert low - margin <= count / 3000 <= high + margin


def test_its_probability_is_calibrated():
    ece = Bundle.open(FOLDER).profile.calibration.ece
    assert ece is not None
    assert ece <= 0.03
