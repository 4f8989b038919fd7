"""Check that a file is an image which Pillow and TensorFlow both read, with the same pixels.

Pillow alone is not strict enough: it accepts a JPEG without its end marker, a PNG truncated within
its last chunk or a BMP with surplus bytes, all of which stop TensorFlow in the middle of training;
and TensorFlow ignores a BMP's palette. So the file's structure is checked as well, up to the end
that its format defines.
"""

import math
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from typing import Any

from PIL import Image, UnidentifiedImageError

from facepairs.images import jpeg
from facepairs.images.decode_budget import LARGE_PIXELS, decode_budget, decode_cost_px
from facepairs.images.hazards import PNG, find_hazard, png_chunks
from facepairs.images.orientation import UPRIGHT, read_orientation
from facepairs.images.photo import TooLarge, read_image_file
from facepairs.images.pixels import MAX_PIXELS

# TensorFlow decodes everything but JPEGs of one scan at full size, several images at a time.
MAX_WHOLE_PIXELS = 25_000_000
# Limit of a file's size: 16 bits a channel with alpha, plus profiles, previews or a short film.
# Training holds the files of a whole batch in memory.
BYTES_PER_PIXEL, EXTRA_BYTES = 8, 8_000_000

BMP = b"BM"
_OTHER_FORMATS = (  # (offset, first bytes, name)
    (0, b"GIF8", "GIF"),
    (8, b"WEBP", "WebP"),
    (0, b"II*\0", "TIFF"),
    (0, b"MM\0*", "TIFF"),
    (4, b"ftypheic", "HEIC"),
    (4, b"ftypmif1", "HEIC"),
    (4, b"ftypavif", "AVIF"),
    (0, b"\0\0\0\x0cjP  ", "JPEG 2000"),
    (0, b"\xff\x4f\xff\x51", "JPEG 2000"),
    (0, b"\xff\x0a", "JPEG XL"),
    (0, b"\0\0\0\x0cJXL ", "JPEG XL"),
)
_CONVERT = "convert it to JPEG or PNG"

_HUFFMAN_FRAMES = frozenset((0xC0, 0xC1, 0xC2))  # baseline, extended, progressive


@dataclass(frozen=True, slots=True)
class ImageCheck:
    """The result of checking one file.

    Attributes:
        problem: "" for a good image, else "zero_byte", "not_image", "unsupported", "unreadable",
            "no_permission" or "too_large".
        reason: The problem in words.
        width_px: Stored width.
        height_px: Stored height.
        orientation: EXIF orientation, 1 to 8.
        digest: SHA-256 of the file, b"" unless the check was thorough.
        plain: Whether TensorFlow decodes it as Pillow does; see `is_plain`.
    """

    problem: str = ""
    reason: str = ""
    width_px: int = 0
    height_px: int = 0
    orientation: int = UPRIGHT
    digest: bytes = b""
    plain: bool = False


class _Problem(Exception):
    """What is wrong with a file: the `problem` and `reason` of its ImageCheck."""


def inspect_image(
    file: Any, thorough: bool = True, read_file: Callable[[Any], bytes] = read_image_file
) -> ImageCheck:
    """Decode one image file; never raise, and never wait for a FIFO or a device.

    The caller silences Pillow's warnings, because the filter belongs to the whole process.

    Args:
        file: The file's path, or whatever `read_file` takes.
        thorough: Determine its EXIF orientation and SHA-256, too.
        read_file: Returns the content of the file; may raise OSError.
    """
    try:
        return _inspect_bytes(read_file(file), thorough)
    except _Problem as found:
        return ImageCheck(*found.args)
    except PermissionError:
        return ImageCheck("no_permission", "may not be read; grant yourself read permission")
    except TooLarge as error:
        return ImageCheck("too_large", f"holds {error.strerror}; no photo needs that many bytes")
    except OSError as error:
        return ImageCheck("unreadable", f"cannot be read ({error.strerror})")
    except ValueError:
        return ImageCheck("unreadable", "cannot be read (a NUL in its name)")


@dataclass(frozen=True)
class InspectImages:
    """Inspects image files by name; a work object that threads and pickle can share.

    Attributes:
        read_file: Returns the content of a file by its name; may raise OSError.
        thorough: Determine the EXIF orientation and the SHA-256 of each file, too.
    """

    read_file: Callable[[str], bytes]
    thorough: bool

    def __call__(self, names: Iterable[str]) -> list[ImageCheck]:
        """Return what each of these files is."""
        return [inspect_image(name, self.thorough, self.read_file) for name in names]


def is_plain(data: bytes, orientation: int) -> bool:
    """Return whether TensorFlow decodes an image exactly as Pillow does.

    That is a JPEG with Huffman coding, 1 or 3 components and an end marker, stored upright.

    Args:
        data: The whole file, which `open_photo` has accepted.
        orientation: Its EXIF orientation.
    """
    if orientation != UPRIGHT or not data.startswith(jpeg.SIGNATURE):
        return False
    marker = jpeg.NO_MARKER
    for marker, start, _, _ in jpeg.segments(data):
        if marker in jpeg.FRAMES:
            components = data[start + 7 : start + 8]  # ITU-T T.81, B.2.2
            if marker not in _HUFFMAN_FRAMES or components not in (b"\1", b"\3"):
                return False
    return marker == jpeg.END


