"""Faces are found and aligned in photos of any kind; a photo without a face is refused by name."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from drawn.crop_plans import rotated
from drawn.photos import encoded
from drawn.scenes import Place, canvas, drawn_faces, faceless, paste, tight_crop
from PIL import Image

from facepairs.errors import BadConfig, BadImage, NoFace, TooSmallFace
from facepairs.photos.crop import CropSpec, Similarity, load_crop
from facepairs.photos.detector import find_faces
from facepairs.photos.face_sample import FaceRef, FaceSample, choose_face
from facepairs.photos.frame import TEMPLATE, Face
from facepairs.photos.hints import Hint
from facepairs.photos.photo_cache import PhotoCache
from facepairs.photos.photo_record import MIN_FACE_PX, PhotoRecord
from facepairs.photos.reader import PhotoReader

SPEC = CropSpec(250, 128)
READER = PhotoReader(aligned=True, framing=SPEC)
GREY_LEVELS = 14  # mean difference of crops of one face that was scaled and turned


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return drawn_faces(tmp_path_factory.mktemp("drawn") / "faces")


def detect(source, name="image", every=False):
    return READER.detect(name, source, every)


def read(source, name="image"):
    """Return the face of a photo as many photos are read, or raise what is wrong with it."""
    (sample,) = READER.read([(name, source)])
    if sample.error:
        raise sample.error
    return sample


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
        (alone,) = detect(face)
        (found,) = detect(paste(canvas(700, 520), face, place))
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
    for face in drawn[:3]:
        picture = paste(canvas(320, 240), face, Place(160, 120, 190))
        (upright,) = detect(picture)
        try:
            (turned,) = detect(picture.rotate(turn_deg, expand=True))
        except NoFace:
            continue
        found += 1
        assert difference(upright, turned) < GREY_LEVELS
        assert "turned" in {hint.kind for hint in turned.hints}
    assert found >= 2


@pytest.mark.parametrize("name", ["blank 90", "one pixel", "gradient"])
def test_a_photo_without_a_face_is_refused_by_name(name):
    picture = faceless()[name]
    for cut in (detect, read):
        with pytest.raises(NoFace, match=r"^the photo: "):
            cut(encoded(picture, "PNG"), "the photo")


def test_a_face_is_told_in_rounded_numbers():
    cos, sin = 2 * np.cos(np.radians(7.04)), 2 * np.sin(np.radians(7.04))
    to_photo = Similarity(np.array([(cos, -sin), (sin, cos)]), np.array([10.0, 20.0]))
    face, hint = Face(to_photo(TEMPLATE), 0.87654), Hint("dark", "too dark")
    record = PhotoRecord(faces=(face,) * 3)
    sample = FaceSample("a.jpg", face=face, number=2, hints=(hint,), record=record)
    left, top = to_photo(np.array([124.5, 124.5])) - 114
    assert msgspec.to_builtins(sample.to_result()) == {
        "photo": "a.jpg",
        "number": 2,
        "box": [round(left), round(top), 228],
        "landmarks": to_photo(TEMPLATE).round(1).tolist(),
        "score": 0.877,
        "roll_deg": 7.0,
        "faces": 3,
        "hints": ({"kind": "dark", "text": "too dark"},),
        "description": "face of 228 x 228 pixels, turned by 7 degrees, number 2 of 3",
    }
    assert face.scaled(0.5).landmarks == pytest.approx((to_photo(TEMPLATE) + 0.5) / 2 - 0.5)
    level = [Face(Similarity.inverse(turned(deg))(TEMPLATE), 1.0) for deg in (4.9, 5.1)]
    texts = [FaceSample("", face=one).describe() for one in level]
    assert texts == ["face of 114 x 114 pixels", "face of 114 x 114 pixels, turned by 5 degrees"]
    two = FaceSample("", face=face, record=PhotoRecord(faces=(face,) * 2))
    assert two.describe().endswith(", the most prominent of 2")
    assert "array" not in repr(FaceSample(crop=np.zeros((2, 2)), embedding=np.zeros(2)))
    assert (FaceSample().number, FaceRef(Path("a.jpg")).number) == (1, 1)


def turned(angle_deg):
    return rotated(1, angle_deg, (124.5, 124.5), 250)


def test_a_number_that_no_face_has_is_refused(drawn):
    faces = detect(drawn[0], "the photo", every=True)
    assert choose_face(faces, 1) is faces[0]
    for number in (0, 2):
        with pytest.raises(BadConfig, match=rf"^the photo: no face {number}; it shows 1 face, "):
            choose_face(faces, number)


def test_tight_grey_crops_are_found_or_refused(drawn):
    found = 0
    for face in drawn:
        data = encoded(tight_crop(face), "PPM")
        assert data.startswith(b"P5")
        try:
            (aligned,) = detect(data, "tight.pgm")
        except NoFace:
            continue
        found += 1
        assert aligned.face.side_px == pytest.approx(90, rel=0.15)
    assert found >= len(drawn) - 1


def test_the_most_prominent_of_several_faces_is_used(drawn):
    group = canvas(900, 420)
    places = [Place(150, 200, 180), Place(450, 210, 260), Place(750, 200, 180)]
    people = [drawn[0], drawn[0], drawn[4]]
    for face, place in zip(people, places, strict=True):
        paste(group, face, place)
    (chosen,) = detect(group)
    assert chosen.faces == 3
    assert abs(chosen.box[0] + chosen.box[2] / 2 - 450) < 20
    assert "the most prominent of 3" in chosen.describe()
    every = detect(group, every=True)
    assert np.array_equal(every[0].crop, chosen.crop)
    assert [[hint.kind for hint in one.hints] for one in every] == [["bright"], ["bright"], []]
    record = read(group).record
    found = [face.landmarks for face in find_faces(group)]
    assert np.array_equal([face.landmarks for face in record.faces], np.float32(found))
    assert (record.orientation, record.width_px, record.height_px) == (1, 900, 420)
    hints = [face.hints for face in READER.read([("x", group)], every=True)]
    assert hints == [record.hints, (), ()]
    assert sorted(round(one.face.centre[0] / 300 - 0.5) for one in every) == [0, 1, 2]
    for one, face in zip(sorted(every, key=lambda one: one.box[0]), people, strict=True):
        assert difference(one, detect(face)[0]) < GREY_LEVELS


def test_a_face_of_too_few_pixels_gives_no_verdict(drawn):
    small = Place(160, 120, 44)
    assert small.face_px < MIN_FACE_PX
    photo = paste(canvas(320, 240), drawn[3], small)
    for cut in (detect, read):
        with pytest.raises(TooSmallFace, match=r"^far\.png: its face is (19|20|21) pixels"):
            cut(encoded(photo, "PNG"), "far.png")


def test_faces_of_too_few_pixels_are_passed_over(drawn):
    places = (Place(110, 100, 150), Place(590, 60, 40)), (Place(320, 240, 46), Place(40, 40, 62))
    for large, small in (places[0], places[1][::-1]):
        both = paste(paste(canvas(640, 480), drawn[2], large), drawn[3], small)
        (face,) = detect(encoded(both, "PNG"))
        assert face.face.centre == pytest.approx(large[:2], abs=12)
        assert np.array_equal(read(encoded(both, "PNG")).crop, face.crop)
        assert len(detect(both, every=True)) == 1


@pytest.mark.parametrize(("size", "side"), [((512, 400), 310), ((3600, 2700), 1900)])
def test_a_record_has_what_aligning_finds(drawn, size, side):
    width, height = size
    place = Place(width // 2, height // 2, side, 11)
    data = encoded(paste(canvas(*size), drawn[1], place), "JPEG")
    (expected,) = detect(data)
    found = read(data)
    assert np.array_equal(found.crop, expected.crop)
    assert found.hints == expected.hints


def test_without_alignment_the_whole_image_is_used(drawn):
    for picture in (canvas(64, 48), Image.open(drawn[0])):
        (face,) = PhotoReader(aligned=False, framing=SPEC).detect("x", picture)
        assert np.array_equal(face.crop, load_crop(picture, SPEC))
        assert (face.box, face.faces, face.to_result().landmarks) == (None, None, None)
        assert "the whole image" in face.describe()
        assert "unaligned" in {hint.kind for hint in face.hints}


class MeanColour:
    """A network that counts the faces it represents."""

    def __init__(self, cache_key):
        self.cache_key, self.faces = cache_key, 0

    def represent(self, crops):
        self.faces += len(crops)
        return crops.mean(axis=(1, 2), dtype=np.float32)


def test_a_face_is_embedded_once_for_each_network_and_crop(drawn, tmp_path):
    cache, network = PhotoCache(tmp_path / "photos.sqlite"), MeanColour("a")
    PhotoReader(True, SPEC, cache=cache).records([drawn[0]])
    reader = PhotoReader(True, SPEC, network, cache)
    first, again = (reader.read([("x", drawn[0])])[0] for _ in range(2))
    assert np.array_equal(first.embedding, again.embedding)
    assert network.faces == 1
    replace(reader, framing=CropSpec(250, 112)).read([("x", drawn[0])])
    assert network.faces == 2
    for key, keep, expected in (("b", False, 2), ("", True, 2), ("c", True, 1)):
        other = MeanColour(key)
        for _ in range(2):
            replace(reader, network=other, keep=keep).read([("x", drawn[0])])
        assert other.faces == expected


@pytest.mark.parametrize("keep", [True, False])
def test_the_sharpness_of_a_face_is_kept_unless_nothing_is(drawn, tmp_path, keep):
    reader = PhotoReader(True, SPEC, cache=PhotoCache(tmp_path / "photos.sqlite"), keep=keep)
    (face,) = reader.read([(str(drawn[0]), drawn[0])])
    (measured,) = reader.sharpness([(face, drawn[0])])
    assert 0.5 < measured < 1
    if keep:
        assert reader.sharpness([(face, tmp_path / "gone.jpg")]) == [measured]
    else:
        with pytest.raises(BadImage):
            reader.sharpness([(face, tmp_path / "gone.jpg")])
