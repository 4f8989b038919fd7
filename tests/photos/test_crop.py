"""A crop is the same centre square from every kind of source, and bad images are named."""

import io
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn.crop_plans import rotated
from drawn.photos import encoded, smooth, stored
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFilter

from facepairs.errors import BadImage
from facepairs.photos.crop import CropSpec, Similarity, load_crop, warp_photo
from facepairs.photos.crop import warp as warp_image
from facepairs.photos.photo import open_photo

LFW = CropSpec(250, 112)


@pytest.mark.parametrize(
    ("frame", "crop"), [(0, 0), (5, 6), (5, 0), (5, -1), (2.0, 1), (True, 1), (4097, 5)]
)
def test_a_crop_must_fit_into_its_frame(frame, crop):
    with pytest.raises(ValueError, match="1 <= crop_px <= frame_px"):
        CropSpec(frame, crop)
    assert CropSpec(4096, 4096).side_px(10, 20) == 10


@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 400), st.integers(1, 400))
def test_the_square_fits_into_every_image(width, height, a, b):
    framing = CropSpec(max(a, b), min(a, b))
    side = framing.side_px(width, height)
    assert 1 <= side <= min(width, height)
    assert abs(side - min(width, height) * framing.crop_px / framing.frame_px) <= 1


def test_a_square_is_cut_from_the_middle_without_any_resize():
    frame = np.random.default_rng(1).integers(0, 256, (250, 250, 3), np.uint8)
    assert np.array_equal(load_crop(encoded(frame, "PNG"), LFW), frame[69:181, 69:181])
    odd = frame[:9, :14]
    assert np.array_equal(load_crop(odd, CropSpec(9, 4)), odd[2:6, 5:9])


def test_every_source_gives_the_same_crop(tmp_path):
    frame = smooth(300, 280)
    data = encoded(frame, "PNG")
    path = tmp_path / "a b é.png"
    path.write_bytes(data)
    expected = load_crop(data, LFW)
    assert expected.dtype == np.uint8
    assert expected.shape == (112, 112, 3)
    assert expected.flags.writeable
    with Image.open(path) as lazy, path.open("rb") as handle:
        for source in (
            path,
            str(path),
            handle,
            io.BytesIO(data),
            bytearray(data),
            memoryview(data),
            InParts(data),
            lazy,
            Image.fromarray(frame),
            frame,
        ):
            assert np.array_equal(load_crop(source, LFW), expected), type(source)


