"""What opens in every viewer is read, and what is not damaged is not called so."""

import os
from pathlib import Path

import numpy as np
import pytest
from drawn.photos import encoded, stored
from PIL import Image, PngImagePlugin

from facepairs import BadConfig, BadImage, Verifier
from facepairs.photos.crop import CropSpec, load_crop
from facepairs.photos.photo import MAX_PIXELS, open_photo

SPEC = CropSpec(80, 80)


@pytest.fixture(scope="module")
def photos(few_faces: Path) -> list[Path]:
    return sorted(few_faces.glob("*/*.jpg"))[:2]


@pytest.fixture(scope="module")
def verifier() -> Verifier:
    return Verifier.load()


def test_large_metadata_is_skipped(photos):
    image = Image.open(photos[0])
    profile = os.urandom(700_000) + bytes(1_500_000)
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", 3_000_000 * "x", zip=True)
    text.add_itxt("XML:com.adobe.xmp", 2_000_000 * "y", zip=True)
    expected = load_crop(encoded(image, "PNG"), SPEC)
    for options in (
        {"icc_profile": profile},
        {"pnginfo": text},
        {"icc_profile": profile, "pnginfo": text, "exif": Image.Exif()},
    ):
        assert np.array_equal(load_crop(encoded(image, "PNG", **options), SPEC), expected)
    jpeg = encoded(image, "JPEG", icc_profile=profile, quality=95)
    assert np.array_equal(
        load_crop(jpeg, SPEC), load_crop(encoded(image, "JPEG", quality=95), SPEC)
    )


def test_the_orientation_of_a_png_survives_its_profile(photos):
    photo = Image.open(photos[0])
    turned = stored(photo, 6, "PNG", icc_profile=bytes(2_000_000))
    difference = load_crop(turned, SPEC).astype(int) - load_crop(encoded(photo, "PNG"), SPEC)
    assert np.abs(difference).max() <= 2


def test_a_phone_photo_of_50_megapixels_is_within_the_limit():
    assert MAX_PIXELS >= 8160 * 6144
    photo = encoded(Image.new("RGB", (8160, 6144)), "JPEG", quality=1)
    assert open_photo(photo).width_px == 8160
    assert load_crop(photo, SPEC).shape == (80, 80, 3)


def test_a_limit_is_named_with_the_way_to_raise_it(monkeypatch):
    photo = encoded(Image.new("L", (9000, 6000)), "PNG")
    for limit, is_read in (("", False), ("53", False), ("54", True)):
        monkeypatch.setenv("FACEPAIRS_MAX_MEGAPIXELS", limit)
        if is_read:
            assert open_photo(photo).width_px == 9000
            continue
        for source in (photo, Image.new("1", (9000, 6000))):
            with pytest.raises(BadImage) as caught:
                open_photo(source)
            assert "FACEPAIRS_MAX_MEGAPIXELS" in str(caught.value)
            assert f"{limit or 52} megapixels" in str(caught.value)
    for limit in ("0", "-5", "0.1", "x"):
        monkeypatch.setenv("FACEPAIRS_MAX_MEGAPIXELS", limit)
        with pytest.raises(BadConfig) as caught:
            open_photo(photo)
        assert caught.value.arguments == ("max_megapixels",)


def test_a_limit_of_the_users_own_holds_for_every_format(monkeypatch):
    one_pixel = encoded(Image.new("RGB", (1, 1)), "WEBP", lossless=True)
    at = one_pixel.index(b"VP8L") + 9  # WebP Lossless Bitstream, 3: width and height less one

    def photo(width: int, height: int) -> bytes:
        size = (int.from_bytes(one_pixel[at : at + 4], "little") >> 28 << 28) | (width - 1)
        size |= (height - 1) << 14
        return one_pixel[:at] + size.to_bytes(4, "little") + one_pixel[at + 4 :]

    assert open_photo(photo(5200, 5000)).width_px == 5200
    with pytest.raises(BadImage):
        open_photo(photo(5200, 5001))  # whose decoder holds four copies: 26 megapixels
    monkeypatch.setenv("FACEPAIRS_MAX_MEGAPIXELS", "30")
    assert open_photo(photo(6000, 5000)).width_px == 6000


@pytest.mark.parametrize("bits", [10, 12])
def test_a_photo_of_few_bits_in_sixteen_is_said_to_be_nearly_black(photos, verifier, bits):
    grey = np.asarray(Image.open(photos[0]).convert("L")).astype(np.uint16) << (bits - 8)
    photo = encoded(Image.fromarray(grey), "PNG")
    for use in (verifier.detect, lambda photo: verifier.verify(photo, photos[1])):
        with pytest.raises(BadImage):
            use(photo)
    bright = encoded(Image.fromarray(grey << (16 - bits)), "PNG")
    assert verifier.verify(bright, photos[0]).same


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_a_jpeg_that_lacks_pixels_is_damaged(photos, share):
    whole = encoded(Image.open(photos[0]), "JPEG", quality=95)
    with pytest.raises(BadImage):
        load_crop(whole[: int(len(whole) * share)], SPEC)
