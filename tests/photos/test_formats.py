"""Every format gives nearly the same crop; what is not read is named with what to do."""

import io
import zlib

import numpy as np
import pytest
from drawn.photos import encoded, smooth
from hostile.containers import png
from PIL import Image

from facepairs.data.index import OTHER_IMAGES, READABLE
from facepairs.errors import ImageProblem
from facepairs.photos import formats
from facepairs.photos.crop import CropSpec, Similarity, load_crop, warp, warp_photo
from facepairs.photos.photo import open_photo

LFW = CropSpec(250, 112)
FINE = {"JPEG": {"quality": 98}, "WEBP": {"quality": 98}, "AVIF": {"quality": 98}}
LEVELS = {"GIF": 12, "JPEG": 1, "WEBP": 2, "AVIF": 2}  # mean difference, 0 for the others


def heic(image: Image.Image, **options: object) -> bytes:
    """Encode without Pillow: that it knows the format is ours to see to."""
    out = io.BytesIO()
    pytest.importorskip("pillow_heif").from_pillow(image).save(out, **options)
    return out.getvalue()


def gray16_png(values: np.ndarray) -> bytes:
    """Write a 16-bit gray PNG by hand, since what Pillow writes it also could misread."""
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    return png(*values.shape[::-1], 16, 0, zlib.compress(rows))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "WEBP", "TIFF", "GIF", "PPM", "AVIF"])
def test_every_format_gives_nearly_the_same_crops(kind):
    frame = smooth(250, 300)
    data = encoded(frame, kind, **FINE.get(kind, {}))
    apart = np.abs(load_crop(data, LFW).astype(int) - load_crop(frame, LFW))
    assert apart.mean() <= LEVELS.get(kind, 0)
    square = Similarity(np.array([[0.6, -0.2], [0.2, 0.6]]), np.array([20.0, -40.0]))
    expected = warp(Image.fromarray(frame), square, 112)
    apart = np.abs(warp_photo(open_photo(data), square, 112).astype(int) - expected)
    assert apart.mean() <= LEVELS.get(kind, 0)


def test_an_animation_gives_its_first_frame():
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "lime", "blue")]
    for kind in ("GIF", "WEBP", "TIFF", "PNG", "AVIF"):
        more = {"WEBP": {"lossless": True}, "AVIF": {"quality": 100, "subsampling": "4:4:4"}}
        data = encoded(
            frames[0], kind, save_all=True, append_images=frames[1:], **more.get(kind, {})
        )
        crop = load_crop(data, CropSpec(8, 4))
        assert np.abs(crop.astype(int) - [255, 0, 0]).max() <= 2, kind


def test_16_bit_gray_keeps_the_high_byte_and_a_pgm_is_scaled_by_its_largest_value():
    values = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000
    pgm = b"P5 8 8 65535\n" + values.astype(">u2").tobytes()
    for source in (gray16_png(values), encoded(values, "TIFF"), pgm):
        crop = load_crop(source, CropSpec(8, 8))
        assert np.array_equal(crop, np.dstack([values >> 8] * 3))
    crop = load_crop(pgm.replace(b"65535", b"63000"), CropSpec(8, 8))
    assert np.abs(crop[..., 0] - values / 63000 * 255).max() <= 1


def test_of_32_bits_a_pixel_only_values_of_16_are_read():
    for values, expected in (((0, 65535), [0, 255]), ((65536, 0), None), ((-1, 9), None)):
        image = Image.fromarray(np.int32([values]))
        if expected:
            assert load_crop(image.resize((2, 2), 0), CropSpec(2, 2))[0, :, 0].tolist() == expected
            continue
        with pytest.raises(ImageProblem) as caught:
            load_crop(image, CropSpec(2, 2))
        assert caught.value.problem == "unsupported"


def test_an_image_of_an_iphone_needs_pillow_heif(monkeypatch):
    start = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(99)
    monkeypatch.setattr(formats, "_has_heif", lambda: False)
    with pytest.raises(ImageProblem) as caught:
        open_photo(start, "IMG_1.HEIC")
    assert caught.value.problem == "unsupported"


def test_a_pillow_without_avif_is_told(monkeypatch):
    monkeypatch.setattr(formats.features, "check", lambda kind: kind != "avif")
    with pytest.raises(ImageProblem) as caught:
        open_photo(brands(b"avif"), "x.avif")
    assert caught.value.problem == "unsupported"


def test_heif_is_read_where_pillow_heif_is_installed():
    frame = smooth(250, 250)
    crop = load_crop(heic(Image.fromarray(frame), quality=98), LFW)
    assert np.abs(crop.astype(int) - frame[69:181, 69:181]).mean() <= 2


@pytest.mark.parametrize(
    "data",
    [
        *(b"\0\0\0\x0cjP  \r\n\x87\n", b"%PDF-1.7", b"P7\nWIDTH 1", b"\0\0\0\x18ftypmp42"),
        *(b"II-\0", b"RIFF\0\0\0\0AVI ", b"RIFX\0\0\0\0WEBP"),
    ],
)
def test_other_files_are_no_images(data):
    with pytest.raises(ImageProblem) as caught:
        open_photo(data)
    assert caught.value.problem == "not_image"


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"II+\0\b\0\0\0", "BigTIFF"),
        (b"MM\0+\0\b\0\0", "BigTIFF"),
        (b"P2\n1 1\n255\n7", "PGM"),
        (b"P3 1 1 255 7 7 7", "PPM"),
    ],
)
def test_rare_kinds_of_known_formats_are_called_by_their_name(data, word):
    with pytest.raises(ImageProblem, match=word) as caught:
        open_photo(data)
    assert caught.value.problem == "unsupported"


def brands(major: bytes, *others: bytes) -> bytes:
    """The first box of an ISO base media file."""
    box = b"ftyp" + major + bytes(4) + b"".join(others)
    return (4 + len(box)).to_bytes(4) + box + b"meta"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (brands(b"avif", b"avif", b"mif1", b"miaf"), "AVIF"),
        (brands(b"avif", b"mif1", b"miaf"), "AVIF"),
        (brands(b"mif1", b"avif", b"miaf"), "AVIF"),
        (brands(b"mif1", b"mif1", b"avif"), "AVIF"),
        (brands(b"avis", b"msf1"), "AVIF"),
        (brands(b"mif1", b"heic"), "HEIF"),
        (brands(b"heic", b"mif1"), "HEIF"),
        (brands(b"msf1", b"hevc"), "HEIF"),
        (brands(b"heix"), "HEIF"),
    ],
)
def test_brands_tell_avif_from_heif(monkeypatch, data, kind):
    monkeypatch.setattr(formats, "_has_heif", lambda: True)
    assert formats.pillow_format(data, "x") == kind


def test_brands_behind_the_first_box_do_not_count(monkeypatch):
    monkeypatch.setattr(formats, "_has_heif", lambda: True)
    assert formats.pillow_format(brands(b"mif1", b"heic") + b"avif", "x") == "HEIF"


def test_every_format_has_its_suffixes_in_the_index():
    Image.init()
    names = [*FINE, "PNG", "BMP", "GIF", "TIFF", "PPM"]
    known = {suffix for suffix, name in Image.registered_extensions().items() if name in names}
    unusual = {".apng", ".dib", ".avifs", ".pfm"}
    assert known - unusual <= set(READABLE)
    assert not set(READABLE) & set(OTHER_IMAGES)
