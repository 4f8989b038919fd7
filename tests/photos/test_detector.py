"""Faces are found wherever they are and whichever way up, and nothing else is taken for one."""

import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from drawn.scenes import Place, canvas, drawn_faces, faceless, paste
from PIL import Image

import facepairs
from facepairs.errors import ImageProblem
from facepairs.photos import detector
from facepairs.photos.detector import find_faces, locate_faces, search_photo
from facepairs.photos.frame import TEMPLATE, Face
from facepairs.photos.photo import open_photo
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.reader import locate
from facepairs.photos.yunet import FILE, detect

MAX_ERROR = 0.15  # mean distance of landmarks, in eye distances


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return drawn_faces(tmp_path_factory.mktemp("drawn") / "faces", people=8, images=2)


@pytest.fixture(scope="module")
def found(drawn):
    """The faces of each drawn photo."""
    return [find_faces(Image.open(path)) for path in drawn]


@pytest.fixture(scope="module")
def upright(found):
    """The landmarks of each drawn photo."""
    return [faces[0].landmarks for faces in found]


def error(face, expected):
    distances = np.linalg.norm(face.landmarks - expected, axis=1)
    return distances.mean() / np.linalg.norm(expected[1] - expected[0])


def test_every_drawn_face_is_found_alone(found):
    for (face,) in found:
        assert 0.84 <= face.score <= 1
        assert abs(face.roll_deg) < 15
        assert abs(face.yaw) < 0.3
        left_eye, right_eye, nose, left_mouth, right_mouth = face.landmarks
        assert left_eye[0] < nose[0] < right_eye[0]
        assert left_mouth[0] < right_mouth[0]
        assert max(left_eye[1], right_eye[1]) < nose[1] < min(left_mouth[1], right_mouth[1])


@pytest.mark.parametrize("name", faceless())
def test_images_without_a_face_have_none(name):
    picture = faceless()[name]
    assert not find_faces(picture)
    assert not locate_faces(picture, [])


def test_a_nearly_black_photo_is_called_so():
    for level in (1, 15):
        with pytest.raises(ImageProblem):
            find_faces(Image.new("RGB", (32, 32), (0, level, 0)))
    for level in (0, 16):
        assert find_faces(Image.new("RGB", (32, 32), (0, level, 0))) == []


@pytest.mark.parametrize("angle_deg", [60, 90, 120, 180, 270])
def test_a_turned_face_is_found_right_or_not_at_all(drawn, upright, angle_deg):
    found = 0
    for path, landmarks in list(zip(drawn, upright, strict=True))[::5]:
        with Image.open(path) as image:
            turned = image.rotate(angle_deg, Image.Resampling.BILINEAR, expand=True)
        cos, sin = math.cos(math.radians(angle_deg)), math.sin(math.radians(angle_deg))
        from_middle = (landmarks - 124.5) @ np.array([[cos, -sin], [sin, cos]])
        expected = from_middle + (np.array(turned.size) - 1) / 2
        faces = find_faces(turned)
        found += bool(faces)
        assert not faces or error(faces[0], expected) < 2 * MAX_ERROR
    assert found >= 3


@pytest.mark.parametrize("factor", [0.2, 0.5, 2, 6])
def test_the_size_of_a_face_does_not_matter(drawn, upright, factor):
    for path, landmarks in list(zip(drawn, upright, strict=True))[::5]:
        with Image.open(path) as image:
            side = round(factor * image.width)
            resized = image.resize((side, side), Image.Resampling.BICUBIC)
        (face,) = find_faces(resized)
        assert error(face.scaled(1 / factor), landmarks) < MAX_ERROR


def test_a_small_face_in_a_large_photo_is_found(drawn):
    photo = paste(canvas(3000, 2000), drawn[0], Place(700, 1400, 110))
    (face,) = find_faces(photo)
    assert face.centre == pytest.approx([700, 1400], abs=10)
    assert face.side_px == pytest.approx(50, rel=0.2)