def _inspect_bytes(data: bytes, thorough: bool) -> ImageCheck:
    """Decode the content of one image file; raise _Problem."""
    if not data:
        raise _Problem("zero_byte", "is empty (0 bytes); fetch it again or remove it")
    if not data.startswith((jpeg.SIGNATURE, PNG, BMP)):
        for offset, magic, name in _OTHER_FORMATS:
            if data.startswith(magic, offset):
                raise _Problem(
                    "unsupported", f"is a {name} image whatever its name says; {_CONVERT}"
                )
        raise _Problem("not_image", "is not an image: it does not start like a JPEG, PNG or BMP")
    hazard = find_hazard(data)
    if hazard:
        raise _Problem("too_large", f"would take too long to read ({hazard}); remove it")
    try:
        with Image.open(BytesIO(data), formats=("JPEG", "PNG", "BMP")) as image:
            width, height = image.size
            most = _most_pixels(data, width * height)
            if width * height > most:
                raise _too_large(f"{width}x{height} pixels", most)
            if len(data) > BYTES_PER_PIXEL * width * height + EXTRA_BYTES:
                holds = f"holds {len(data):,} bytes for {width}x{height} pixels"
                raise _Problem("too_large", f"{holds}; save its pixels again or remove it")
            _check_structure(data, image)
            if width * height > LARGE_PIXELS:  # all bits of a JPEG are read all the same
                image.draft(image.mode, (width // 8, height // 8))
            cost_px = decode_cost_px(data, math.prod(image.size), width * height)
            with decode_budget.acquire(cost_px):
                image.load()
            orientation = read_orientation(image)
    except _Problem:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large("far more pixels than a photo of a face needs") from None
    except UnidentifiedImageError:
        raise _damaged("its header makes no sense") from None
    except Exception as error:  # noqa: BLE001  Pillow's decoders raise anything on damaged files
        raise _damaged(str(error) or type(error).__name__) from None
    digest = sha256(data).digest() if thorough else b""
    plain = is_plain(data, orientation)
    return ImageCheck("", "", width, height, orientation, digest, plain)


def _damaged(why: str) -> _Problem:
    return _Problem("unreadable", f"is truncated or damaged ({why}); fetch it again or remove it")


def _most_pixels(data: bytes, pixels: int) -> int:
    """Return how many pixels the image may have, reading a large JPEG's scans to decide."""
    if pixels <= MAX_WHOLE_PIXELS:
        return MAX_PIXELS
    one_scan = data.startswith(jpeg.SIGNATURE) and not jpeg.has_several_scans(data)
    return MAX_PIXELS if one_scan else MAX_WHOLE_PIXELS


def _too_large(size: str, most: int = MAX_PIXELS) -> _Problem:
    return _Problem("too_large", f"has {size}; reduce it below {most:,} or remove it")


def _check_structure(data: bytes, image: Image.Image) -> None:
    if data.startswith(jpeg.SIGNATURE):
        _check_jpeg(data)
    elif data.startswith(PNG):
        _check_png(data)
    else:
        _check_bmp(data, image)


def _check_jpeg(data: bytes) -> None:
    """Follow the segments to the end marker, without which TensorFlow refuses the file."""
    for segment in jpeg.segments(data):
        if segment.marker == jpeg.END:
            return
        if segment.marker in jpeg.FRAMES and segment.marker not in _HUFFMAN_FRAMES:
            kind = "a lossless, hierarchical or arithmetic-coded JPEG"
            raise _Problem("unsupported", f"is {kind}, which TensorFlow does not read; {_CONVERT}")
    raise _damaged("a JPEG without its end marker")


def _check_png(data: bytes) -> None:
    """Follow the chunks to IEND, and check the sums of the chunks that a decoder needs."""
    for kind, start, end in png_chunks(data):
        if end + 4 > len(data):
            break
        critical = not kind[0] & 0x20  # PNG 1.2, 3.3: upper case
        stored = int.from_bytes(data[end : end + 4], "big")
        if critical and zlib.crc32(memoryview(data)[start - 4 : end]) != stored:
            raise _damaged(f"the checksum of its {kind.decode('latin-1')} chunk is wrong")
        if kind == b"IEND":
            return
    raise _damaged("a PNG without its end chunk")


def _check_bmp(data: bytes, image: Image.Image) -> None:
    """Check TensorFlow's requirements: plain 8-bit gray, 24 or 32 bits, and the exact size."""
    if len(data) < 54:
        raise _damaged("its header is truncated")
    start, header = struct.unpack_from("<II", data, 10)
    bits, compression = struct.unpack_from("<HI", data, 28)
    masks = struct.unpack_from("<III", data, 54) if len(data) >= 66 else ()
    plain = header >= 40 and (
        compression == 0 or (compression == 3 and masks == (0xFF0000, 0xFF00, 0xFF))
    )
    gray = bits == 8 and image.mode == "L"
    if not plain or not (gray or bits in (24, 32)):
        kind = "a BMP with a palette, compression or an odd pixel format"
        raise _Problem("unsupported", f"is {kind}, which TensorFlow misreads; {_CONVERT}")
    width, height = image.size
    row_bytes = (bits // 8 * width + 3) // 4 * 4
    if len(data) != start + row_bytes * height:
        raise _damaged(f"a BMP of {len(data):,} bytes; {start + row_bytes * height:,} expected")
