"""`Gallery` from Python: thresholds, quality, models, several objects on one file."""

import io
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from drawn.photos import smooth
from PIL import Image
from tiny.bundles import AMONG_LOOKALIKES, error_table, tiny_bundle

from facepairs import Gallery, Verifier
from facepairs.bundles.error_profile import Calibration, identification_point
from facepairs.errors import BadBundle, BadConfig, BadData, BadGallery, NotEnough, NotEnrolled
from facepairs.gallery.enrol import Enrolment

OPEN = Path("/proc/self/fd")  # empty where there is no such folder

# The tiny network embeds whole images, so drawn waves serve as faces.


@pytest.fixture(scope="module")
def verifier(tmp_path_factory):
    return Verifier.load(tiny_bundle(tmp_path_factory.mktemp("b") / "a", **AMONG_LOOKALIKES).folder)


def picture(seed: int, noise: int = 0) -> np.ndarray:
    """Return an image of `seed`; other noise gives another file that looks the same."""
    image = smooth(64, 64, seed).astype(int)
    image += np.random.default_rng(noise).integers(-3, 4, image.shape)
    return image.clip(0, 255).astype(np.uint8)


def save(path: Path, seed: int, noise: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture(seed, noise)).save(path)
    return path


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    for person in range(5):
        for noise in range(3):
            save(folder / f"P{person}" / f"{noise}.png", person, noise)
    return folder


@pytest.fixture
def gallery(tmp_path, verifier, photos):
    with Gallery(tmp_path / "g", verifier, write=True) as gallery:
        assert gallery.add_folder(photos, any_quality=True).enrolled == 15
        yield gallery


def test_a_visitor_whose_time_is_over_is_enrolled_again(tmp_path, verifier, photos):
    visitor = photos / "P0" / "0.png"
    with Gallery(tmp_path / "g", verifier, write=True) as gallery:
        gallery.add("Visitor", [visitor], forget_after=1e-9, any_quality=True)
        assert gallery.people() == []
        with pytest.raises(NotEnrolled):
            gallery.remove("Visitor")
        gallery.add("Visitor", [visitor], forget_after=1e-9, any_quality=True)
        with pytest.raises(NotEnrolled):
            gallery.rename("Visitor", "Guest")
        gallery.add("Visitor", [visitor], forget_after=1e-9, any_quality=True)
        again = gallery.add("Other", [visitor], any_quality=True)
        assert (again.enrolled, again.known, len(again.refused)) == (1, 0, 0)
        assert [one.name for one in gallery.people()] == ["Other"]


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_is_gone_acknowledges_nothing(gallery, photos, how):
    place = Path(gallery.place)
    if how == "removed":
        place.unlink()
    else:
        shutil.copy(place, place.with_name("copy"))
        place.with_name("copy").replace(place)
    for use in (
        lambda: gallery.add("New", [photos / "P0" / "0.png"], any_quality=True),
        lambda: gallery.remove("P1"),
        lambda: gallery.identify(photos / "P0" / "0.png", threshold=0.9),
        gallery.people,
    ):
        with pytest.raises(BadGallery):
            use()


def test_a_copy_that_is_restored_in_place_is_what_counts(gallery, photos, verifier):
    place = Path(gallery.place)
    shutil.copy(place, place.with_name("backup"))
    gallery.remove("P1")
    new = save(photos.parent / "new.png", 7, 1)
    assert gallery.add("New", [new], any_quality=True).enrolled == 1
    place.write_bytes(place.with_name("backup").read_bytes())
    assert gallery.identify(photos / "P1" / "0.png", threshold=0.9).name == "P1"
    assert gallery.add("New", [new], any_quality=True).enrolled == 1
    assert gallery.check() == []
    with Gallery(place, verifier) as reader:
        assert [one.name for one in reader.people()] == ["New", *(f"P{k}" for k in range(5))]


