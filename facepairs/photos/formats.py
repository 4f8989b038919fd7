"""Which image formats are read, and telling them by a file's first bytes.

HEIF (iPhone photos) needs the optional package pillow-heif.
"""

import functools
import importlib
import re

from PIL import Image, features

from facepairs.errors import ImageProblem
from facepairs.photos.hazards import GIF, JPEG, PNG, TIFF
from facepairs.support.extras import install_advice

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
