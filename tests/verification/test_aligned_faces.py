"""A bundle of aligned faces: the same crops for two photos, for many, and after pickling."""

import os
import subprocess
import sys

import numpy as np
import pytest
from drawn.scenes import Place, canvas, drawn_faces, paste
from PIL import Image
from tiny.bundles import score_pairs, tiny_bundle

from facepairs.bundles.rates import OperatingPoint
from facepairs.choices import NO_PHOTO_CACHE, PHOTO_CACHE
from facepairs.errors import BadImage, NoFace, TooSmallFace
from facepairs.photos.face_sample import FaceRef
from facepairs.photos.reader import PhotoReader
from facepairs.verification.score_list import score_list
from facepairs.verification.verdict import are_copies
from facepairs.verification.verifier import Verifier, score_samples

PLACES = (Place(150, 130, 125), Place(195, 110, 160, 12), Place(130, 100, 110, -20))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.delenv(NO_PHOTO_CACHE, raising=False)
    monkeypatch.setenv(PHOTO_CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module", params=["pair", "embedding"])
def verifier(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("b") / "bundle"
    bundle = tiny_bundle(folder, request.param, alignment="landmarks-5")
    return Verifier.load(bundle.folder, threads=1)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Six photos of drawn faces, and files that cannot be used."""
    folder = tmp_path_factory.mktemp("photos")
    drawn = drawn_faces(folder / "faces")
    paths = []
    for number, face in enumerate(drawn):
        paths.append(folder / f"{number}.png")
        paste(canvas(320, 240), face, PLACES[number % 3]).save(paths[-1])
    canvas(150, 130).save(folder / "field.png")
    paste(canvas(160, 120), drawn[3], Place(80, 60, 44)).save(folder / "far.png")
    (folder / "broken.png").write_bytes(b"no image")
    return [*paths, folder / "field.png", folder / "far.png", folder / "broken.png"]


def test_scores_of_many_equal_those_of_two(verifier, photos):
    left, right = np.triu_indices(3, 1)
    samples = dict(enumerate(verifier.read(photos[:3])))
    scores = score_samples(verifier.scorer, samples, left, right)
    for one, other, score in zip(left, right, scores, strict=True):
        verdict = verifier.verify(photos[one], photos[other])
        assert score == pytest.approx(verdict.score, abs=1e-5)
        assert verdict.left.faces == 1
        assert verifier.verify(photos[other], photos[one]).score == verdict.score
        again = verifier.verify_faces(samples[one], samples[other])
        assert again.score == pytest.approx(score, abs=1e-6)
        assert again.same == verdict.same


def test_photos_that_cannot_be_used_are_named(verifier, photos):
    good, field, far, broken = photos[0], *photos[6:]
    for bad, kind in ((field, NoFace), (far, TooSmallFace), (broken, BadImage)):
        for pair in ((good, bad), (bad, good)):
            with pytest.raises(kind, match=rf"{bad.name}: "):
                verifier.verify(*pair)
        with pytest.raises(kind, match=rf"{bad.name}: "):
            verifier.detect(bad)
        with pytest.raises(kind, match=rf"{bad.name}: "):
            verifier.verify_faces(*verifier.read([good, bad]))
    samples = verifier.read([*photos, photos[0] / "none"])
    assert [bool(one.error) for one in samples] == [False] * 6 + [True] * 4
    assert "no face found" in str(samples[6].error)
    assert "brows to the chin" in str(samples[7].error)
    everyone = np.arange(len(samples))
    samples = dict(enumerate(samples))
    scores = score_samples(verifier.scorer, samples, everyone, everyone[::-1])
    assert np.isnan(scores).tolist() == [True] * 4 + [False] * 2 + [True] * 4


# What is detected does not depend on the kind of network.
def test_embeddings_follow_the_alignment(verifier, photos):
    if verifier.model.network.kind == "pair":
        pytest.skip("a pair network has no embeddings")
    rows = verifier.embed(photos[:3])
    crops = np.stack([verifier.detect(photo, every=False)[0].crop for photo in photos[:3]])
    assert np.array_equal(rows, verifier.scorer.represent(crops))


@pytest.mark.parametrize("verifier", ["embedding"], indirect=True, scope="module")
def test_faces_that_were_detected_leave_the_cache_alone(verifier, photos, tmp_path):
    # `detect` locates all faces precisely, and finds more of them than `read`.
    group = canvas(1500, 600)
    drawn = sorted(photos[0].parent.glob("faces/*/*.jpg"))
    for face, place in zip(drawn[::3], [Place(400, 300, 350), Place(900, 300, 200)], strict=False):
        paste(group, face, place)
    group.save(photo := tmp_path / "group.png")
    detected = verifier.embed(verifier.detect(photo))
    assert len(detected) == 2
    first, second = (verifier.reader().read([("group", photo)], every=True) for _ in range(2))
    fresh = PhotoReader(True, verifier.model.framing).read([("group", photo)], every=True)
    for faces in (first, second):
        assert [one.face.landmarks.tolist() for one in faces] == [
            one.face.landmarks.tolist() for one in fresh
        ]
    assert not np.array_equal(detected[1], first[1].embedding)


@pytest.mark.parametrize("verifier", ["embedding"], indirect=True, scope="module")
def test_photos_given_as_bytes_are_not_kept(verifier, photos, own_cache):
    rows = verifier.embed([photos[0].read_bytes(), np.asarray(Image.open(photos[1]))])
    assert not own_cache.exists()
    assert np.allclose(verifier.embed(photos[:2]), rows, atol=1e-6)
    assert np.array_equal(verifier.embed(photos[:2]), verifier.embed(photos[:2]))
    assert own_cache.exists()


def test_two_photos_do_not_open_the_cache(verifier, photos, own_cache):
    code = f"""
import sys, facepairs
assert "numpy" not in sys.modules and "PIL" not in sys.modules
verifier = facepairs.Verifier.load({str(verifier.model.files.folder)!r})
print(verifier.verify({str(photos[0])!r}, {str(photos[1])!r}).score)
heavy = ["cv2", "sqlite3", "platformdirs", "joblib", "concurrent.futures", "tensorflow", "keras",
         "sklearn", "scipy", "onnx", "rich", "importlib.metadata"]
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    score, heavy = done.stdout.splitlines()
    assert float(score) == pytest.approx(verifier.verify(*photos[:2]).score, abs=1e-5)
    assert heavy == "[]"
    assert not own_cache.exists()


def test_every_face_of_a_photo_can_be_compared(verifier, photos, tmp_path):
    group = canvas(900, 400)
    drawn = sorted((photos[0].parent / "faces").glob("*/*.jpg"))
    for face, centre in zip(drawn[:3], (150, 450, 750), strict=True):
        paste(group, face, Place(centre, 200, 250))
    group.save(tmp_path / "group.png")
    faces, (other,) = verifier.detect(tmp_path / "group.png"), verifier.detect(photos[3])
    assert len(faces) == 3
    for face in faces:
        verdict = verifier.verify_faces(face, other)
        expected = score_pairs(verifier.scorer, face.crop[None], other.crop[None])[0]
        assert verdict.score == expected
        assert (verdict.left, verdict.right) == (face.to_result(), other.to_result())
        assert verifier.verify_faces(other, face).score == pytest.approx(expected, abs=1e-5)
    assert len(verifier.detect(tmp_path / "group.png", every=False)) == 1
    reader = verifier.reader()
    first, again = (reader.find("group", tmp_path / "group.png", every=True) for _ in range(2))
    first = reader.embed(first)
    assert [one.number for one in first] == [one.number for one in again] == [1, 2, 3]
    assert [one.box for one in first] == [one.box for one in again]
    assert all(one.crop is not None for one in again)  # nothing was kept until `embed`
    known = reader.find("group", tmp_path / "group.png", every=True)
    assert not any(one.is_new for one in known)
    if verifier.model.network.kind == "embedding":
        for one, other in zip(first, known, strict=True):
            assert np.array_equal(one.embedding, other.embedding)
    for face in first:
        place = FaceRef(tmp_path / "group.png", face.number)
        (same,) = reader.read([("group", place)])
        assert (same.number, same.box) == (face.number, face.box)
        (precise,) = [one for one in faces if one.number == face.number]
        assert precise.box == pytest.approx(face.box, abs=0.1 * face.face.side_px)
    (gone,) = reader.read([("group", FaceRef(tmp_path / "group.png", 4))])
    assert isinstance(gone.error, NoFace)
    assert "no face 4; it shows 3 faces" in str(gone.error)
    chosen = verifier.detect_face(FaceRef(tmp_path / "group.png", 3))
    assert (chosen.number, chosen.box) == (3, faces[2].box)
    verdict = verifier.verify(tmp_path / "group.png", photos[3], faces=(3, 1))
    (other,) = verifier.detect(photos[3])
    assert verdict.score == verifier.verify_faces(faces[2], other).score
    assert (verdict.left.number, verdict.left.box) == (3, faces[2].box)


def kinds(face):
    return {hint.kind for hint in face.hints}


def test_a_verdict_has_a_hint_of_several_faces_unless_one_was_chosen(verifier, photos, tmp_path):
    group = canvas(640, 240)
    for number, left in enumerate((0, 320)):
        with Image.open(photos[number]) as one:
            group.paste(one, (left, 0))
    group.save(tmp_path / "group.png")
    verdict = verifier.verify(tmp_path / "group.png", photos[0])
    assert "several-faces" in kinds(verdict.left)
    assert "several-faces" not in kinds(verdict.right)
    for number in (1, 2):
        chosen = verifier.verify(photos[0], tmp_path / "group.png", faces=(None, number))
        assert chosen.right.number == number
        assert "several-faces" not in kinds(chosen.right)


def test_a_list_of_pairs_counts_photos_with_several_faces_that_can_be_used(
    verifier, photos, tmp_path
):
    drawn = sorted(photos[0].parent.glob("faces/*/*.jpg"))
    group, far = canvas(400, 240), canvas(240, 120)
    for face, left, right in zip(drawn[:2], (120, 60), (300, 180), strict=True):
        paste(group, face, Place(left, 120, 150 if left == 120 else 66))
        paste(far, face, Place(right, 60, 44))
    group.save(tmp_path / "group.png")
    far.save(tmp_path / "far.png")
    rows = "".join(f"{name},{photos[0]}\n" for name in ("group.png", "far.png", photos[1]))
    (tmp_path / "p.csv").write_text(f"left,right\n{rows}")
    report = score_list(verifier, tmp_path / "p.csv", tmp_path / "s.csv", OperatingPoint(None))
    assert (report.several_faces, report.images_failed) == (1, 1)
    named = [("group", tmp_path / "group.png")]
    assert not verifier.reader().read(named, every=True)[1].hints
    assert verifier.reader(all_hints=True).read(named, every=True)[1].hints


def test_a_verdict_on_a_photo_and_its_copy_says_so(verifier, photos):
    content = photos[0].read_bytes()
    verdict = verifier.verify(photos[0], content)
    assert "same-content" in kinds(verdict.left) & kinds(verdict.right)
    in_memory = [np.asarray(Image.open(photo)) for photo in photos[:2]]
    for two in (photos[:2], in_memory):
        other = verifier.verify(*two)
        assert "same-content" not in kinds(other.left) | kinds(other.right)
    (face,) = verifier.detect(in_memory[0])
    assert are_copies(face, face)


def test_errors_that_are_kept_hold_no_photo(verifier, tmp_path):
    Image.new("RGB", (300, 300)).save(tmp_path / "blank.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "blank.png").read_bytes()[:-40])
    named = [(name, tmp_path / f"{name}.png") for name in ("blank", "cut", "none")]
    for one in verifier.reader().read(named):
        assert (one.error.__traceback__, one.error.__context__) == (None, None)


def test_what_another_detector_found_is_not_used(verifier, photos, monkeypatch):
    verifier.reader().read([("one", photos[0])])
    assert not verifier.reader().find("one", photos[0])[0].is_new
    monkeypatch.setattr("facepairs.photos.photo_record.DETECTOR", "eyes-2")
    assert verifier.reader().find("one", photos[0])[0].is_new