def test_nothing_lies_beside_a_gallery_that_is_open(gallery):
    """Else it could not be read where nothing can be written."""
    place = Path(gallery.place)
    assert [path.name for path in place.parent.glob(f"{place.name}*")] == [place.name]


def test_any_source_of_a_photo_is_enrolled_or_refused_in_one_line(gallery, photos, tmp_path):
    path = save(tmp_path / "new.png", 8, 1)
    for photo in (path, str(path)):
        with pytest.raises(BadConfig):
            gallery.add("New", photo)
    assert gallery.add("New", [io.BytesIO(path.read_bytes())], any_quality=True).enrolled == 1
    assert gallery.add("New", (one for one in [path]), any_quality=True).known == 1
    for odd in (None, 3, picture(1), Image.fromarray(picture(1)), object()):
        (refused,) = gallery.add("New", [odd]).refused
        assert (refused.person, refused.photo) == ("New", "photo 1")
        with pytest.raises(BadConfig):
            gallery.add(odd if odd is not path else None, [path])
    for none in (None, 3, path.read_bytes(), io.BytesIO(path.read_bytes()), picture(1)):
        with pytest.raises(BadConfig):
            gallery.add("New", none)


def test_it_knows_people_and_strangers(gallery):
    for person in range(5):
        found = gallery.identify(picture(person, 9), threshold=0.99)
        assert (found.name, found.known, found.words) == (f"P{person}", True, f"P{person}")
        assert [one.rank for one in found.candidates] == [1, 2, 3, 4, 5]
        assert found.candidates[0].photos == 3
    stranger = gallery.identify(picture(77), threshold=0.9999)
    assert (stranger.name, stranger.known, stranger.words) == (None, False, "unknown")


def test_a_person_has_the_score_of_the_most_similar_photo(gallery, verifier, photos):
    probe = picture(2, 9)
    scores = {one.name: one.score for one in gallery.identify(probe, threshold=0).candidates}
    for person in range(5):
        each = [verifier.verify(probe, path).score for path in (photos / f"P{person}").iterdir()]
        assert scores[f"P{person}"] == pytest.approx(max(each), abs=2e-3)


def test_the_threshold_follows_the_gallerys_size(verifier, gallery):
    table = error_table()  # FMR .4 at 0, .01 at .5, .001 at .75
    for photos, fpir, threshold in ((1, 0.4, 0), (1, 0.01, 0.5), (10, 0.1, 0.5), (10, 0.01, 0.75)):
        point = identification_point(verifier.model.profile, fpir, photos)
        assert (point.threshold, point.errors.measured_on) == (threshold, table.measured_on)
    found = gallery.identify(picture(1), max_fpir=0.15)
    assert (found.point.threshold, found.max_fpir) == (0.5, 0.15)
    assert found.fpir.value == pytest.approx(15 * 0.01)
    low, high = found.point.errors.fmr.interval
    assert found.fpir.interval == pytest.approx((15 * low, 15 * high))
    certain = gallery.identify(picture(1), threshold=0)
    assert (certain.fpir.value, certain.fpir.interval[1], certain.impostor_pairs) == (1, 1, 10_000)
    assert (certain.people, certain.photos, certain.max_fpir) == (5, 15, None)
    best = gallery.identify(picture(1, 9), threshold=0).candidates[0].score
    assert gallery.identify(picture(1, 9), threshold=best).known
    assert not gallery.identify(picture(1, 9), threshold=best + 1e-6).known
    for top, listed in ((0, 1), (1, 1), (2, 2)):
        assert len(gallery.identify(picture(1), threshold=best, top=top).candidates) == listed
    assert "at most 15 in 100 strangers" in found.describe_errors()
    assert "10,000 pairs: drawn pairs" in found.describe_errors()


