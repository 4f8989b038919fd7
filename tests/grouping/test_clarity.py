"""Which faces are too unclear to be grouped: both sides of each limit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter, ImageOps

from facepairs.grouping.collection import (
    CLEAR_PX,
    CLEAR_SCORE,
    CLEAR_YAW,
    OUTSIDE,
    doubts,
)
from facepairs.photos.face_sample import FaceSample
from facepairs.photos.frame import FACE_PX, TEMPLATE, Face
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
    assert FACE_PX > CLEAR_PX


@pytest.mark.parametrize(
    ("clear", "unclear", "why"),
    [
        ({"side_px": CLEAR_PX}, {"side_px": CLEAR_PX - 1}, "small"),
        ({"yaw": CLEAR_YAW - 0.01}, {"yaw": CLEAR_YAW + 0.01}, "turned"),
        ({"yaw": 0.01 - CLEAR_YAW}, {"yaw": -CLEAR_YAW - 0.01}, "turned"),
        ({"score": CLEAR_SCORE}, {"score": CLEAR_SCORE - 0.01}, "hard to make out"),
        *(
            ({name: near}, {name: far}, "cut off")
            for name, near, far in (
                ("left", -OUTSIDE * SIDE_PX, -OUTSIDE * SIDE_PX - 1),
                ("top", -OUTSIDE * SIDE_PX, -OUTSIDE * SIDE_PX - 1),
                ("left", 100 + OUTSIDE * SIDE_PX, 101 + OUTSIDE * SIDE_PX),
                ("top", 200 + OUTSIDE * SIDE_PX, 201 + OUTSIDE * SIDE_PX),
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


def test_photos_without_a_face_and_whole_images_raise_no_doubt():
    found = FaceSample("a.jpg", record=PhotoRecord(width_px=9, height_px=9), face=face())
    without = replace(found, face=None), replace(found, record=None, face=None)
    assert doubts(READER, Path(), list(without)) == ["", ""]
