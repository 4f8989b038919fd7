"""The image check passes what can be decoded, names problems, and tells what TensorFlow decodes."""

import errno
import pickle
import random
import re
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from drawn.photos import encoded, exif_of, jpeg, picture, put
from hostile.containers import png
from PIL import Image

from facepairs.errors import ImageProblem
from facepairs.photos.decode import is_tf_decodable, upright
from facepairs.photos.photo import open_photo, read_checked, read_image_file


class Seen(NamedTuple):
    """What is known of a photo after it was decoded."""

    plain: bool
    size: tuple[int, int]
    pixels: np.ndarray
    divisor: int


def check(data: bytes, shrink: float = 1) -> Seen:
    photo = open_photo(data)
    with upright(photo, shrink) as (image, divisor):
        return Seen(is_tf_decodable(photo), photo.upright_px, np.asarray(image), divisor)


def turned(orientation: int, size: tuple[int, int] = (80, 80)) -> bytes:
    return jpeg(0, size, exif=exif_of(orientation))


@pytest.mark.parametrize(
    ("data", "kind", "says"),
    [
        (b"", "zero_byte", "0 bytes"),
        (b"<html>404</html>", "not_image", "not a JPEG"),
        (jpeg(0)[:-200], "unreadable", "truncated"),
        (jpeg(0)[:300] + bytes(len(jpeg(0)) - 300), "unreadable", "truncated"),
        (encoded(picture(0), "PNG")[:-500], "unreadable", "truncated"),
        (b"BM" + bytes(200), "unreadable", "damaged"),
        (encoded(Image.new("F", (9, 9)), "TIFF"), "unsupported", "32 bits a pixel"),
        (
            png(7_212, 7_212, 8, 0, zlib.compress(bytes(100))),
            "too_large",
            "over 52 megapixels .7212 x 7212",
        ),
        (
            jpeg(0).ljust(8_051_201, b"\0"),
            "too_large",
            "8,051,201 bytes for 80 x 80 pixels, above 8,051,200; save",
        ),
        (png(2**31 - 1, 2**31 - 1, 8, 0, zlib.compress(bytes(100))), "too_large", "megapixels"),
    ],
)
def test_a_bad_file_is_reported_with_kind_and_reason(
    tmp_path: Path, data: bytes, kind: str, says: str
) -> None:
    path = put(tmp_path, "x.jpg", data)
    with pytest.raises(ImageProblem) as caught:
        check(read_checked(path, read_image_file))
    assert caught.value.problem == kind
    assert re.search(says, caught.value.reason)
    assert caught.value.message == f"image: {caught.value.reason}"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.problem, again.reason, str(again)) == (kind, again.reason, str(caught.value))


def test_a_file_that_cannot_be_read_is_reported_with_kind_and_reason(tmp_path: Path) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    for path, read, kind, says in (
        (tmp_path / "none.jpg", read_image_file, "unreadable", "No such file"),
        (tmp_path, read_image_file, "unreadable", "a folder"),
        ("a\0b", read_image_file, "unreadable", "null"),
        (tmp_path, refuse, "no_permission", "grant yourself"),
        (tmp_path, lambda _: bytes((256 << 20) + 1), "too_large", "over 256 MB"),
    ):
        with pytest.raises(ImageProblem, match=f"photo 3: .*{says}") as caught:
            read_checked(path, read, "photo 3")
        assert caught.value.problem == kind
    assert len(read_checked(tmp_path, lambda _: bytes(256 << 20))) == 256 << 20


def test_too_many_open_files_say_nothing_of_a_photo():
    def fail(path: str) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    with pytest.raises(OSError, match="Too many open files") as caught:
        read_checked("a.jpg", fail)
    assert not isinstance(caught.value, ImageProblem)


@pytest.mark.parametrize(
    ("name", "data", "plain"),
    [
        ("JPEG", jpeg(0), True),
        ("gray JPEG", encoded(picture(0).convert("L"), "JPEG"), True),
        ("progressive JPEG", jpeg(0, progressive=True), True),
        ("JPEG with restarts", jpeg(0, restart_marker_rows=1), True),
        ("JPEG with a comment", jpeg(0, comment=b"\xff\xda\xff\xd9"), True),
        ("JPEG with bytes behind it", jpeg(0) + b"\0" * 300 + b"\xff\xda", True),
        ("JPEG with the most bytes behind it", jpeg(0).ljust(8_051_200, b"\0"), True),
        ("two JPEGs", encoded(picture(0), "MPO", save_all=True, append_images=[picture(1)]), True),
        ("upright JPEG", turned(1), True),
        ("turned JPEG", turned(3), True),
        ("JPEG without its end", jpeg(0)[:-2] + bytes(50), False),
        ("CMYK JPEG", encoded(picture(0).convert("CMYK"), "JPEG"), False),
        ("PNG", encoded(picture(0), "PNG"), False),
        ("PNG without its end", encoded(picture(0), "PNG")[:-1], False),
        ("palette", encoded(picture(0).convert("P"), "PNG"), False),
        ("BMP", encoded(picture(0), "BMP"), False),
        ("BMP with a palette", encoded(picture(0).convert("P"), "BMP"), False),
        ("BMP and a byte", encoded(picture(0), "BMP") + b"\0", False),
        ("PPM", encoded(picture(0), "PPM"), False),
    ],
)
def test_an_image_that_pillow_decodes_passes(name: str, data: bytes, plain: bool) -> None:
    seen = check(data)
    assert (seen.size, seen.plain, seen.divisor) == ((80, 80), plain, 1), name
    assert seen.pixels.shape == (80, 80, 3)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("size", [(640, 480), (641, 487)])
def test_the_size_is_that_of_the_upright_image(orientation: int, size: tuple[int, int]) -> None:
    seen = check(turned(orientation, size), shrink=9)
    assert seen.size == (size if orientation < 5 else size[::-1])
    assert seen.divisor == 8
    assert seen.pixels.shape[:2] == tuple(-(-side // 8) for side in seen.size[::-1])


def test_large_jpegs_of_several_scans_are_not_plain() -> None:
    for size, progressive, expected in (
        ((3000, 3000), False, True),
        ((4000, 2000), True, True),
        ((4000, 2001), True, False),
    ):
        data = encoded(Image.new("L", size), "JPEG", progressive=progressive)
        assert is_tf_decodable(open_photo(data)) == expected


def test_tensorflow_decodes_plain_images_to_the_same_pixels() -> None:
    tf = pytest.importorskip("tensorflow")
    sound = [
        jpeg(0),
        jpeg(0, (75, 61), subsampling=1),
        jpeg(0, subsampling=0),
        jpeg(0, progressive=True),
        jpeg(0, keep_rgb=True),
        encoded(picture(0).convert("L"), "JPEG"),
    ]
    rng = random.Random(7)
    plain = 0
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
            try:
                seen = check(variant)
            except ImageProblem:
                continue
            if seen.plain:
                plain += 1
                decoded = tf.io.decode_jpeg(variant, 3, dct_method="INTEGER_ACCURATE")
                assert np.array_equal(decoded.numpy(), seen.pixels)
    assert plain > 300