def test_a_rate_that_the_pairs_do_not_support_is_refused(verifier, gallery):
    with pytest.raises(NotEnough) as caught:
        identification_point(verifier.model.profile, 0.01, 100)
    assert caught.value.arguments == ("max_fpir", "threshold", "bundle")
    with pytest.raises(NotEnough) as hopeless:
        identification_point(verifier.model.profile, 1, 4_000)  # 1.3
    assert "give a threshold" in hopeless.value.message
    for photos, kept in ((100, 0.031), (3_330, 1), (281, 0.085)):  # of 10,000 pairs: FMR .0003
        with pytest.raises(NotEnough, match=f"give max FPIR {kept:g} or more, a threshold"):
            identification_point(verifier.model.profile, 0.0001, photos)
        identification_point(verifier.model.profile, kept, photos)
    point = identification_point(verifier.model.profile, 0.03, 100)
    assert point.threshold == 1  # where nothing was accepted
    for wrong in (0, -1, 1.1, float("nan")):
        with pytest.raises(BadConfig):
            gallery.identify(picture(0), max_fpir=wrong)
    with pytest.raises(BadConfig):
        gallery.identify(picture(0), max_fpir=0.1, threshold=0.5)


def test_a_model_without_errors_gives_no_verdict(tmp_path, photos):
    older = Verifier.load(tiny_bundle(tmp_path / "older", "embedding").folder)
    with Gallery(tmp_path / "g", older, write=True) as gallery:
        gallery.add("P0", [photos / "P0" / "0.png"], any_quality=True)
        found = gallery.identify(photos / "P0" / "1.png")
        assert (found.known, found.words, found.fpir) == (None, "none: no threshold", None)
        assert gallery.identify(photos / "P0" / "1.png", threshold=0.5).known


def test_another_model_is_refused(tmp_path, gallery, verifier):
    from tiny.bundles import embedding_network

    def opened() -> list[str]:
        return [name for name in map(os.path.realpath, OPEN.glob("*")) if name == gallery.place]

    network, here = embedding_network(width=25), opened()
    other = tiny_bundle(tmp_path / "other", network=network, **AMONG_LOOKALIKES)
    with pytest.raises(BadData) as caught:
        Gallery(gallery.place, Verifier.load(other.folder))
    assert caught.value.arguments == ("bundle",)
    assert opened() == here  # no longer by the one that was refused
    with Gallery(gallery.place) as included, pytest.raises(BadData):
        included.verifier.detect(picture(1))
    moved = tiny_bundle(tmp_path / "aligned", alignment="landmarks-5", **AMONG_LOOKALIKES)
    with pytest.raises(BadData) as caught:
        Gallery(gallery.place, Verifier.load(moved.folder))
    assert caught.value.arguments == ("bundle",)
    calibrated = tiny_bundle(
        tmp_path / "same", **{**AMONG_LOOKALIKES, "calibration": Calibration(20.0, -12.0)}
    )
    with Gallery(gallery.place, Verifier.load(calibrated.folder)) as fits:
        assert len(fits.people()) == 5
    pair = tiny_bundle(tmp_path / "pair", "pair")
    with pytest.raises(BadBundle):
        Gallery(tmp_path / "new", Verifier.load(pair.folder), write=True)


