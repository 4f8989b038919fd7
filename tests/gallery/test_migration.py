"""People of a gallery are enrolled again with another model; what is lost is told."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from drawn.photos import smooth
from PIL import Image
from tiny.bundles import tiny_bundle
from tiny.embedders import embedder

from facepairs import Gallery, Verifier
from facepairs import migrate_gallery as migrate
from facepairs.errors import BadConfig, BadData, BadGallery, NotEnough, NotEnrolled
from facepairs.evaluation.migration import compare_models
from facepairs.support.console import showing

PEOPLE, PHOTOS = 12, 4


def save(path: Path, seed: int, noise: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = smooth(64, 64, seed) + np.random.default_rng(noise).integers(-9, 10, (64, 64, 3))
    Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(path)
    return path


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    for person in range(PEOPLE):
        for noise in range(PHOTOS):
            save(folder / f"P{person:02}" / f"{noise}.png", person, noise)
    return folder


@pytest.fixture(scope="module")
def verifiers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    old = Verifier.load(tiny_bundle(folder / "old", "embedding").folder)
    return old, Verifier.load(embedder(folder / "new"))


@pytest.fixture
def old(tmp_path, verifiers, photos):
    with Gallery(tmp_path / "old", verifiers[0], write=True) as gallery:
        assert gallery.add_folder(photos, any_quality=True).enrolled == PEOPLE * PHOTOS
        yield gallery


def names_of(gallery):
    return {face.digest: face.person for face in gallery.store.faces()}


def test_photos_are_told_by_content_and_keep_their_people(tmp_path, old, verifiers, photos):
    old.rename("P00", "Ann / Bo")
    old.rename("P01", "person_0001")  # without a name
    counts = []
    for number, path in enumerate(sorted(photos.glob("*/*"))):  # other names, deep below
        to = tmp_path / "heap" / str(number % 5) / "deep" / f"{number}.PNG"
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    save(tmp_path / "heap" / "stranger.png", 99, 0)
    with Gallery(tmp_path / "new", verifiers[1], write=True) as new:
        with showing(progress=lambda phase: lambda *steps: counts.append((phase, *steps))):
            done = migrate(old, new, tmp_path / "heap")
        looked = [steps for phase, *steps in counts if phase == "looking for the photos"]
        assert looked == [[number, 49] for number in range(1, 50)]
        assert (done.enrolled, done.known, done.refused) == (PEOPLE * PHOTOS, 0, [])
        assert (done.people, done.photos) == (PEOPLE, PEOPLE * PHOTOS)
        assert (done.without_photo, done.lost) == ({}, [])
        assert names_of(new) == names_of(old)
        assert new.model.sha256 == verifiers[1].model.network.embedder_sha256
        assert new.identify(photos / "P03" / "1.png", threshold=0.5).name == "P03"
        again = migrate(old, new, tmp_path / "heap")
        assert (again.enrolled, again.known) == (0, PEOPLE * PHOTOS)


def test_who_cannot_be_enrolled_is_named(tmp_path, old, verifiers, photos):
    shutil.copytree(photos, tmp_path / "some")
    shutil.rmtree(tmp_path / "some" / "P01")
    (tmp_path / "some" / "P02" / "0.png").unlink()
    with Gallery(tmp_path / "new", verifiers[1], write=True) as new:
        done = migrate(old, new, tmp_path / "some")
    assert done.without_photo == {"P01": PHOTOS, "P02": 1}
    assert done.lost == ["P01"]
    assert (done.people, done.photos) == (PEOPLE - 1, (PEOPLE - 1) * PHOTOS - 1)


def test_photos_expire_when_they_would_have(tmp_path, old, verifiers, photos):
    visitor = save(tmp_path / "more" / "visitor.png", 50, 0)
    old.add("Visitor", [visitor], forget_after=7, any_quality=True)
    expires = {face.person: face.expires for face in old.store.faces()}
    with Gallery(tmp_path / "new", verifiers[1], write=True) as new:
        migrate(old, new, tmp_path / "more")
        (face,) = new.store.faces()
    assert face.person == "Visitor"
    assert abs(face.expires - expires["Visitor"]) <= 2


def test_embeddings_of_two_models_never_meet(tmp_path, old, verifiers, photos):
    with pytest.raises(BadGallery, match="another model"):
        Gallery(tmp_path / "old", verifiers[1], write=True)
    with (
        Gallery(tmp_path / "new", verifiers[0], write=True) as same,
        pytest.raises(BadConfig),
    ):
        migrate(old, same, photos)
    with (
        Gallery(tmp_path / "empty", verifiers[0], write=True) as empty,
        Gallery(tmp_path / "other", verifiers[1], write=True) as other,
    ):
        with pytest.raises(NotEnrolled):
            migrate(empty, other, photos)
        with pytest.raises(BadData):
            migrate(old, other, tmp_path / "none")


def test_both_models_are_measured_on_the_same_pairs(tmp_path, old, verifiers, photos):
    with Gallery(tmp_path / "new", verifiers[1], write=True) as new:
        migrate(old, new, photos)
        found = compare_models(old, new)
        assert found.people == PEOPLE
        assert found.genuine_pairs == PEOPLE * PHOTOS * (PHOTOS - 1) // 2
        assert found.fmr == 0.01
        gap = found.fnmr[0] - found.fnmr[1]
        assert found.difference.difference == pytest.approx(gap)
        low, high = found.difference.interval
        assert low <= gap <= high
        for rate, (start, end) in zip(found.fnmr, found.intervals, strict=True):
            assert 0 <= start <= rate <= end <= 1
        # By hand: the same scores, sorted.
        for number, gallery in enumerate((old, new)):
            faces = sorted(gallery.store.faces(), key=lambda face: (face.person, face.digest))
            rows = np.stack([face.vector for face in faces]).astype(np.float32)
            score = rows @ rows.T
            same = np.equal.outer(*[np.array([face.person for face in faces])] * 2)
            upper = np.triu(np.ones_like(same), 1).astype(bool)
            impostor = np.sort(score[upper & ~same])[::-1]
            threshold = impostor[int(0.01 * len(impostor))]
            missed = (score[upper & same] <= threshold).mean()
            assert found.fnmr[number] == pytest.approx(missed, abs=0.03)
        for person in range(1, PEOPLE):
            new.remove(f"P{person:02}")
        with pytest.raises(NotEnough):
            compare_models(old, new)


KILLED = """
import sys
from facepairs import Gallery, Verifier, migrate_gallery
old, new, model, photos = sys.argv[1:]
with Gallery(old) as before, Gallery(new, Verifier.load(model, threads=1), write=True) as after:
    print("begun", flush=True)
    migrate_gallery(before, after, photos)
"""


def test_after_a_kill_it_goes_on(tmp_path, old, verifiers, photos):
    for number in range(200):  # enough to be in the middle
        save(tmp_path / "many" / f"Q{number}" / "0.png", 100 + number, 0)
    old.add_folder(tmp_path / "many", any_quality=True)
    place, model = tmp_path / "new", verifiers[1].model.files.path
    words = [tmp_path / "old", place, model, tmp_path / "many"]
    process = subprocess.Popen([sys.executable, "-c", KILLED, *map(str, words)])
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if place.exists() and enrolled(place):
            break
        time.sleep(0.01)
    process.kill()
    process.wait()
    before = enrolled(place)
    assert before > 0
    with Gallery(place, verifiers[1], write=True) as new:
        done = migrate(old, new, tmp_path / "many")
        assert (done.enrolled, done.known) == (200 - before, before)
        assert len(done.without_photo) == PEOPLE
        assert new.check() == []


def enrolled(place):
    try:
        with Gallery(place) as gallery:
            return len(gallery.store.faces())
    except BadData:
        return 0
