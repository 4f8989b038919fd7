"""Which faces are too unclear to be grouped: both sides of each limit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter, ImageOps

from facepairs.grouping.collection import doubts
from facepairs.photos.face_sample import FaceSample
from facepairs.photos.frame import TEMPLATE, Face
from facepairs.photos.hints import Hint
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.reader import PhotoReader

SIDE_PX = 100
READER = PhotoReader(aligned=True)


def face(left=50.0, top=50.0, side_px=SIDE_PX, yaw=0.0, score=0.95):
    """A face whose box has this place and size."""
    landmarks = TEMPLATE.copy()
    landmarks[2, 0] = landmarks[:2, 0].mean() + yaw * np.ptp(landmarks[:2, 0])
    found = Face(landmarks, score)
    landmarks = landmarks * side_px / found.side_px
    now = Face(landmarks, score).centre - side_px / 2
    return Face(landmarks - now + [left, top], score)


def doubt(one, width_px=200, height_px=300):
    record = PhotoRecord(width_px=width_px, height_px=height_px)
    return doubts(READER, Path(), [FaceSample("a.jpg", record=record, face=one)])


def test_a_face_is_as_large_as_its_box():
    assert face().box == [50, 50, SIDE_PX]
    assert face(yaw=0.3).yaw == pytest.approx(0.3, abs=1e-6)


@pytest.mark.parametrize(
    ("clear", "unclear", "why"),
    [
        ({"side_px": 48}, {"side_px": 47}, "small"),
        ({"yaw": 0.39}, {"yaw": 0.41}, "turned"),
        ({"yaw": -0.39}, {"yaw": -0.41}, "turned"),
        ({"score": 0.88}, {"score": 0.87}, "hard to make out"),
        *(
            ({name: near}, {name: far}, "cut off")
            for name, near, far in (
                *(("left", -25, -26), ("top", -25, -26)),  # a quarter of the face
                *(("left", 125, 126), ("top", 225, 226)),
            )
        ),
    ],
)
def test_each_limit_has_two_sides(clear, unclear, why):
    assert doubt(face(**clear)) == [""]
    assert doubt(face(**unclear)) == [why]


def test_faces_behind_the_first_one_are_always_looked_at(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (300, 200, 3), np.uint8)
    picture = Image.fromarray(noise).filter(ImageFilter.GaussianBlur(8))
    ImageOps.autocontrast(picture).filter(ImageFilter.GaussianBlur(4)).save(tmp_path / "a.png")
    first = FaceSample("a.png", record=PhotoRecord(width_px=200, height_px=300), face=face())
    blurred = replace(first, hints=(Hint("blurred", "is blurred"),))
    second = replace(first, number=2)
    assert doubts(READER, tmp_path, [first, blurred, second]) == ["", "blurred", "blurred"]


def test_a_face_is_blurred_below_a_sharpness_of_054(tmp_path):
    noise = np.random.default_rng(0).normal(size=(300, 200, 1))
    waves = np.sin(np.indices((300, 200)).sum(axis=0) / 9)[..., None]
    record, faces = PhotoRecord(width_px=200, height_px=300), []
    for number in range(16):
        pixels = 127 + 80 * waves + 0.5 * number * noise
        Image.fromarray(pixels.astype(np.uint8).repeat(3, axis=2)).save(tmp_path / f"{number}.png")
        faces.append(FaceSample(f"{number}.png", record=record, face=face(), number=2))
    sharp = READER.sharpness([(one, tmp_path / one.name) for one in faces])
    assert any(0.5 < value < 0.54 for value in sharp)
    assert any(0.54 < value < 0.59 for value in sharp)
    wanted = ["blurred" if value < 0.54 else "" for value in sharp]
    assert doubts(READER, tmp_path, faces) == wanted


def test_photos_without_a_face_and_whole_images_raise_no_doubt():
    found = FaceSample("a.jpg", record=PhotoRecord(width_px=9, height_px=9), face=face())
    without = replace(found, face=None), replace(found, record=None, face=None)
    assert doubts(READER, Path(), list(without)) == ["", ""]
