"""Files that are small on disk and endless to read: told by a walk over their parts, in no time.

Decoders bound the pixels of an image, and nothing else: a JPEG may repeat its scans, a PNG or a
JPEG may consist of empty parts by the million, a GIF of comments, and every tag of a TIFF or of
EXIF may claim the same bytes for its own. And threads may each meet the largest image allowed.
"""

import ctypes
import re
import struct
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

JPEG, PNG, GIF = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8"
TIFFS = (b"II*\0", b"MM\0*")
MAX_PARTS = 10_000  # photos have some tens
MAX_FILLING = 100_000  # bytes between a JPEG's segments, which Pillow reads one by one
PNG_PART_BYTES = 2000  # but encoders cut a PNG's pixels into parts of some kilobytes
MAX_SCANNED_PIXELS = 2_000_000_000  # pixels by scans: some two seconds; encoders write ten scans
PIXELS_AT_ONCE = 50_000_000  # decoded by all threads together: some 400 MB at worst
LARGE_PIXELS = 8_000_000
# What decoders hold beside the pixels, in pixels: WebP three canvases and their copy, TIFF a strip.
WEBP_WEIGHT, TIFF_WEIGHT = 4, 2
MAX_CLAIMED_BYTES = 2**24  # beyond what the file has, as tags may share bytes

# A decoder looks for the next marker as these do: other bytes are passed over, and within a scan
# so are stuffed zeros and restart markers (ITU-T T.81, B.1.1). Without `+` after the \xff: a long
# run of them would be tried from every start.
MARKER = re.compile(rb"\xff([\x01-\xfe])")
MARKER_AFTER_SCAN = re.compile(rb"\xff([\x01-\xcf\xd8-\xfe])")
ALONE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers without a length
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
END, SCAN, APP1 = 0xD9, 0xDA, 0xE1
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}


def give_back_freed_memory() -> None:
    """Return what was freed to the system: glibc keeps it by the thread, for every thread anew.

    Does nothing elsewhere than on Linux with glibc. Source: malloc_trim(3).
    """
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:  # musl has none
            trim(0)