class InParts(io.RawIOBase):
    """A file that returns less than is asked for and cannot be rewound, such as a socket's."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._data.read(min(100, len(buffer)))
        buffer[: len(part)] = part
        return len(part)


@pytest.mark.parametrize("as_file", [True, False])
def test_modes_become_rgb_and_alpha_is_dropped(as_file):
    colour, gray = [200, 100, 50], [90, 90, 90]
    rgb = Image.new("RGB", (8, 8), tuple(colour))
    alpha = rgb.copy()
    alpha.putalpha(Image.new("L", (8, 8), 0))
    clear, one_clear = rgb.quantize(4), rgb.quantize(4)
    clear.info["transparency"] = bytes([0, 0, 0, 0])
    one_clear.info["transparency"] = 0
    for image, expected in (
        (rgb, colour),
        (alpha, colour),
        (rgb.quantize(4), colour),
        (clear, colour),
        (one_clear, colour),
        (Image.new("L", (8, 8), 90), gray),
        (Image.new("LA", (8, 8), (90, 0)), gray),
        (Image.new("1", (8, 8), 1), [255, 255, 255]),
    ):
        before = dict(image.info)
        crop = load_crop(encoded(image, "PNG") if as_file else image, CropSpec(8, 8))
        assert np.array_equal(crop, np.broadcast_to(expected, (8, 8, 3))), image
        assert image.info == before


def test_small_modes_are_resized_smoothly():
    ramp = np.tile(np.arange(0, 240, 8, dtype=np.uint8), (30, 1))
    palette = Image.fromarray(ramp).convert("P")
    crop = load_crop(palette, CropSpec(30, 30 - 1))
    assert len(np.unique(crop)) > len(np.unique(ramp)) - 3
    grown = load_crop(palette, CropSpec(100, 100))
    assert len(np.unique(grown)) > 60  # nearest neighbours would give 30


def test_arrays_of_every_depth_give_the_same_crop():
    frame = smooth(20, 20)
    expected = load_crop(frame, CropSpec(20, 10))
    alpha = np.dstack([frame, np.zeros((20, 20), np.uint8)])
    for array in (
        alpha,
        frame.astype(np.uint16) << 8,
        frame / 255,
        (frame / 255).astype(np.float32),
    ):
        assert np.array_equal(load_crop(array, CropSpec(20, 10)), expected)
    gray = frame[..., 0]
    for array in (gray, gray[..., None]):
        crop = load_crop(array, CropSpec(20, 10))
        assert np.array_equal(crop, np.dstack([expected[..., 0]] * 3))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((4, 4, 2), np.uint8),
        np.zeros((4,), np.uint8),
        np.zeros((0, 4), np.uint8),
        np.zeros((4, 4), np.int64),
        np.full((4, 4), 2.0),
        np.full((4, 4), -0.1),
        np.full((4, 4), np.nan),
        np.broadcast_to(np.uint8(0), (20_000, 10_000)),
    ],
)
def test_arrays_of_other_shapes_or_types_are_refused(array):
    with pytest.raises(BadImage, match="first image"):
        load_crop(array, CropSpec(4, 4), "first image")


def test_huge_photos_are_reduced_while_decoding_with_little_change():
    frame = smooth(1000, 1270, 3)
    whole = load_crop(frame, LFW)
    for orientation in (1, 6):
        crop = load_crop(stored(frame, orientation, "JPEG", quality=98), LFW)
        assert np.abs(crop.astype(int) - whole).max() <= 4


def test_a_photo_is_shrunk_first_as_far_as_its_square_allows():
    photo = open_photo(np.zeros((400, 400), np.uint8))
    for crop_px, divisor in ((12, 8), (13, 4), (25, 4), (26, 2), (50, 2), (51, 1)):  # half or less
        load_crop(photo, CropSpec(2 * crop_px, crop_px))
        assert photo.kept[1] == divisor
    for scale, divisor in ((0.124, 8), (0.126, 4), (0.249, 4), (0.251, 2), (0.499, 2), (0.501, 1)):
        warp_photo(photo, rotated(scale, 30, (200, 200)), 20)
        assert photo.kept[1] == divisor
    assert repr(photo) == (  # an image of a person belongs in no log
        "Photo(name='image', width_px=400, height_px=400, upright_px=(400, 400))"
    )
    assert open_photo(encoded(smooth(9, 9), "PNG")).upright_px == (0, 0)


@cache
def large_photo(width: int = 1001, height: int = 777) -> tuple[np.ndarray, bytes, bytes]:
    """Return an image, and its files as PNG and JPEG."""
    frame = smooth(height, width, 3)
    frame.flags.writeable = False
    jpeg = encoded(frame, "JPEG", quality=98, subsampling=0)
    return frame, encoded(frame, "PNG"), jpeg


def warp(frame: np.ndarray, to_square: Similarity, side_px: int) -> np.ndarray:
    return warp_image(Image.fromarray(frame), to_square, side_px)


SHRINKS = [1.6, 0.8, 0.45, 0.24, 0.11, 0.06]  # pixels of the square per pixel of the photo


@pytest.mark.parametrize("scale", SHRINKS)
@pytest.mark.parametrize("size", [(1001, 777), (1600, 1200)])
def test_a_rotated_square_is_cut_from_a_jpeg_decoded_smaller(scale, size):
    frame, png, data = large_photo(*size)
    square = rotated(scale, 25, (size[0] * 0.52, size[1] * 0.47))
    expected = warp(frame, square, 112)
    inside = well_inside(frame, square)
    assert inside.mean() > 0.1
    crops = [
        warp_photo(open_photo(source), square, 112)
        for source in (data, png, frame, Image.fromarray(frame))
    ]
    for crop in crops:
        apart = np.abs(crop.astype(int) - expected)[inside]
        assert apart.max() <= 5
        assert apart.mean() <= 1
    for crop in crops[2:]:
        assert np.array_equal(crop, crops[1])


def well_inside(frame: np.ndarray, square: Similarity) -> np.ndarray:
    """Return bool[112, 112]: three pixels or more within the photo."""
    white = warp(np.full_like(frame, 255), square, 112)[..., 0]
    return np.asarray(Image.fromarray(white).filter(ImageFilter.MinFilter(7))) == 255


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(("kind", "levels"), [("PNG", 2), ("TIFF", 2), ("JPEG", 5)])
@pytest.mark.parametrize("scale", [0.8, 0.24, 0.06])
def test_a_turned_photo_gives_the_square_of_the_upright_one(orientation, kind, levels, scale):
    frame = large_photo()[0]
    square = rotated(scale, -20, (560, 400))
    options = {"JPEG": {"quality": 98, "subsampling": 0}, "PNG": {"compress_level": 1}}
    photo = open_photo(stored(frame, orientation, kind, **options.get(kind, {})))
    apart = np.abs(warp_photo(photo, square, 112).astype(int) - warp(frame, square, 112))
    assert apart[well_inside(frame, square)].max() <= levels
    assert apart.max() < 140  # the edge of the photo is at most half a pixel away


def test_several_squares_come_from_one_opened_photo():
    frame = smooth(400, 600)
    squares = [rotated(0.11, 10, (300, 300)), rotated(0.7, 0, (500, 200)), rotated(0.3, 5, (0, 0))]
    for kind in ("JPEG", "PNG", "WEBP", "GIF"):
        data = encoded(frame, kind)
        photo = open_photo(data)
        for square in squares:
            first = warp_photo(photo, square, 112)
            assert np.array_equal(first, warp_photo(photo, square, 112))
            assert np.array_equal(first, warp_photo(open_photo(data), square, 112))


def test_a_square_beside_the_photo_is_black():
    photo = open_photo(encoded(smooth(40, 60), "PNG"))
    assert not warp_photo(photo, rotated(0.5, 3, (900, 900)), 112).any()
    assert not warp_photo(photo, rotated(0.5, 3, (-900, 0)), 112).any()


def test_other_objects_than_images_are_refused():
    closed = io.BytesIO(b"x")
    closed.close()
    for source in (7, io.StringIO("text"), closed):
        with pytest.raises(BadImage):
            load_crop(source, LFW)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs on this platform")
def test_pipes_and_devices_are_never_opened(tmp_path):
    fifo = tmp_path / "pipe.jpg"
    os.mkfifo(fifo)
    for path in (fifo, Path(os.devnull)):
        with pytest.raises(BadImage):
            load_crop(path, LFW)