def test_photos_are_judged_before_they_are_enrolled(tmp_path, verifier, photos):
    dark = tmp_path / "dark.png"
    Image.fromarray(picture(1) // 6).save(dark)
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image")
    with Gallery(tmp_path / "g", verifier, write=True) as gallery:
        done = gallery.add("Ann", [dark, broken, tmp_path / "missing.png"])
        assert (done.enrolled, len(done.refused), gallery.people()) == (0, 3, [])
        assert "dark: mean light" in done.refused[0].error
        done = gallery.add("Ann", [dark, dark], any_quality=True)
        assert done == Enrolment(
            enrolled=1, known=1, refused=[], unnamed=0, renamed={}, people=1, photos=1
        )
        assert gallery.add("Ann", [dark, dark], any_quality=True).known == 2
        done = gallery.add("Bo", [dark], any_quality=True)
        assert (done.enrolled, done.known) == (0, 0)
        assert "this very photo is enrolled as Ann" in done.refused[0].error
        assert [one.name for one in gallery.people()] == ["Ann"]


def test_by_default_poor_photos_and_people_without_a_name_are_left_out(tmp_path, verifier):
    folder = save(tmp_path / "people" / "Ann" / "blurred.png", 1).parents[1]
    Image.fromarray(picture(2) // 6).save(folder / "Ann" / "dark.png")
    save(folder / "person_0001" / "1.png", 3)
    with Gallery(tmp_path / "g", verifier, write=True) as gallery:
        done = gallery.add_folder(folder)
        assert (done.enrolled, len(done.refused), done.unnamed) == (0, 2, 1)
    with pytest.raises(BadGallery):
        gallery.people()


def test_another_model_is_noticed_once_somebody_enrols(verifier, photos, tmp_path):
    changes = {**AMONG_LOOKALIKES, "alignment": "landmarks-5"}
    other = Verifier.load(tiny_bundle(tmp_path / "other", **changes).folder)
    with (
        Gallery(tmp_path / "g", other, write=True) as early,
        Gallery(tmp_path / "g", verifier, write=True) as late,
    ):
        assert len(early.vectors()) == 0
        assert late.add("Ann", [photos / "P0/0.png"], any_quality=True).enrolled == 1
        for use in (early.vectors, lambda: early._set_model(1)):
            with pytest.raises(BadGallery):
                use()
        assert late.check() == []


def test_a_gallery_is_not_made_where_it_shall_not_be(tmp_path):
    with pytest.raises(BadData):
        Gallery(tmp_path / "g", write=True, create=False)
    assert not (tmp_path / "g").exists()


def test_an_open_gallery_sees_what_others_change(gallery, verifier, tmp_path):
    reader = Gallery(gallery.place, verifier)
    probe = save(tmp_path / "x.png", 42)
    assert reader.identify(probe, threshold=0.9999).name is None
    gallery.add("New", [save(tmp_path / "y.png", 42, 5)], any_quality=True)
    found = (reader.identify(probe, threshold=0.99), *reader.identify_faces(probe, threshold=0.99))
    assert [(one.name, len(one.candidates)) for one in found] == [("New", 5)] * 2  # of six
    gallery.remove("New")
    assert reader.identify(probe, threshold=0.9999).name is None
    gallery.add("Guest", [tmp_path / "y.png"], forget_after=1e-9, any_quality=True)
    for one in (reader, gallery):
        assert one.identify(probe, threshold=0.9999).name is None
    reader.close()


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201])
def test_odd_names_are_refused(gallery, name):
    with pytest.raises(BadConfig):
        gallery.add(name, [])


def test_names_are_composed_unicode(gallery, tmp_path):
    gallery.add("Be\u0301", [save(tmp_path / "x.png", 42)], any_quality=True)
    assert gallery.remove(" B\u00e9 ") == 1
    with pytest.raises(NotEnrolled):
        gallery.remove("Bé")


def test_days_to_forget_after_are_checked(gallery):
    for days in (0, -1, float("nan"), float("inf"), 1e6):
        with pytest.raises(BadConfig):
            gallery.add("Ann", [], forget_after=days)
    gallery.add("Ann", [], forget_after=999_999)


def test_a_gallery_that_was_closed_answers_no_more(gallery, verifier, photos):
    gallery.close()
    with pytest.raises(BadGallery):
        gallery.people()
    with Gallery(gallery.place, verifier) as reader:
        for change in (lambda: reader.remove("P1"), lambda: reader.rename("P1", "P2")):
            with pytest.raises(BadGallery):
                change()


def test_check_says_if_others_may_read_it(gallery):
    assert gallery.check() == []
    if os.name == "posix":
        Path(gallery.place).chmod(0o644)
        assert "chmod 600" in gallery.check()[0]
