import io
import re

import numpy as np
import pytest
from drawn.photos import noise_photos
from PIL import Image
from tiny.bundles import score_pairs

from facepairs.errors import BadBundle, BadConfig, BadData, BadImage
from facepairs.verification.verifier import Verifier

IMAGES = 12


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return noise_photos(tmp_path_factory.mktemp("photos"), IMAGES, (40, 32))


def decision(verdict):
    return verdict.score, verdict.same, verdict.probability, verdict.point


def test_verify_returns_score_probability_and_decision(verifier, photos):
    verdict = verifier.verify(photos[0], photos[1])
    calibration = verifier.model.profile.calibration
    assert verdict.threshold == verifier.model.profile.balanced_threshold == -0.1
    assert verdict.same == (verdict.score >= -0.1)
    assert verdict.probability == calibration.probability(verdict.score)
    assert decision(verifier.verify(photos[1], photos[0])) == decision(verdict)
    assert verifier.verify(photos[0], photos[0]).same
    left, right = (verifier.detect(path, every=False)[0].crop[None] for path in photos[:2])
    assert verdict.score == score_pairs(verifier.scorer, left, right)[0]


def test_a_given_threshold_decides_even_when_it_is_zero(make_bundle, photos):
    verifier = Verifier.load(make_bundle("pair").folder)
    score = verifier.verify(photos[0], photos[1]).score
    assert score < -0.1
    for threshold, same in ((0.0, False), (-1.0, True), (score, True)):
        verdict = verifier.verify(photos[0], photos[1], threshold)
        assert (verdict.same, verdict.threshold) == (same, threshold)
    assert verifier.verify(photos[0], photos[0], 0.0).same  # score 0: accept at the threshold
    for threshold in (float("nan"), float("-inf")):
        with pytest.raises(BadConfig):
            verifier.verify(photos[0], photos[1], threshold)


def test_every_kind_of_image_source_works(verifier, photos):
    data = photos[1].read_bytes()
    expected = verifier.verify(photos[0], photos[1])
    with Image.open(photos[1]) as image:
        for source in (str(photos[1]), data, io.BytesIO(data), image, np.asarray(image)):
            assert decision(verifier.verify(photos[0], source)) == decision(expected)


def test_bad_images_are_named(verifier, photos, tmp_path):
    with pytest.raises(BadImage, match=r"none\.jpg: No such file"):
        verifier.verify(photos[0], tmp_path / "none.jpg")
    with pytest.raises(BadImage, match=r"^second image: "):
        verifier.verify(photos[0], b"no image")
    with pytest.raises(BadImage, match=r"^first image: "):
        verifier.verify(b"", photos[0])


def face(seed):
    return np.random.default_rng(seed).integers(0, 256, (32, 32, 3), np.uint8)


def test_embeddings_are_in_order_and_give_the_scores(make_bundle):
    verifier = Verifier.load(make_bundle("embedding").folder)
    images = np.stack([face(seed) for seed in range(40)])
    rows = verifier.embed(images)
    assert np.allclose(rows, verifier.embed(face(seed) for seed in range(40)))
    for left, right in ((0, 1), (17, 39)):
        score = verifier.verify(images[left], images[right]).score
        assert rows[left] @ rows[right] == pytest.approx(score, abs=1e-5)
    assert len(verifier.embed([])) == 0


def test_embed_refuses_single_and_unreadable_images(make_bundle, tmp_path):
    verifier = Verifier.load(make_bundle("embedding").folder)
    for one in ("a.png", b"bytes", tmp_path, face(0), io.BytesIO(b""), Image.new("RGB", (8, 8)), 3):
        with pytest.raises(BadData):
            verifier.embed(one)
    for images, name in (
        ([face(0), tmp_path / "none.png"], "none.png"),
        ([face(0), b"x"], "image 2"),
    ):
        with pytest.raises(BadImage, match=name):
            verifier.embed(images)
    with pytest.raises(BadBundle):
        Verifier.load(make_bundle("pair").folder).embed([])


def test_embeddings_that_make_no_pairs_are_refused(make_bundle, photos):
    verifier = Verifier.load(make_bundle("embedding").folder)
    rows = verifier.embed(photos[:3])
    assert verifier.compare(rows.tolist(), rows[::-1].tolist()).tolist() == pytest.approx(
        (rows * rows[::-1]).sum(axis=1).tolist(), abs=1e-6
    )
    half = rows[:, : rows.shape[1] // 2]
    for left, right in ((rows, rows[:1]), (rows[0], rows[0]), (rows[0], rows), (half, half)):
        shapes = f"{list(left.shape)} and {list(right.shape)}"
        with pytest.raises(BadData, match=re.escape(shapes)):
            verifier.compare(left, right)
