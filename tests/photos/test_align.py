"""Faces are found and aligned in photos of any kind; a photo without a face is refused by name."""

import numpy as np
import pytest
from drawn.photos import encoded
from drawn.scenes import Place, canvas, drawn_faces, faceless, paste, tight_crop
from PIL import Image

from facepairs.errors import NoFace, TooSmallFace
from facepairs.photos.align import (
    align_faces,
    crop_known,
    known_face,
    unaligned_face,
)
from facepairs.photos.crop import CropSpec, load_crop
from facepairs.photos.inspection import inspect_content
from facepairs.photos.photo import open_photo
from facepairs.photos.photo_record import MIN_FACE_PX
from facepairs.verification.photos import SeenPhoto

SPEC = CropSpec(250, 128)
GREY_LEVELS = 14  # mean difference of crops of one face that was scaled and turned


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return drawn_faces(tmp_path_factory.mktemp("drawn") / "faces")


def difference(one, other):
    return float(np.abs(one.crop.astype(int) - other.crop.astype(int)).mean())


@pytest.mark.parametrize(
    "place",
    [
        Place(300, 260, 250),
        Place(470, 200, 180, 15),
        Place(320, 240, 420, -30),
        Place(210, 330, 300, 8),
    ],
)
def test_a_face_gives_the_same_crop_wherever_it_is(drawn, place):
    for face in drawn[:3]:
        (alone,) = align_faces(face, SPEC)
        (found,) = align_faces(paste(canvas(700, 520), face, place), SPEC)
        assert difference(alone, found) < GREY_LEVELS
        assert found.face.roll_deg - alone.face.roll_deg == pytest.approx(-place.roll_deg, abs=8)
        assert found.face.side_px == pytest.approx(place.face_px, rel=0.15)
        left, top, side = found.box
        assert abs(left + side / 2 - place.x) < 0.1 * place.side_px
        assert abs(top + side / 2 - place.y) < 0.1 * place.side_px
        assert found.faces == 1


@pytest.mark.parametrize("turn_deg", [90, 180, 270])
def test_a_photo_on_its_side_is_found_or_refused(drawn, turn_deg):
    found = 0
    for face in drawn[:4]:
        picture = paste(canvas(320, 240), face, Place(160, 120, 190))
        (upright,) = align_faces(picture, SPEC)
        try:
            (turned,) = align_faces(picture.rotate(turn_deg, expand=True), SPEC)
        except NoFace:
            continue
        found += 1
        assert difference(upright, turned) < GREY_LEVELS
        assert "turned" in {hint.kind for hint in turned.hints}
    assert found >= 3


@pytest.mark.parametrize("name", faceless())
def test_a_photo_without_a_face_is_refused_by_name(name):
    picture = faceless()[name]
    for cut in (align_faces, from_record):
        with pytest.raises(NoFace, match=r"^the photo: "):
            cut(encoded(picture, "PNG"), SPEC, "the photo")


def test_a_face_that_a_changed_photo_no_longer_shows_is_refused_by_name(drawn):
    record = inspect_content(drawn[0].read_bytes(), True)
    with pytest.raises(NoFace, match=r"^the photo: "):
        known_face(record, 2, "the photo")
    assert SeenPhoto("the photo", record=record, face=2).box is None


def from_record(data, spec, name="image"):
    """Return the crop of a photo whose record is known."""
    return crop_known(open_photo(data, name), inspect_content(data, True, name=name), spec)


def test_tight_grey_crops_are_found_or_refused(drawn):
    found = 0
    for face in drawn:
        data = encoded(tight_crop(face), "PPM")
        assert data.startswith(b"P5")
        try:
            (aligned,) = align_faces(data, SPEC, "tight.pgm")
        except NoFace:
            continue
        found += 1
        assert aligned.face.side_px == pytest.approx(90, rel=0.15)
    assert found >= len(drawn) - 1


def test_the_most_prominent_of_several_faces_is_used(drawn):
    group = canvas(900, 420)
    places = [Place(150, 200, 180), Place(450, 210, 260), Place(750, 200, 180)]
    for face, place in zip(drawn[::2], places, strict=True):
        paste(group, face, place)
    (chosen,) = align_faces(group, SPEC)
    assert chosen.faces == 3
    assert abs(chosen.box[0] + chosen.box[2] / 2 - 450) < 20
    assert "the most prominent of 3" in chosen.describe()
    every = align_faces(group, SPEC, every=True)
    assert np.array_equal(every[0].crop, chosen.crop)
    assert sorted(round(one.face.centre[0] / 300 - 0.5) for one in every) == [0, 1, 2]
    for one, face in zip(sorted(every, key=lambda one: one.box[0]), drawn[::2], strict=True):
        assert difference(one, align_faces(face, SPEC)[0]) < GREY_LEVELS


def test_a_face_of_too_few_pixels_gives_no_verdict(drawn):
    small = Place(160, 120, 44)
    assert small.face_px < MIN_FACE_PX
    photo = paste(canvas(320, 240), drawn[3], small)
    for cut in (align_faces, from_record):
        with pytest.raises(TooSmallFace, match=r"^far\.png: its face measures (19|20|21) pixels"):
            cut(encoded(photo, "PNG"), SPEC, "far.png")


def test_faces_of_too_few_pixels_are_passed_over(drawn):
    places = (Place(110, 100, 150), Place(590, 60, 40)), (Place(320, 240, 46), Place(40, 40, 62))
    for large, small in (places[0], places[1][::-1]):
        both = paste(paste(canvas(640, 480), drawn[2], large), drawn[3], small)
        (face,) = align_faces(encoded(both, "PNG"), SPEC)
        assert face.face.centre == pytest.approx(large[:2], abs=12)
        assert np.array_equal(from_record(encoded(both, "PNG"), SPEC), face.crop)
        assert len(align_faces(both, SPEC, every=True)) == 1


@pytest.mark.parametrize(("size", "side"), [((512, 400), 310), ((3600, 2700), 1900)])
def test_a_record_has_what_aligning_finds(drawn, size, side):
    width, height = size
    place = Place(width // 2, height // 2, side, 11)
    data = encoded(paste(canvas(*size), drawn[1], place), "JPEG")
    (expected,) = align_faces(data, SPEC)
    record = inspect_content(data, True)
    assert np.array_equal(crop_known(open_photo(data), record, SPEC), expected.crop)
    assert record.hints == expected.hints


def test_without_alignment_the_whole_image_is_used(drawn):
    for picture in (canvas(64, 48), Image.open(drawn[0])):
        face = unaligned_face(picture, SPEC, "x")
        assert np.array_equal(face.crop, load_crop(picture, SPEC))
        assert (face.box, face.faces, face.to_json()["landmarks"]) == (None, None, None)
        assert "the whole image" in face.describe()
        assert "unaligned" in {hint.kind for hint in face.hints}
