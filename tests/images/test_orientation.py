"""EXIF orientation turns a photo, and no EXIF content does harm."""

import io

import numpy as np
import pytest
from drawn.photos import encoded, smooth
from PIL import Image

from facepairs.images.crop import CropSpec, load_crop
from facepairs.images.decode import EXIF_ORIENTATION, TURNS, upright
from facepairs.images.photo import open_photo


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_gives_the_upright_square(kind, orientation):
    upright = smooth(61, 84)  # odd slack on one axis: the square's offset must be the upright one's
    undo = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}[orientation]
    image = Image.fromarray(upright)
    stored = image if undo is None else image.transpose(Image.Transpose(undo))
    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = orientation
    options = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}.get(kind, {})
    data = encoded(stored, kind, exif=exif, **options)
    crop = load_crop(data, CropSpec(61, 30))
    assert np.abs(crop.astype(int) - upright[15:45, 27:57]).max() <= (6 if kind == "JPEG" else 0)


@pytest.mark.parametrize(("orientation", "turn"), TURNS.items())
def test_a_whole_photo_turns_as_pillow_turns_an_image(orientation, turn):
    frame = smooth(5, 7)
    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = orientation
    with upright(open_photo(encoded(frame, "PNG", exif=exif))) as (found, _):
        assert np.array_equal(found, Image.fromarray(frame).transpose(turn))


def test_every_transpose_of_pillow_has_an_orientation():
    assert set(TURNS.values()) == set(Image.Transpose)


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "1", "RGBA", "LA", "CMYK", "I;16", "clear"])
def test_every_mode_becomes_rgb(mode):
    frame = smooth(42, 130)
    image = Image.fromarray(frame)
    options = {}
    if mode == "I;16":
        image = Image.fromarray(frame[..., 0].astype(np.uint16) * 200)
    elif mode == "clear":
        image, options = image.convert("P"), {"transparency": 3}
    else:
        image = image.convert(mode)
    kind = "TIFF" if mode == "CMYK" else "PNG"
    data = encoded(image, kind, **options)
    stored = Image.open(io.BytesIO(data))
    if mode == "I;16":
        stored = Image.fromarray((np.asarray(stored) >> 8).astype(np.uint8))
    whole = stored.convert("RGBA").convert("RGB") if mode == "clear" else stored.convert("RGB")
    with upright(open_photo(data)) as (found, divisor):
        assert divisor == 1
        assert np.array_equal(found, whole)


def test_broken_exif_does_not_crash():
    frame = smooth(64, 64)
    plain = load_crop(encoded(frame, "JPEG"), CropSpec(64, 32))
    rng = np.random.default_rng(0)
    header = b"Exif\0\0MM\0*\0\0\0\x08"
    for length in (0, 3, 20, 200):
        junk = header + rng.integers(0, 256, length, np.uint8).tobytes()
        assert np.array_equal(load_crop(encoded(frame, "JPEG", exif=junk), CropSpec(64, 32)), plain)