class _Room:
    """Pixels that are being decoded; who finds too many waits."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken = 0
        self._own = threading.local()

    @contextmanager
    def take(self, pixels: int) -> Iterator[None]:
        """Hold room for an image while it is decoded; an image alone always has it.

        A thread that holds room already, for the same image, gets no more.
        """
        if not pixels or getattr(self._own, "holds", False):
            yield
            return
        with self._changed:
            self._changed.wait_for(
                lambda: not self._taken or self._taken + pixels <= PIXELS_AT_ONCE
            )
            self._taken += pixels
        if pixels > LARGE_PIXELS:
            give_back_freed_memory()
        self._own.holds = True
        try:
            yield
        finally:
            self._own.holds = False
            with self._changed:
                self._taken -= pixels
                self._changed.notify_all()


room = _Room()


def weight(data: object, pixels: int, stored_pixels: int) -> int:
    """Give what to `room.take` for decoding an image file, or anything else, to so many pixels.

    A JPEG of several scans is held whole, all its `stored_pixels`, however small it is decoded.
    """
    if not isinstance(data, bytes):
        return pixels
    if data.startswith(JPEG) and stored_pixels > LARGE_PIXELS and several_scans(data):
        return max(pixels, stored_pixels)
    factor = WEBP_WEIGHT if data[8:12] == b"WEBP" else 1
    return pixels * (TIFF_WEIGHT if data.startswith(TIFFS) else factor)


def several_scans(data: bytes) -> bool:
    """Tell whether a file is a JPEG of more than one scan; `data` is not `endless`."""
    if not data.startswith(JPEG):
        return False
    at, scans, pattern = 2, 0, MARKER
    while (found := pattern.search(data, at)) and data[found.end() - 1] != END:
        marker, at = data[found.end() - 1], found.end()
        if marker in ALONE:
            continue
        scans += marker == SCAN
        if scans > 1:
            return True
        at += int.from_bytes(data[at : at + 2], "big")
        pattern = MARKER_AFTER_SCAN if marker == SCAN else MARKER
    return False


def endless(data: bytes) -> str:
    """Say why a file would take far more time or memory to read than a photo does; "" if not.

    `data` is the whole file. Other formats than JPEG, PNG, GIF and TIFF are never called endless.
    """
    if data.startswith(JPEG):
        return _endless_jpeg(data)
    if data.startswith(PNG):
        return _endless_png(data)
    if data.startswith(GIF):
        return _endless_gif(data)
    return "its tags claim more than it holds" if overclaims(data) else ""


def overclaims(data: bytes) -> bool:
    """Tell whether the tags of a TIFF or an EXIF block claim many times the bytes it has.

    `data` begins with the TIFF header, or with `Exif` and two zeros before that. A block that is
    cut or makes no sense claims nothing.
    """
    data = data.removeprefix(b"Exif\0\0")
    if not data.startswith(TIFFS):
        return False
    order = "<" if data.startswith(b"II") else ">"
    at, *_ = struct.unpack_from(order + "I", data.ljust(8, b"\0"), 4)
    (count,) = struct.unpack(order + "H", data[at : at + 2].ljust(2, b"\0"))
    rows = data[at + 2 : at + 2 + 12 * count]
    claimed = 0
    for _, kind, values, _ in struct.iter_unpack(order + "HHII", rows[: len(rows) // 12 * 12]):
        size = values * _SIZES.get(kind, 0)
        claimed += size if size <= len(data) else 0  # more than all of it is never read
    return claimed > 2 * len(data) + MAX_CLAIMED_BYTES


def exif_of(info: Mapping[Any, Any]) -> bytes:
    """Give an image's EXIF block as Pillow's `getexif` finds it in its `info`; b"" where none is.

    A PNG may spell it out in hexadecimal. Raises ValueError where that makes no sense.
    """
    block: bytes | None = info.get("exif")
    spelled: str = info.get("Raw profile type exif", "")
    return bytes.fromhex("".join(spelled.split("\n")[3:])) if block is None else block


def _endless_jpeg(data: bytes) -> str:
    pattern = MARKER
    at, parts, scans, pixels, filling = 2, 0, 0, 0, 0
    exif = b""
    while at < len(data):
        found = pattern.search(data, at)
        filling += (found.start() if found else len(data)) - at if pattern is MARKER else 0
        if filling > MAX_FILLING and not scans:
            return f"a JPEG with over {MAX_FILLING:,} bytes that say nothing"
        parts += 1
        if parts > MAX_PARTS:
            return f"a JPEG of over {MAX_PARTS:,} parts"
        if not found or data[found.end() - 1] == END:
            break
        marker, at = data[found.end() - 1], found.end()
        if marker in ALONE:
            continue
        length = int.from_bytes(data[at : at + 2], "big")
        if marker in FRAMES and len(data) >= at + 7:
            height, width = struct.unpack_from(">HH", data, at + 3)
            pixels = max(pixels, width * height)
        if marker == APP1 and data.startswith(b"Exif\0\0", at + 2):
            exif += data[at + 8 : at + length]  # several count as one
        scans += marker == SCAN
        if scans * pixels > MAX_SCANNED_PIXELS:
            return f"a JPEG of {scans} scans or more, each over {pixels:,} pixels"
        at += length
        pattern = MARKER_AFTER_SCAN if marker == SCAN else MARKER
    return "its EXIF tags claim more than it holds" if overclaims(exif) else ""


def _endless_png(data: bytes) -> str:
    at, parts = len(PNG), 0
    most = MAX_PARTS + len(data) // PNG_PART_BYTES
    while at + 12 <= len(data) and data[at + 4 : at + 8] != b"IEND":
        parts += 1
        if parts > most:
            return f"a PNG of over {most:,} parts"
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    return ""


def _endless_gif(data: bytes) -> str:
    """Count what comes before the first picture; no more than that one is read."""
    flags = data[10] if len(data) > 10 else 0
    at = 13 + (3 * 2 ** (1 + (flags & 7)) if flags & 0x80 else 0)
    parts = 0
    while data[at : at + 1] == b"!":  # an extension: its kind, sub-blocks, and an empty one
        at += 2
        while length := int.from_bytes(data[at : at + 1]):
            parts += 1
            at += 1 + length
        parts += 1
        if parts > MAX_PARTS:
            return f"a GIF of over {MAX_PARTS:,} parts"
        at += 1
    return ""
