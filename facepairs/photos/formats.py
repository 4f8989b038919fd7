"""Which image formats are read, and which small files of them take minutes or gigabytes to read.

Decoders limit the pixels of an image and nothing else: a JPEG may repeat its scans, a PNG or a JPEG
may consist of millions of empty parts, a GIF of comments, and every tag of a TIFF or an EXIF block,
or every item of an AVIF, may claim the same bytes. A walk over the parts of a file finds this in
milliseconds. The walk over a JPEG, `jpeg_segments`, also serves `decode`. HEIF (iPhone photos)
needs the optional package pillow-heif.
"""

import functools
import importlib
import itertools
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from PIL import Image, features

from facepairs.errors import ImageProblem
from facepairs.support.extras import install_advice

JPEG = b"\xff\xd8\xff"
PNG, GIF = b"\x89PNG\r\n\x1a\n", b"GIF8"
TIFF = (b"II*\0", b"MM\0*")
EXIF_PREFIX = b"Exif\0\0"
MAX_PARTS = 10_000  # photos have some tens
MAX_FILLER_BYTES = 100_000  # between a JPEG's segments; Pillow reads them one by one
PNG_PART_BYTES = 2000  # but encoders cut a PNG's pixels into parts of some kilobytes
MAX_SCANNED_PIXELS = 2_000_000_000  # pixels times scans: about two seconds; encoders use ten scans
MAX_CLAIMED_BYTES = 2**24  # beyond the size of the block, because tags may share bytes
PNM_HEADER_BYTES = 4096  # Pillow reads it byte by byte
EXIF_ITEM = re.compile(rb"(infe[\2\3].{3}(?:.{4}|.{6}))Exif", re.DOTALL)  # ISO 14496-12, 8.11.6
_TAG_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2} | {
    9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8
}  # fmt: skip
NO_MARKER, END, SCAN, APP1 = 0, 0xD9, 0xDA, 0xE1
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_STANDALONE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers without a length

