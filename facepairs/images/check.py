"""Is this file an image that both Pillow and TensorFlow read, and read alike?

Pillow alone is not strict enough: it takes a JPEG without its end marker, a PNG cut within its last
chunk or a BMP with surplus bytes, at which TensorFlow stops a training; and TensorFlow ignores a
BMP's palette. So the file's structure is walked as well, to where each format says it ends.
"""

import errno
import math
import os
import stat
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO

from PIL import Image, UnidentifiedImageError

from facepairs.beam.places import Place, Uri
from facepairs.images import bombs

MAX_PIXELS = 50_000_000  # more is a decompression bomb or no photo of a face
# What TensorFlow decodes whole, several at a time: all but JPEGs of one scan.
MAX_WHOLE_PIXELS = 25_000_000
MAX_BYTES = 4 * MAX_PIXELS + 1_000_000  # what an uncompressed image of that many pixels takes
# Of a smaller image: 16 bits a channel with alpha, and profiles, previews or a short film besides.
# Training holds the files of a batch, unless its first is large.
BYTES_A_PIXEL, BYTES_BESIDES = 8, 8_000_000
ORIENTATION = 0x0112  # EXIF 2.32, 4.6.4
_UPRIGHT = 1

_JPEG, _PNG, _BMP = bombs.JPEG, bombs.PNG, b"BM"
_OTHERS = (  # (offset, first bytes, name)
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
class Look:
    """What one file is: size in pixels, EXIF orientation (1 to 8), SHA-256; or what is wrong.

    `problem` is "", "zero_byte", "not_image", "unsupported", "unreadable", "no_permission" or
    "too_large"; `reason` says it in words.
    """

    problem: str = ""
    reason: str = ""
    width_px: int = 0
    height_px: int = 0
    orientation: int = _UPRIGHT
    digest: bytes = b""


_EMPTY = Look("zero_byte", "is empty (0 bytes); fetch it anew or remove it")


def decodes(path: Place) -> Look:
    """Decode one image file; never raises, never waits on a FIFO or a device.

    Pillow's warnings are the caller's to silence: the filter belongs to the whole process.
    """
    data = _read(path)
    return data if isinstance(data, Look) else _decode(data, thorough=False)


def decode_each(paths: Iterable[Place]) -> list[Look]:
    """Look at some files as `decodes` does: what a pass does at a time."""
    return [decodes(path) for path in paths]


def examine_each(paths: Iterable[Place]) -> list[Look]:
    """Look at some files as `examine` does: what a pass does at a time."""
    return [examine(path) for path in paths]


def examine(path: Place) -> Look:
    """Decode one image file as `decodes` does, and give its orientation and digest too."""
    data = _read(path)
    return data if isinstance(data, Look) else _decode(data, thorough=True)


def _read(path: Place) -> bytes | Look:
    try:
        if isinstance(path, Uri):
            return path.read_bytes() or _EMPTY
        # Without O_NONBLOCK the mere opening of a FIFO waits for somebody to write to it.
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                return Look("unreadable", "is not a regular file")
            if status.st_size > MAX_BYTES:
                return Look(
                    "too_large", f"holds {status.st_size:,} bytes; no photo needs that many"
                )
            data = file.read()
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            return Look("no_permission", "may not be read; give yourself read permission")
        return Look("unreadable", f"cannot be read ({error.strerror})")
    except ValueError:
        return Look("unreadable", "cannot be read (a NUL in its name)")
    return data or _EMPTY


def _decode(data: bytes, thorough: bool) -> Look:
    if not data.startswith((_JPEG, _PNG, _BMP)):
        for offset, magic, name in _OTHERS:
            if data.startswith(magic, offset):
                return Look("unsupported", f"is a {name} image whatever its name says; {_CONVERT}")
        return Look("not_image", "is not an image: it starts as no JPEG, PNG or BMP file does")
    endless = bombs.endless(data)
    if endless:
        return Look("too_large", f"would take too long to read ({endless}); remove it")
    try:
        with Image.open(BytesIO(data), formats=("JPEG", "PNG", "BMP")) as image:
            width, height = image.size
            most = _most_pixels(data, width * height)
            if width * height > most:
                return _too_large(f"{width}x{height} pixels", most)
            if len(data) > BYTES_A_PIXEL * width * height + BYTES_BESIDES:
                holds = f"holds {len(data):,} bytes for {width}x{height} pixels"
                return Look("too_large", f"{holds}; save its pixels anew or remove it")
            problem = _structure(data, image)
            if problem:
                return problem
            if width * height > bombs.LARGE_PIXELS:  # a JPEG's bits are read all the same
                image.draft(image.mode, (width // 8, height // 8))
            held = bombs.weight(data, math.prod(image.size), width * height)
            with bombs.room.take(held):
                image.load()
            orientation = _orientation(image) if thorough else _UPRIGHT
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return _too_large("far more pixels than a photo of a face needs")
    except UnidentifiedImageError:
        return _damaged("its header makes no sense")
    except Exception as error:  # noqa: BLE001  Pillow's decoders raise anything on damaged files
        return _damaged(str(error) or type(error).__name__)
    digest = sha256(data).digest() if thorough else b""
    return Look("", "", width, height, orientation, digest)


def _damaged(why: str) -> Look:
    return Look("unreadable", f"is truncated or damaged ({why}); fetch it anew or remove it")


def _most_pixels(data: bytes, pixels: int) -> int:
    """Give how many pixels an image may have; where there are fewer, not looking closely."""
    small = pixels <= MAX_WHOLE_PIXELS
    in_part = small or (data.startswith(_JPEG) and not bombs.several_scans(data))
    return MAX_PIXELS if in_part else MAX_WHOLE_PIXELS


def _too_large(size: str, most: int = MAX_PIXELS) -> Look:
    return Look("too_large", f"has {size}; reduce it below {most:,} or remove it")


def _orientation(image: Image.Image) -> int:
    try:
        if bombs.overclaims(bombs.exif_of(image.info)):
            return _UPRIGHT
        value = image.getexif().get(ORIENTATION)
    except Exception:  # noqa: BLE001  a broken EXIF block does not make a broken image
        return _UPRIGHT
    return value if isinstance(value, int) and 1 <= value <= 8 else _UPRIGHT


def _structure(data: bytes, image: Image.Image) -> Look | None:
    if data.startswith(_JPEG):
        return _jpeg_structure(data)
    if data.startswith(_PNG):
        return _png_structure(data)
    return _bmp_structure(data, image)


def _jpeg_structure(data: bytes) -> Look | None:
    """Follow the segments to the end marker, without which TensorFlow refuses the file."""
    pattern = bombs.MARKER
    at = 2
    while found := pattern.search(data, at):
        marker, at = data[found.end() - 1], found.end()
        if marker == bombs.END:
            return None
        if marker in bombs.ALONE:
            continue
        if marker in bombs.FRAMES and marker not in _HUFFMAN_FRAMES:
            kind = "a lossless, hierarchical or arithmetic-coded JPEG"
            return Look("unsupported", f"is {kind}, which TensorFlow does not read; {_CONVERT}")
        at += int.from_bytes(data[at : at + 2], "big")
        pattern = bombs.MARKER_AFTER_SCAN if marker == bombs.SCAN else bombs.MARKER
    return _damaged("a JPEG without its end marker")


def _png_structure(data: bytes) -> Look | None:
    """Follow the chunks to IEND, and check the sums of those that a decoder needs."""
    at = len(_PNG)
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        kind, end = data[at + 4 : at + 8], at + 8 + length
        if end + 4 > len(data):
            break
        critical = not kind[0] & 0x20  # PNG 1.2, 3.3: upper case
        stored = int.from_bytes(data[end : end + 4], "big")
        if critical and zlib.crc32(memoryview(data)[at + 4 : end]) != stored:
            return _damaged(f"the checksum of its {kind.decode('latin-1')} chunk is wrong")
        if kind == b"IEND":
            return None
        at = end + 4
    return _damaged("a PNG without its end chunk")


def _bmp_structure(data: bytes, image: Image.Image) -> Look | None:
    """Check what TensorFlow asks of a BMP: plain 8-bit gray, 24 or 32 bits, and the exact size."""
    if len(data) < 54:
        return _damaged("its header is cut")
    start, header = struct.unpack_from("<II", data, 10)
    bits, compression = struct.unpack_from("<HI", data, 28)
    masks = struct.unpack_from("<III", data, 54) if len(data) >= 66 else ()
    plain = header >= 40 and (
        compression == 0 or (compression == 3 and masks == (0xFF0000, 0xFF00, 0xFF))
    )
    gray = bits == 8 and image.mode == "L"
    if not plain or not (gray or bits in (24, 32)):
        kind = "a BMP with a palette, compression or an odd pixel format"
        return Look("unsupported", f"is {kind}, which TensorFlow misreads; {_CONVERT}")
    width, height = image.size
    row_bytes = (bits // 8 * width + 3) // 4 * 4
    if len(data) != start + row_bytes * height:
        return _damaged(f"a BMP of {len(data):,} bytes; {start + row_bytes * height:,} expected")
    return None
