"""EXIF orientation turns a photo, and no EXIF content does harm."""

import io

import numpy as np
import pytest
from drawn.photos import encoded, smooth, stored
from PIL import Image

from facepairs.photos.crop import CropSpec, load_crop
from facepairs.photos.decode import TURNS, upright
from facepairs.photos.photo import open_photo


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_gives_the_upright_square(kind, orientation):
    frame = smooth(61, 84)  # odd slack on one axis: the square's offset must be the upright one's
    options = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}.get(kind, {})
    data = stored(frame, orientation, kind, **options)
    crop = load_crop(data, CropSpec(61, 30))
    assert np.abs(crop.astype(int) - frame[15:45, 27:57]).max() <= (6 if kind == "JPEG" else 0)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("size", [(61, 84), (84, 61), (83, 99), (64, 96)])
@pytest.mark.parametrize("shrink", [2, 4, 8.5])
def test_a_shrunk_photo_shows_the_same_places(orientation, size, shrink):
    frame = smooth(*size)
    data = stored(frame, orientation, "JPEG", quality=100, subsampling=0)
    with upright(open_photo(data), shrink) as (image, divisor):
        shown = np.asarray(image).astype(float)
    assert divisor == int(shrink)
    assert shown.shape == (-(-size[0] // divisor), -(-size[1] // divisor), 3)
    expected = np.asarray(Image.fromarray(frame).reduce(divisor))
    inner = np.s_[: size[0] // divisor, : size[1] // divisor]  # a rounded edge has fewer pixels
    assert np.abs(shown - expected)[inner].max() <= 5


@pytest.mark.parametrize(("size", "turn"), [((64, 96), 6), ((96, 64), 6), ((64, 4), 1)])
@pytest.mark.parametrize("divisor", [1, 2, 4, 8])
def test_a_jpeg_of_whole_blocks_is_shrunk_by_libjpeg(size, turn, divisor):
    data = stored(smooth(*size), turn, "JPEG")
    with Image.open(io.BytesIO(data)) as expected:
        width, height = expected.size
        expected.draft("RGB", (max(1, width // divisor), max(1, height // divisor)))
        left = divisor * expected.width // width  # a thin image cannot be decoded at an eighth
        turned = expected.transpose(TURNS[turn]) if turn in TURNS else expected.copy()
    photo = open_photo(data)
    with upright(photo, divisor) as (image, found):
        assert np.array_equal(image, turned.reduce(left))
    assert (found, photo.upright_px) == (divisor, size[::-1])


@pytest.mark.parametrize(("size", "is_kept"), [((2000, 2000), True), ((2001, 2000), False)])
def test_only_a_small_image_is_kept_for_the_next_call(size, is_kept):
    photo = open_photo(Image.new("RGB", size))
    with upright(photo):
        pass
    assert (photo.kept is not None) == is_kept


def test_broken_exif_does_not_crash():
    frame = smooth(64, 64)
    plain = load_crop(encoded(frame, "JPEG"), CropSpec(64, 32))
    rng = np.random.default_rng(0)
    header = b"Exif\0\0MM\0*\0\0\0\x08"
    for length in (0, 3, 20, 200):
        junk = header + rng.integers(0, 256, length, np.uint8).tobytes()
        assert np.array_equal(load_crop(encoded(frame, "JPEG", exif=junk), CropSpec(64, 32)), plain)