# Decoders search for the next marker like these patterns: they skip other bytes and, within a
# scan, stuffed zeros and restart markers (ITU-T T.81, B.1.1). There is no `+` after the \xff
# because the search would then try a long run of \xff from every start.
_MARKER = re.compile(rb"\xff([\x01-\xfe])")
_MARKER_AFTER_SCAN = re.compile(rb"\xff([\x01-\xcf\xd8-\xfe])")
BMP, RIFF, WEBP = b"BM", b"RIFF", b"WEBP"
BINARY_PNM, TEXT_PNM = re.compile(rb"P[456]\s"), re.compile(rb"P[123]\s")
BIG_TIFF = (b"II+\0", b"MM\0+")
AVIF_BRANDS = (b"avif", b"avis")
HEIF_BRANDS = (
    *(b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"),
    *(b"mif1", b"msf1"),
)
_STARTS = {JPEG: "JPEG", PNG: "PNG", BMP: "BMP", GIF: "GIF"} | dict.fromkeys(TIFF, "TIFF")
_CONVERT = "convert it to JPEG or PNG"


def find_hazard(data: bytes) -> str:
    """Return why a file takes far more time or memory to read than a photo does; "" if it doesn't.

    Args:
        data: The whole file. A WebP is never a hazard.
    """
    if data.startswith(JPEG):
        return _jpeg_hazard(data)
    if data.startswith(PNG):
        return _png_hazard(data)
    if data.startswith(GIF):
        return _gif_hazard(data)
    if re.match(rb"P[456]\s", data):
        return _pnm_hazard(data)
    if data[4:8] == b"ftyp":
        return _items_hazard(data)
    return "its tags claim more than it holds" if tags_overclaim(data) else ""


def tags_overclaim(data: bytes) -> bool:
    """Return whether the tags of a TIFF or EXIF block claim many times the bytes it has.

    Args:
        data: A block that begins with the TIFF header, or with `Exif` and two zeros before it. A
            truncated or meaningless block claims nothing.
    """
    data = data.removeprefix(EXIF_PREFIX)
    if not data.startswith(TIFF):
        return False
    order = "<" if data.startswith(b"II") else ">"
    at, *_ = struct.unpack_from(order + "I", data.ljust(8, b"\0"), 4)
    (count,) = struct.unpack(order + "H", data[at : at + 2].ljust(2, b"\0"))
    rows = data[at + 2 : at + 2 + 12 * count]
    claimed = 0
    for _, kind, values, _ in struct.iter_unpack(order + "HHII", rows[: len(rows) // 12 * 12]):
        size = values * _TAG_BYTES.get(kind, 0)
        claimed += size if size <= len(data) else 0  # decoders ignore a tag beyond the block
    return claimed > 2 * len(data) + MAX_CLAIMED_BYTES


def without_metadata(data: bytes) -> bytes:
    """Return a file without metadata that is of no use here and may take long to parse.

    The EXIF item of an AVIF or HEIF is renamed: such a file says in other boxes how it is turned,
    and `tags_overclaim` cannot be asked in time. The colour profile of a PNG is left out.
    """
    if data.startswith(PNG):
        for kind, start, end in reversed(list(png_chunks(data))):
            data = data[: start - 8] + data[end + 4 :] if kind == b"iCCP" else data
    return EXIF_ITEM.sub(rb"\1skip", data) if data[4:8] == b"ftyp" else data


class Segment(NamedTuple):
    """A marker, where its length field starts, its length, and how many bytes it was away.

    `marker` is NO_MARKER where the file ends without a further one. `skipped_bytes` does not count
    the data of a scan.
    """

    marker: int
    start: int
    length: int
    skipped_bytes: int


def jpeg_segments(data: bytes) -> Iterator[Segment]:
    """Yield the segments of a JPEG as a decoder finds them, up to the end marker or the file's end.

    Args:
        data: The whole file; it starts with JPEG.
    """
    pattern, at = _MARKER, 2
    while at < len(data):
        found = pattern.search(data, at)
        gap = (found.start() if found else len(data)) - at if pattern is _MARKER else 0
        if not found:
            yield Segment(NO_MARKER, len(data), 0, gap)
            return
        marker, at = data[found.end() - 1], found.end()
        has_length = marker not in _STANDALONE
        length = int.from_bytes(data[at : at + 2], "big") if has_length else 0
        yield Segment(marker, at, length, gap)
        if marker == END:
            return
        at += length
        if has_length:
            pattern = _MARKER_AFTER_SCAN if marker == SCAN else _MARKER


def has_several_scans(data: bytes) -> bool:
    """Return whether a file is a JPEG of more than one scan; `find_hazard` must have passed it."""
    return data.startswith(JPEG) and sum(part.marker == SCAN for part in jpeg_segments(data)) > 1


def _jpeg_hazard(data: bytes) -> str:
    scans = pixels = filler_bytes = 0
    exif = b""
    for parts, segment in enumerate(jpeg_segments(data), 1):
        marker, start, length, skipped_bytes = segment
        filler_bytes += skipped_bytes
        if filler_bytes > MAX_FILLER_BYTES and not scans:
            return f"a JPEG with over {MAX_FILLER_BYTES:,} bytes between its parts"
        if parts > MAX_PARTS:
            return f"a JPEG of over {MAX_PARTS:,} parts"
        if marker in FRAMES and len(data) >= start + 7:
            height, width = struct.unpack_from(">HH", data, start + 3)
            pixels = max(pixels, width * height)
        if marker == APP1 and data.startswith(EXIF_PREFIX, start + 2):
            exif += data[start + 8 : start + length]  # Pillow joins several blocks
        scans += marker == SCAN
        if scans * pixels > MAX_SCANNED_PIXELS:
            return f"a JPEG of {scans} scans or more, each over {pixels:,} pixels"
    return "its EXIF tags claim more than it holds" if tags_overclaim(exif) else ""


def png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield (kind, start, end) of each chunk of a PNG up to IEND; its 4-byte CRC follows `end`."""
    at = len(PNG)
    while at + 12 <= len(data):
        kind, start = data[at + 4 : at + 8], at + 8
        end = start + int.from_bytes(data[at : at + 4], "big")
        yield kind, start, end
        if kind == b"IEND":
            return
        at = end + 4


def _png_hazard(data: bytes) -> str:
    most = MAX_PARTS + len(data) // PNG_PART_BYTES
    first = itertools.islice(png_chunks(data), most + 1)
    parts = sum(kind != b"IEND" for kind, _, _ in first)
    return f"a PNG of over {most:,} parts" if parts > most else ""


def _gif_hazard(data: bytes) -> str:
    """Count the parts before the first frame, the only one that is read."""
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


def _pnm_hazard(data: bytes) -> str:
    """Tell a header of endless comments; Pillow joins what stands before and after a comment."""
    words = re.sub(rb"#[^\r\n]*[\r\n]?", b"", data[2:PNM_HEADER_BYTES]).split(None, 3)
    if len(data) > PNM_HEADER_BYTES and len(words) < 3:
        return f"a PNM whose header is over {PNM_HEADER_BYTES:,} bytes long"
    return ""


def _items_hazard(data: bytes) -> str:
    """Add up what the items of an AVIF or HEIF claim; decoders copy an item's parts together."""
    claimed = parts = 0
    for found in re.finditer(rb"iloc[\0-\2]", data):
        for part_bytes in _item_parts(data, found.start() + 4):
            claimed += part_bytes
            parts += 1
            if parts > MAX_PARTS:
                return f"an image of over {MAX_PARTS:,} parts"
            if claimed > 2 * len(data) + MAX_CLAIMED_BYTES:
                return "its items claim more than it holds"
    return ""


def _item_parts(data: bytes, at: int) -> Iterator[int]:
    """Yield the length of each part of each item of an `iloc` box (ISO 14496-12, 8.11.3).

    The box and every item count as a part of no length, so that walking over them is bounded, too.
    """

    def number(size: int) -> int:
        nonlocal at
        at += size
        return int.from_bytes(data[at - size : at], "big")

    yield 0
    version, _ = number(1), number(3)
    sizes = number(2)
    offset_size, length_size, base_size, index_size = (
        sizes >> shift & 15 for shift in (12, 8, 4, 0)
    )
    wide = 4 if version == 2 else 2
    for _ in range(number(wide)):
        yield 0
        at += wide + (4 if version else 2) + base_size
        for _ in range(number(2)):
            at += offset_size + (index_size if version else 0)
            yield number(length_size) or len(data)  # 0 is all of the file
        if at > len(data):
            return


def pillow_format(data: bytes, name: str) -> str:
    """Return Pillow's name of a file's format, whose plugin is then loaded.

    Args:
        data: The whole file.
        name: What messages call it.

    Raises:
        ImageProblem: It is not of a format that is read here.
    """
    kind = _kind(data)
    if kind == "HEIF" and not _has_heif():
        advice = f"{_CONVERT}, or {install_advice('heif')}"
        raise ImageProblem(name, "unsupported", f"a HEIF (HEIC) image; {advice}")
    if kind == "AVIF" and not features.check("avif"):
        reason = f"an AVIF image, which this Pillow cannot read; {_CONVERT}"
        raise ImageProblem(name, "unsupported", reason)
    if kind:
        return kind
    if data.startswith(BIG_TIFF):
        reason = f"a BigTIFF image, which is not read; {_CONVERT}, or save it as a plain TIFF"
        raise ImageProblem(name, "unsupported", reason)
    if TEXT_PNM.match(data):
        reason = f"a PNM (PGM, PPM) image whose pixels are text, which is not read; {_CONVERT}"
        raise ImageProblem(name, "unsupported", reason)
    formats = "not a JPEG, PNG, BMP, GIF, WebP, TIFF, PNM (PGM, PPM), AVIF or HEIF image"
    raise ImageProblem(name, "not_image", f"{formats}; convert or replace it")


def _kind(data: bytes) -> str:
    for start, kind in _STARTS.items():
        if data.startswith(start):
            return kind
    if data.startswith(RIFF) and data[8:12] == WEBP:
        return "WEBP"
    if BINARY_PNM.match(data):
        return "PPM"
    brands = _brands(data)
    if brands[:1] and (brands[0] in AVIF_BRANDS or brands[0] in HEIF_BRANDS):
        return "AVIF" if any(brand in AVIF_BRANDS for brand in brands) else "HEIF"
    return ""


def _brands(data: bytes) -> list[bytes]:
    """Return the major brand and the compatible ones of an ISO base media file; [] for others."""
    if data[4:8] != b"ftyp":
        return []
    box = data[8 : min(int.from_bytes(data[:4]), 1000)]
    return [box[:4], *(box[at : at + 4] for at in range(8, len(box), 4))]


@functools.cache
def _has_heif() -> bool:
    """Register pillow-heif with Pillow; return whether it is installed."""
    try:
        importlib.import_module("pillow_heif").register_heif_opener()
    except ImportError:
        return False
    return "HEIF" in Image.OPEN