def test_every_one_of_25_faces_is_found(drawn):
    picture = canvas(1500, 1500)
    places = [Place(150 + 300 * (at % 5), 150 + 300 * (at // 5), 250) for at in range(25)]
    for at, place in enumerate(places):
        paste(picture, drawn[at % len(drawn)], place)
    faces = find_faces(picture)
    assert len(locate_faces(picture, faces)) == len(faces) == 25
    distances = [min(math.dist(face.centre, place[:2]) for face in faces) for place in places]
    assert max(distances) < 25


@pytest.mark.parametrize("sides_px", [(130, 134, 126, 132), (128, 140, 136, 124)])
def test_of_faces_alike_the_same_one_comes_first(drawn, sides_px):
    picture = canvas(620, 470)
    corners = [(200, 130), (420, 130), (200, 340), (420, 340)]
    for path, corner, side_px in zip(drawn[1::2], corners, sides_px, strict=False):
        paste(picture, path, Place(*corner, side_px))
    found = find_faces(picture)
    first, *others = locate_faces(picture, found)
    assert len(others) == 3
    assert np.array_equal(first.landmarks, found[0].landmarks)


def test_the_number_of_a_face_stays_when_it_is_located_better(drawn):
    picture = canvas(1500, 1100)
    places = [Place(250 + 330 * (at % 4), 200 + 330 * (at // 4), 200 + 23 * at) for at in range(10)]
    for at, place in enumerate(places):
        paste(picture, drawn[at % len(drawn)], place)
    found = find_faces(picture)
    located = locate_faces(picture, found)
    assert len(found) == len(located) == 10
    for before, after in zip(found, located, strict=True):
        assert math.dist(before.centre, after.centre) < 0.2 * before.side_px


def test_small_faces_of_a_large_photo_come_last(drawn, tmp_path):
    picture = paste(canvas(3000, 2000), drawn[0], Place(700, 1400, 110))
    places = [Place(1500, 1000, 700), Place(2400, 900, 600)]
    for path, place in zip(drawn[1:], places, strict=False):
        paste(picture, path, place)
    picture.save(tmp_path / "large.png")
    photo = open_photo(tmp_path / "large.png")
    found = search_photo(photo)
    assert [round(face.centre[0], -2) for face in found] == [1500, 2400]
    tiny = Face(TEMPLATE / 5, 0.9)
    located = locate(photo, PhotoRecord(faces=(*found, tiny))).faces
    assert [round(face.centre[0], -2) for face in located] == [1500, 2400, 0, 700]
    assert (located[0], located[2]) == (found[0], tiny)


@pytest.mark.parametrize(("side_px", "first_x"), [(210, 300), (280, 480)])
def test_a_face_off_the_centre_comes_first_if_it_is_so_much_larger(drawn, side_px, first_x):
    # 180 pixels off, .9 of half the shorter side: e ** .9 = 2.46 times as large is as prominent.
    picture = canvas(600, 400)
    paste(picture, drawn[0], Place(300, 200, 100))
    paste(picture, drawn[0], Place(480, 200, side_px))
    faces = find_faces(picture)
    assert len(faces) == 2
    assert faces[0].centre[0] == pytest.approx(first_x, abs=15)


def test_of_a_crowd_no_more_than_a_hundred_faces_are_located(drawn, monkeypatch):
    with Image.open(drawn[0]) as image:
        one = np.asarray(image.convert("RGB").resize((100, 100)))
    crowd = np.tile(one, (12, 12, 1))
    faces = find_faces(Image.fromarray(crowd))
    assert len(faces) == len(detect([crowd], 0.6)[0]) == 100
    assert math.dist(faces[0].centre, (600, 600)) < 100
    monkeypatch.setattr(detector, "MAX_FACES", 20)  # to locate a hundred takes seconds
    picture = Image.fromarray(np.tile(one, (5, 5, 1)))
    assert len(locate_faces(picture, find_faces(picture))) == 20


def test_a_photo_decoded_smaller_gives_places_in_the_whole_one(drawn, tmp_path):
    path = tmp_path / "large.jpg"
    paste(canvas(3400, 2700), drawn[0], Place(1600, 1250, 1200)).save(path)
    photo = open_photo(path)
    (face,) = search_photo(photo)
    assert photo.kept[0].size == (1700, 1350)  # of at least 1600 pixels
    assert face.centre == pytest.approx([1600, 1250], abs=60)
    assert face.side_px == pytest.approx(Place(0, 0, 1200).face_px, rel=0.2)
    assert np.array_equal(face.landmarks, face.landmarks.astype(np.float32))


def test_images_detected_together_do_not_influence_each_other(drawn):
    photos = [np.asarray(Image.open(path))[: 200 - 8 * at] for at, path in enumerate(drawn[:3])]
    together = detect(photos, 0.3)
    for photo, found in zip(photos, together, strict=True):
        padded = np.zeros_like(photos[0])
        padded[: len(photo)] = photo
        (alone,) = detect([padded], 0.3)
        assert [one.score for one in alone] == pytest.approx([one.score for one in found], abs=1e-5)
        assert alone[0].landmarks == pytest.approx(found[0].landmarks, abs=1e-3)


FIND = """
import sys
from pathlib import Path
from PIL import Image
from facepairs.errors import BadConfig
from facepairs.photos.detector import find_faces
network = Path(sys.argv[1])
whole = network.read_bytes()
for content in (b"another network", None, whole):
    network.unlink() if content is None else network.write_bytes(content)
    try:
        find_faces(Image.new("RGB", (64, 64)))
        print("found", "cv2" in sys.modules)
    except BadConfig as error:
        print(error)
"""


def test_a_missing_or_altered_network_is_a_clear_error(tmp_path):
    package = Path(facepairs.__file__).parent
    skip = shutil.ignore_patterns("__pycache__", "default_model")
    shutil.copytree(package, tmp_path / "facepairs", ignore=skip)
    network = tmp_path / "facepairs" / "photos" / FILE
    words = [sys.executable, "-c", FIND, network]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    altered, missing, whole = done.stdout.splitlines()
    assert whole == "found False"
    advice = "; in a clone of facepairs, run: pip install --force-reinstall ."
    assert altered == f"{network}: not the face detector that facepairs needs{advice}"
    assert missing == f"{network}: No such file or directory{advice}"


@pytest.mark.lfw
def test_every_photo_of_lfw_shows_a_face_and_none_is_found_upside_down(lfw):
    for path in sorted((lfw / "lfw-deepfunneled").glob("*/*_0001.jpg"))[::150]:
        image = Image.open(path)
        (face, *_) = find_faces(image)
        assert face.to_frame.scale == pytest.approx(1, abs=0.4)
        for turned in find_faces(image.rotate(180)):
            assert abs(turned.roll_deg) > 90
