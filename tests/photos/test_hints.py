"""Photos that are hard to judge get hints of the right kind; good photos get none."""

import numpy as np
import pytest
from drawn.scenes import drawn_faces
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from facepairs.photos.crop import CropSpec, load_crop
from facepairs.photos.frame import TEMPLATE, Face
from facepairs.photos.hints import (
    brightness,
    gray_of,
    hints_of_crop,
    sharpness,
)

SPEC = CropSpec(250, 128)


@pytest.fixture(scope="module")
def crop(tmp_path_factory):
    """A face of medium brightness."""
    paths = drawn_faces(tmp_path_factory.mktemp("faces") / "faces")
    crops = [load_crop(path, SPEC) for path in paths]
    return min(crops, key=lambda one: abs(one.mean() - 118))


def kinds(crop, side_px=128, face=None):
    return {hint.kind for hint in hints_of_crop(crop, side_px, face)}


def face(yaw=0.0, roll_deg=0.0, score=0.93):
    """A face whose nose tip is beside the middle of the eyes, turned clockwise."""
    landmarks = TEMPLATE.copy()
    landmarks[2, 0] = landmarks[:2, 0].mean() + yaw * np.ptp(landmarks[:2, 0])
    cos, sin = np.cos(np.radians(roll_deg)), np.sin(np.radians(roll_deg))
    return Face((landmarks - 124.5) @ np.array([[cos, sin], [-sin, cos]]) + 124.5, score)


def test_a_good_photo_has_no_hints(crop):
    assert kinds(crop) == set()
    assert kinds(crop, face=face()) == set()


def test_dark_and_bright_photos_are_named(crop):
    assert kinds((crop * 0.4).astype(np.uint8)) == {"dark"}
    assert kinds((255 - (255 - crop) * 0.4).astype(np.uint8)) == {"bright"}


@pytest.mark.parametrize(
    ("level", "found"), [(66, {"dark"}), (67, set()), (168, set()), (169, {"bright"})]
)
def test_the_limits_of_light_are_the_ones_measured(level, found):
    crop = np.full((128, 128, 3), level, np.uint8)
    assert kinds(crop) == found
    assert brightness(gray_of(crop)) == pytest.approx(level / 255, abs=1e-5)


def test_colours_count_as_the_eye_sees_them():
    gray = gray_of(np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [0, 0, 0]]], np.uint8))
    assert gray.tolist() == [pytest.approx([0.299, 0.587, 0.114, 0], abs=1e-6)]
    assert brightness(gray) == pytest.approx(1 / 3, abs=1e-6)  # without what is black


def test_what_lies_beyond_the_photo_does_not_make_it_dark(crop):
    padded = crop.copy()
    padded[:, :80] = 0
    assert padded.mean() < 0.26 * 255
    assert "dark" not in kinds(padded)
    assert "dark" in kinds(np.zeros_like(crop))


def test_an_enlarged_photo_is_blurred(crop):
    image = Image.fromarray(crop)
    for divisor in (3, 5):
        small = image.resize((128 // divisor,) * 2, Image.Resampling.BOX)
        assert kinds(np.asarray(small.resize((128, 128), Image.Resampling.BILINEAR))) == {"blurred"}


def test_sharpness_is_the_gradient_beside_that_of_half_the_size():
    ramp = np.tile(np.linspace(0, 1, 64, dtype=np.float32), (64, 1))
    assert sharpness(ramp) == pytest.approx(0.5, abs=1e-3)
    stripes = np.tile(np.float32([0, 0, 1, 1]), (64, 16))  # of whole pixels of the half size
    # A pixel's gradient is 1/2 everywhere; in the half size it is 0, but 1 at both ends.
    assert sharpness(stripes) == pytest.approx(0.5 * (62 / 64) / (2 / 32), abs=0.01)
    assert sharpness(np.ones((64, 64), np.float32)) == 1.0
    assert sharpness(ramp[:3]) == sharpness(ramp[:, :3]) == 1.0
    assert sharpness(ramp[:4, :4]) == pytest.approx(0.5, abs=1e-3)
    odd = np.float32([0, 0, 1, 1, 9]) * np.float32([[0.1], [0.4], [0.1], [0.8], [9]])
    down, right = np.gradient(odd[:4, :4].reshape(2, 2, 2, 2).mean(axis=(1, 3)))
    coarse = np.hypot(down, right).mean()  # without the last row and column
    assert sharpness(odd) == pytest.approx(np.hypot(*np.gradient(odd)).mean() / coarse, rel=1e-5)


@pytest.mark.parametrize(("mix", "found"), [(0.03, {"blurred"}), (0.04, set())])
def test_the_limit_of_sharpness_is_the_one_measured(mix, found):
    y, x = np.indices((128, 128)) / 128
    coarse = 0.5 + 0.2 * np.sin(9 * x) * np.cos(7 * y)
    fine = 0.2 * np.sin(2 * np.pi * 128 * x / 4)
    gray = np.clip(coarse + mix * fine, 0, 1)
    crop = np.repeat((255 * gray).round().astype(np.uint8)[..., None], 3, axis=2)
    assert (sharpness(gray_of(crop)) < 0.552) == bool(found)
    assert kinds(crop) == found


def test_small_photos_are_named(crop):
    assert kinds(crop, side_px=40) == kinds(crop, side_px=67.36) == {"small"}
    assert kinds(crop, side_px=67.37) == set()  # 60 / 114 of 128
    text = hints_of_crop(crop, 40.4)[0].text
    assert "40" in text
    assert "67" in text
    (hint,) = hints_of_crop(crop, 40.4, face())  # its face is as large as in the frame, 114 pixels
    assert hint.text == "too small: the face measures 114 pixels; 190 are enough"


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_pose_of_a_face_is_named(crop, sign):
    assert kinds(crop, face=face(yaw=sign * 0.361)) == {"profile"}
    assert kinds(crop, face=face(yaw=sign * 0.359)) == set()
    for roll_deg in (30.01, 90, 180):
        assert kinds(crop, face=face(roll_deg=sign * roll_deg)) == {"turned"}
    assert kinds(crop, face=face(roll_deg=sign * 29.99)) == set()


def test_an_uncertain_face_is_named(crop):
    assert kinds(crop, face=face(score=0.9049)) == {"covered"}
    assert kinds(crop, face=face(score=0.905)) == set()


@given(st.integers(1, 40), st.integers(0, 255))
def test_uniform_crops_of_any_size_are_only_dark_or_bright(size_px, level):
    crop = np.full((size_px, size_px, 3), level, np.uint8)
    assert kinds(crop, size_px) <= {"dark", "bright"}
