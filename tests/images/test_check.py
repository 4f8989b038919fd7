"""The image check passes exactly what TensorFlow and Pillow both read, and names the problem."""

import random
import re
import struct
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_files import encoded, jpeg, picture, put
from PIL import ImageFile

from facepairs.images.check import inspect_image


def png_header(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(b"\0" * 100))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(
    ("data", "kind", "says"),
    [
        (b"", "zero_byte", "0 bytes"),
        (b"<html>404</html>", "not_image", "not an image"),
        (jpeg(0)[:-200], "unreadable", "truncated"),
        (jpeg(0)[:-2], "unreadable", "end marker"),
        (jpeg(0, progressive=True)[:-2], "unreadable", "end marker"),
        (jpeg(0)[:300] + bytes(len(jpeg(0)) - 300), "unreadable", "truncated"),
        (encoded(picture(0), "PNG")[:-1], "unreadable", "end chunk"),
        (encoded(picture(0), "PNG")[:-500], "unreadable", "truncated"),
        (encoded(picture(0), "BMP") + b"\0", "unreadable", "expected"),
        (b"BM" + bytes(20), "unreadable", "damaged"),
        (b"BM" + bytes(200), "unreadable", "damaged"),
        (encoded(picture(0).convert("P"), "BMP"), "unsupported", "palette"),
        (encoded(picture(0), "WEBP"), "unsupported", "is a WebP image .* JPEG or PNG"),
        (encoded(picture(0), "GIF"), "unsupported", "is a GIF image"),
        (encoded(picture(0), "TIFF"), "unsupported", "is a TIFF image"),
        (jpeg(0).replace(b"\xff\xc0", b"\xff\xc9", 1), "unsupported", "arithmetic"),
        (png_header(8000, 8000), "too_large", "8000x8000"),
        (jpeg(0) + bytes(9_000_000), "too_large", "9,00.* bytes for 80x80 pixels; save"),
        (png_header(10_000, 10_000), "too_large", "10000x10000"),
        (png_header(60_000, 60_000), "too_large", "pixels"),
    ],
)
def test_a_bad_file_is_reported_with_kind_and_reason(
    tmp_path: Path, data: bytes, kind: str, says: str
) -> None:
    path = put(tmp_path, "x.jpg", data)
    check = inspect_image(path, thorough=False)
    assert check.problem == kind
    assert re.search(says, check.reason)
    assert inspect_image(path) == check


def test_one_flipped_byte_in_a_png_is_found(tmp_path: Path) -> None:
    data = bytearray(encoded(picture(0), "PNG"))
    data[len(data) // 2] ^= 1
    assert (
        inspect_image(put(tmp_path, "a.png", bytes(data)), thorough=False).problem == "unreadable"
    )


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("png_named.jpg", encoded(picture(0), "PNG")),
        ("jpeg_named.png", jpeg(0)),
        ("bmp_named.jpg", encoded(picture(0), "BMP")),
        ("gray.bmp", encoded(picture(0).convert("L"), "BMP")),
        ("alpha.bmp", encoded(picture(0).convert("RGBA"), "BMP")),
        ("palette.png", encoded(picture(0).convert("P"), "PNG")),
        ("bit.png", encoded(picture(0).convert("1"), "PNG")),
        ("cmyk.jpg", encoded(picture(0).convert("CMYK"), "JPEG")),
        ("trailing.jpg", jpeg(0) + b"\0" * 300 + b"\xff\xda"),
        ("progressive.jpg", jpeg(0, progressive=True)),
        ("restarts.jpg", jpeg(0, restart_marker_rows=1)),
        ("comment.jpg", jpeg(0, comment=b"\xff\xda\xff\xd9")),
        ("two.jpg", encoded(picture(0), "MPO", save_all=True, append_images=[picture(1)])),
    ],
)
def test_an_image_that_tensorflow_and_pillow_read_alike_passes(
    tmp_path: Path, name: str, data: bytes
) -> None:
    check = inspect_image(put(tmp_path, name, data))
    assert (check.problem, check.width_px, check.height_px) == ("", 80, 80)


def test_tensorflow_reads_every_image_that_passes(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    sound = [
        jpeg(0),
        jpeg(0, progressive=True),
        encoded(picture(0).convert("L"), "JPEG"),
        encoded(picture(0), "PNG"),
        encoded(picture(0).convert("P"), "PNG"),
        encoded(picture(0), "BMP"),
        encoded(picture(0).convert("L"), "BMP"),
        encoded(picture(0).convert("RGBA"), "BMP"),
    ]
    rng = random.Random(7)
    accepted = 0
    for data in sound:
        variants = [data, data + b"\n", data + bytes(99)]
        variants += [data[:-cut] for cut in (*range(1, 16), 20, 100, 400)]
        for _ in range(40):
            at = rng.randrange(len(data))
            flipped = bytes([data[at] ^ (1 << rng.randrange(8))])
            variants.append(data[:at] + flipped + data[at + 1 :])
            variants.append(data[:at] + bytes(len(data) - at))
            variants.append(data[:at] + data[at + rng.randrange(1, 40) :])
        for variant in variants:
            if not inspect_image(put(tmp_path, "variant", variant), thorough=False).problem:
                accepted += 1
                tf.io.decode_image(variant, channels=3, expand_animations=False)  # must not raise
    assert accepted > 100


@given(
    kind=st.sampled_from(["JPEG", "PNG", "BMP"]),
    keep=st.floats(0, 1),
    junk=st.binary(max_size=60),
    tail=st.booleans(),
)
@settings(max_examples=60, deadline=None)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_content_makes_the_check_raise(kind: str, keep: float, junk: bytes, tail: bool) -> None:
    data = encoded(picture(3, (20, 20)), kind)
    cut = int(keep * len(data))
    with tempfile.TemporaryDirectory() as place:
        path = put(Path(place), "x.jpg", data[:cut] + junk + (data[cut:] if tail else b""))
        check = inspect_image(path)
        assert bool(check.problem) == bool(check.reason)
        assert check.problem == inspect_image(path, thorough=False).problem
        assert bool(check.problem) != bool(check.width_px and check.height_px and check.digest)


def test_truncated_images_never_pass() -> None:
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False
