"""Similarity transforms, and the warp against two independent implementations."""

import math

import numpy as np
import pytest
from drawn.crop_plans import rotated
from drawn.photos import smooth
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.ndimage import map_coordinates

from facepairs.photos.crop import Similarity, centred_square
from facepairs.photos.crop import warp as warp_image

SIDE = 40
maps = st.builds(
    lambda scale, angle_deg, x, y: rotated(scale, angle_deg, (x, y), SIDE),
    st.floats(0.51, 3),
    st.floats(-180, 180),
    st.floats(-20, 90),
    st.floats(-20, 70),
)


def warp(image: np.ndarray, to_square: Similarity, side_px: int) -> np.ndarray:
    return warp_image(Image.fromarray(image), to_square, side_px)


@settings(max_examples=25, deadline=None)
@given(maps)
def test_the_warp_agrees_with_scipys_interpolation(to_square):
    image = smooth(50, 70)
    square = warp(image, to_square, SIDE)
    assert square.dtype == np.uint8
    rows, columns = np.indices((SIDE, SIDE))
    x, y = to_square.inverse()(np.stack([columns.ravel(), rows.ravel()], 1).astype(float)).T
    for channel in range(3):
        plane = image[..., channel].astype(float)
        expected = map_coordinates(plane, [y, x], order=1, mode="grid-constant")
        assert np.abs(square[..., channel].ravel() - expected).max() <= 1.1


@pytest.mark.parametrize("scale", [0.4, 0.2, 0.07])
def test_shrinking_averages_pixels(scale):
    noise = np.random.default_rng(0).integers(0, 256, (900, 900, 3), np.uint8)
    square = warp(noise, rotated(scale, 20, (450, 450), SIDE), SIDE)
    assert square.std() < 90 * scale  # nearest pixels would have 74
    assert abs(square.mean() - 127.5) < 2


@pytest.mark.parametrize("scale", [0.4, 0.2, 0.07])
def test_a_shrunk_square_shows_the_place_of_the_map(scale):
    y, x = np.indices((700, 900))
    image = np.stack([x * 255 / 900, y * 255 / 700, x * 0 + 9], -1).round().astype(np.uint8)
    to_square = rotated(scale, 30, (450, 350), SIDE)
    square = warp(image, to_square, SIDE)
    inside = warp(np.full_like(image, 255), to_square, SIDE)[..., 0] == 255
    rows, columns = np.nonzero(inside)
    places = to_square.inverse()(np.stack([columns, rows], 1).astype(float))
    shown = square[inside][:, :2] / 255 * (900, 700)
    levels = 2 * 900 / 255
    assert np.abs(shown - places).max() < levels + 0.2 / scale  # a part of a pixel


@given(maps)
def test_a_map_is_inverted(one):
    points = np.array([(0.0, 0), (3, -8), (60.5, 41)])
    assert np.allclose(one.inverse()(one(points)), points)


@given(maps, st.sampled_from([0.125, 0.25, 0.5, 2.0]))
def test_the_map_of_a_scaled_image_follows_the_pixels(to_square, scale):
    points = np.array([(0.0, 0), (31, 17)])
    scaled = (points + 0.5) * scale - 0.5
    assert np.allclose(to_square.of_scaled_image(scale)(scaled), to_square(points))


@settings(max_examples=25, deadline=None)
@given(maps, st.sampled_from([1, 0.4, 0.2]))
def test_what_lies_outside_of_the_image_is_black(to_square, shrink):
    to_square = Similarity(to_square.matrix * shrink, to_square.offset)
    square = warp(np.full((50, 70, 3), 255, np.uint8), to_square, SIDE)
    rows, columns = np.indices((SIDE, SIDE))
    x, y = to_square.inverse()(np.stack([columns.ravel(), rows.ravel()], 1).astype(float)).T
    beyond_px = np.max([-x, -y, x - 69, y - 49], axis=0).reshape(SIDE, SIDE)
    assert not square[beyond_px > 1 + 2 / to_square.scale].any()


def test_a_centred_square_keeps_the_centre_of_the_frame():
    to_frame = rotated(0.7, 12, (30, 25), SIDE)
    for scale, side in ((1.0, 128), (0.5, 61), (1.7, 200)):
        centre = to_frame.inverse()(np.array([124.5, 124.5]))
        square = centred_square(to_frame, 250, scale, side)
        assert np.allclose(square(centre), (side - 1) / 2)
        assert math.isclose(square.scale, scale * to_frame.scale)
        assert math.isclose(square.angle_deg, 12)
