import io
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tiny.bundles import tiny_bundle

import facepairs
from facepairs.bundles.rates import OperatingPoint
from facepairs.errors import BadBundle, BadConfig, BadData, BadImage
from facepairs.support.console import showing
from facepairs.verification import photos as photos_module
from facepairs.verification import scoring
from facepairs.verification.verdict import Verdict
from facepairs.verification.verifier import Verifier

IMAGES = 12


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    paths = []
    for number in range(IMAGES):
        pixels = np.random.default_rng(number).integers(0, 256, (32, 40, 3), np.uint8)
        paths.append(folder / f"photo {number}.png")
        Image.fromarray(pixels).save(paths[-1])
    return paths


@pytest.fixture(scope="module", params=["pair", "embedding"])
def verifier(request, tmp_path_factory):
    bundle = tiny_bundle(tmp_path_factory.mktemp("b") / "bundle", request.param)
    return Verifier.load(bundle.folder, threads=1)


def test_verify_returns_score_probability_and_decision(verifier, photos):
    verdict = verifier.verify(photos[0], photos[1])
    calibration = verifier.bundle.calibration
    assert verdict.threshold == verifier.bundle.threshold == -0.1
    assert verdict.same == (verdict.score >= -0.1)
    assert verdict.probability == calibration.probability(verdict.score)
    assert verifier.verify(photos[1], photos[0]) == verdict
    assert verifier.verify(photos[0], photos[0]).same
    left, right = (verifier.detect(path, every=False)[0].crop[None] for path in photos[:2])
    assert verdict.score == verifier.scorer.score_pairs(left, right)[0]


def test_a_verdict_is_true_when_both_are_the_same_person():
    assert Verdict(True, 0.9, 1.0, OperatingPoint(0.5))
    assert not Verdict(False, 0.1, 0.0, OperatingPoint(0.5))
    with pytest.raises(BadData, match="no threshold, so no verdict"):
        bool(Verdict(None, 0.1, 0.0, OperatingPoint(None)))


def test_a_given_threshold_decides_even_when_it_is_zero(make_bundle, photos):
    verifier = Verifier.load(make_bundle("pair").folder)
    score = verifier.verify(photos[0], photos[1]).score
    assert score < -0.1
    for threshold, same in ((0.0, False), (-1.0, True), (score, True)):
        verdict = verifier.verify(photos[0], photos[1], threshold)
        assert (verdict.same, verdict.threshold) == (same, threshold)
    assert verifier.verify(photos[0], photos[0], 0.0).same  # score 0: accept at the threshold
    for threshold in (float("nan"), float("-inf")):
        with pytest.raises(BadConfig, match="not a finite number"):
            verifier.verify(photos[0], photos[1], threshold)


def test_every_kind_of_image_source_works(verifier, photos):
    data = photos[1].read_bytes()
    expected = verifier.verify(photos[0], photos[1])
    with Image.open(photos[1]) as image:
        for source in (str(photos[1]), data, io.BytesIO(data), image, np.asarray(image)):
            assert verifier.verify(photos[0], source) == expected


def test_bad_images_are_named(verifier, photos, tmp_path):
    with pytest.raises(BadImage, match=r"none\.jpg: No such file"):
        verifier.verify(photos[0], tmp_path / "none.jpg")
    with pytest.raises(BadImage, match=r"^second image: "):
        verifier.verify(photos[0], b"no image")
    with pytest.raises(BadImage, match=r"^first image: "):
        verifier.verify(b"", photos[0])


def test_a_damaged_network_is_refused(make_bundle):
    bundle = make_bundle()
    path = bundle.folder / bundle.network.file
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(BadBundle, match="SHA-256"):
        Verifier.load(bundle.folder)


def expected_scores(verifier, photos, left, right):
    crops = np.stack([verifier.detect(path, every=False)[0].crop for path in photos])
    return verifier.scorer.score_pairs(crops[left], crops[right])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, IMAGES - 1), st.integers(0, IMAGES - 1)), max_size=60),
    st.integers(1, 20),
    st.integers(2, 14),
)
def test_scores_are_in_the_order_of_the_pairs(verifier, photos, pairs, chunk, capacity):
    left, right = np.array(pairs, np.int32).reshape(-1, 2).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "CHUNK_PAIRS", chunk)
        patch.setattr(scoring, "CROP_BYTES", capacity * 3 * 16**2)
        scores = verifier.score_images(photos, left, right)
    assert scores.dtype == np.float32
    assert np.allclose(scores, expected_scores(verifier, photos, left, right), atol=1e-5)


def test_each_image_is_read_once(verifier, photos, monkeypatch):
    seen, lock = [], threading.Lock()
    read_checked = photos_module.read_checked

    def counted(source, *arguments):
        with lock:
            seen.append(source)
        return read_checked(source, *arguments)

    monkeypatch.setattr(photos_module, "read_checked", counted)
    left, right = np.triu_indices(IMAGES, 1)
    verifier.score_images(photos, left, right, workers=1)
    assert sorted(seen) == sorted(map(str, photos))


def test_progress_ends_at_the_total(verifier, photos):
    calls = []
    with showing(progress=lambda _: lambda *counts: calls.append(counts)):
        verifier.score_images(photos, np.arange(10), np.arange(10)[::-1])
    assert calls[-1] == (10, 10)
    assert calls == sorted(calls)


def test_a_bad_image_among_many_is_named(verifier, photos, tmp_path):
    bad = tmp_path / "broken.jpg"
    bad.write_bytes(b"no image")
    with pytest.raises(BadImage, match=r"broken\.jpg"):
        verifier.score_images([*photos, bad], np.array([0, IMAGES]), np.array([1, 2]))
    scores = verifier.score_images([*photos, bad], np.array([0]), np.array([1]))
    assert len(scores) == 1  # images in no pair are not read


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ([0, -1], [1, 1], "images -1 to 0; there are 12"),
        ([0, 1], [1, 12], "images 1 to 12; there are 12"),
        ([0], [1, 2], "1 left images and 2 right"),
        ([0.0], [1.0], "not whole numbers"),
        ([[0]], [[1]], "not whole numbers"),
    ],
)
def test_bad_positions_are_refused(verifier, photos, left, right, message):
    with pytest.raises(BadData, match=message):
        verifier.score_images(photos, np.array(left), np.array(right))


def test_threads_may_share_a_verifier(verifier, photos):
    pairs = [(a, b) for a in photos[:4] for b in photos[4:8]]
    expected = [verifier.verify(*pair) for pair in pairs]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda pair: verifier.verify(*pair), pairs)) == expected


def test_the_package_exports_its_public_names_lazily():
    assert facepairs.Verifier is Verifier
    assert facepairs.Verdict is Verdict
    assert all(hasattr(facepairs, name) for name in facepairs.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        facepairs.nothing  # noqa: B018


def test_verifying_imports_nothing_heavy(make_bundle, photos):
    folder = make_bundle().folder
    code = f"""
import sys, facepairs
assert "numpy" not in sys.modules and "PIL" not in sys.modules
verdict = facepairs.Verifier.load({str(folder)!r}).verify({str(photos[0])!r}, {str(photos[0])!r})
assert verdict.same
heavy = ["tensorflow", "keras", "sklearn", "scipy", "onnx", "rich", "importlib.metadata",
         "concurrent.futures"]
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("[]", "", 0)
