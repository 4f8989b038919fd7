"""JPEG files: the walk over their segments."""

import re
from collections.abc import Iterator
from typing import NamedTuple

SIGNATURE = b"\xff\xd8\xff"
NO_MARKER, END, SCAN, APP1 = 0, 0xD9, 0xDA, 0xE1
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_STANDALONE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers without a length

# Decoders search for the next marker like these patterns: they skip other bytes and, within a
# scan, stuffed zeros and restart markers (ITU-T T.81, B.1.1). There is no `+` after the \xff
# because the search would then try a long run of \xff from every start.
_MARKER = re.compile(rb"\xff([\x01-\xfe])")
_MARKER_AFTER_SCAN = re.compile(rb"\xff([\x01-\xcf\xd8-\xfe])")


class Segment(NamedTuple):
    """A marker, where its length field starts, its length, and how many bytes it was away.

    `marker` is NO_MARKER where the file ends without a further one. `skipped_bytes` does not count
    the data of a scan.
    """

    marker: int
    start: int
    length: int
    skipped_bytes: int


def segments(data: bytes) -> Iterator[Segment]:
    """Yield the segments of a JPEG as a decoder finds them, up to the end marker or the file's end.

    Args:
        data: The whole file; it starts with SIGNATURE.
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
    return data.startswith(SIGNATURE) and sum(part.marker == SCAN for part in segments(data)) > 1
