"""Dark, bright, blurred, small and profile photos get hints; good photos get none."""

import numpy as np
import pytest
from drawn_scenes import drawn_faces
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from facepairs.faces.detector import Face
from facepairs.faces.hints import photo_hints, sharpness
from facepairs.images.crop import CropSpec, load_crop

SPEC = CropSpec(250, 128)


@pytest.fixture(scope="module")
def crop(tmp_path_factory):
    """A face of medium brightness."""
    paths = drawn_faces(tmp_path_factory.mktemp("faces") / "faces")
    crops = [load_crop(path, SPEC) for path in paths]
    return min(crops, key=lambda one: abs(one.mean() - 118))


def kinds(crop, side_px=128, face=None):
    return {hint.kind for hint in photo_hints(crop, side_px, face)}


def test_a_good_photo_has_no_hints(crop):
    assert kinds(crop) == set()
    assert kinds(crop, face=Face(0, 0, 100)) == set()


def test_dark_and_bright_photos_are_named(crop):
    assert kinds((crop * 0.4).astype(np.uint8)) == {"dark"}
    assert kinds((255 - (255 - crop) * 0.4).astype(np.uint8)) == {"bright"}


def test_an_enlarged_photo_is_blurred(crop):
    image = Image.fromarray(crop)
    for divisor in (3, 5):
        small = image.resize((128 // divisor,) * 2, Image.Resampling.BOX)
        assert kinds(np.asarray(small.resize((128, 128), Image.Resampling.BILINEAR))) == {"blurred"}


def test_small_photos_and_profiles_are_named(crop):
    assert kinds(crop, side_px=40) == {"small"}
    assert kinds(crop, face=Face(0, 0, 100, profile=True)) == {"profile"}
    text = photo_hints(crop, 40.4)[0].text
    assert "40" in text
    assert "128" in text


@given(st.integers(1, 40), st.integers(0, 255))
def test_uniform_crops_of_any_size_are_only_dark_or_bright(size_px, level):
    crop = np.full((size_px, size_px, 3), level, np.uint8)
    assert kinds(crop, size_px) <= {"dark", "bright"}


def test_sharpness_is_half_for_a_ramp_and_high_for_noise():
    rng = np.random.default_rng(0)
    noise = rng.random((64, 64))
    assert sharpness(noise) > 0.9
    ramp = np.tile(np.linspace(0, 1, 64), (64, 1))
    assert sharpness(ramp) == pytest.approx(0.5, abs=0.01)
    assert sharpness(np.zeros((63, 65))) == 1
