"""Malicious, damaged and fake image files: seeded, synthetic, made without any network.

`hostile_files` gives named bytes; `odd_places` puts into a folder what is no file at all.
"""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from drawn.photos import encoded, exif_of
from PIL import Image

from facepairs.data.synth.faces import draw_face
from hostile import containers


class Hostile(NamedTuple):
    """One file: its kind, a name that describes how it was made, its bytes."""

    kind: str
    name: str
    data: bytes


SIZE = (120, 96)  # small: without a face, the detector makes seven searches


def face(seed: int, size: tuple[int, int] = SIZE) -> Image.Image:
    """Draw a face off the centre, in an image that is not a frame."""
    picture = Image.new("RGB", size, (90, 110, 120))
    drawn = Image.fromarray(draw_face(seed, 1, 1)).resize((min(size),) * 2)
    picture.paste(drawn, (5, 0))
    return picture


def sound_files(seed: int, size: tuple[int, int] = SIZE) -> dict[str, bytes]:
    """Return one valid file per encoding, from which mutations are made."""
    picture = face(seed, size)
    second = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    exif = exif_of(6)
    made = {
        "jpeg": encoded(picture, "JPEG"),
        "jpeg-progressive": encoded(picture, "JPEG", progressive=True),
        "jpeg-gray": encoded(picture.convert("L"), "JPEG"),
        "jpeg-cmyk": encoded(picture.convert("CMYK"), "JPEG"),
        "jpeg-exif": encoded(picture, "JPEG", exif=exif, icc_profile=bytes(3000)),
        "jpeg-restarts": encoded(picture, "JPEG", restart_marker_rows=1, subsampling=0),
        "mpo": encoded(picture, "MPO", save_all=True, append_images=[second]),
        "png": encoded(picture, "PNG"),
        "png-palette": encoded(picture.convert("P"), "PNG", transparency=3),
        "png-alpha": encoded(picture.convert("RGBA"), "PNG", exif=exif),
        "png-animated": encoded(picture, "PNG", save_all=True, append_images=[second]),
        "png-16": encoded(gray16(picture), "PNG"),
        "webp": encoded(picture, "WEBP", exif=exif),
        "webp-lossless": encoded(picture.convert("RGBA"), "WEBP", lossless=True),
        "webp-animated": encoded(picture, "WEBP", save_all=True, append_images=[second]),
        "gif": encoded(picture, "GIF"),
        "gif-animated": encoded(picture, "GIF", save_all=True, append_images=[second]),
        "bmp": encoded(picture, "BMP"),
        "bmp-palette": encoded(picture.convert("P"), "BMP"),
        "bmp-alpha": encoded(picture.convert("RGBA"), "BMP"),
        "pbm": encoded(picture.convert("1"), "PPM"),
        "pgm": encoded(picture.convert("L"), "PPM"),
        "pgm-16": encoded(gray16(picture), "PPM"),
        "ppm": encoded(picture, "PPM"),
        "avif": encoded(picture, "AVIF", exif=exif, icc_profile=bytes(300)),
        "avif-alpha": encoded(picture.convert("RGBA"), "AVIF"),
        "avif-animated": containers.without_times(
            encoded(picture, "AVIF", save_all=True, append_images=[second])
        ),
        "tiff": encoded(picture, "TIFF"),
        "tiff-16": encoded(gray16(picture), "TIFF"),
    }
    for compression in ("tiff_lzw", "tiff_adobe_deflate", "jpeg", "packbits"):
        made[f"tiff-{compression}"] = encoded(picture, "TIFF", compression=compression, exif=exif)
    # Adobe's marker gives the storage of CMYK: 2 is YCCK.
    at = made["jpeg-cmyk"].find(b"Adobe")
    ycck = bytearray(made["jpeg-cmyk"])
    ycck[at + 11] = 2
    made["jpeg-ycck"] = bytes(ycck)
    return made


def gray16(picture: Image.Image) -> Image.Image:
    return Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257)


def hostile_files(
    seed: int = 0, mutants: int = 70, bombs: bool = True, size: tuple[int, int] = SIZE
) -> Iterator[Hostile]:
    """Yield valid files, `mutants` mutations of each, and, with `bombs`, malicious files."""
    sound = sound_files(seed, size)
    for name, data in sound.items():
        yield Hostile("sound", name, data)
    makes = list(sound)
    for number, name in enumerate(makes):
        rng = np.random.Generator(np.random.Philox(key=[seed, number]))
        for mutant in range(mutants):
            other = sound[makes[int(rng.integers(len(makes)))]]
            kind, change = MUTATIONS[mutant % len(MUTATIONS)]
            yield Hostile(kind, f"{name}-{mutant}", change(sound[name], other, rng))
    yield from _junk(seed)
    for name, data in containers.jpeg_oddities(sound["jpeg"]):
        yield Hostile("odd jpeg", name, data)
    plain = {kind: sound[kind.lower()] for kind in ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF")}
    for name, data in containers.polyglots(plain):
        yield Hostile("polyglot", name, data)
    for name, data in _odd_sizes():
        yield Hostile("odd size", name, data)
    if bombs:
        for kind in ("png", "gif", "bmp", "webp", "tiff", "jpeg", "pnm", "avif"):
            for name, data in getattr(containers, f"{kind}_bombs")():
                yield Hostile(f"bomb {kind}", name, data)


def _flip(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for at in rng.integers(0, len(data), int(rng.integers(1, 9))):
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _flip_head(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    head = min(len(data), 200)
    return _flip(data[:head], other, rng) + data[head:]


def _truncate(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(0, len(data)))]


def _splice(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(0, len(data)))] + other[int(rng.integers(0, len(other))) :]


def _overwrite(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """Write extreme numbers where lengths, sizes and offsets may be, mostly in the header."""
    at = int(rng.integers(0, min(len(data), 120 if rng.random() < 0.7 else len(data))))
    value = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", bytes(4), b"\xff\xff\xff\x7f")
    put = value[int(rng.integers(4))][: int(rng.integers(1, 5))]
    return data[:at] + put + data[at + len(put) :]


def _repeat(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    start, stop = sorted(rng.integers(0, len(data), 2).tolist())
    return data[:stop] + data[start:stop] * int(rng.integers(1, 20)) + data[stop:]


def _blank(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    start, stop = sorted(rng.integers(0, len(data), 2).tolist())
    return data[:start] + bytes(stop - start) + data[stop:]


MUTATIONS = (
    ("bit flips", _flip),
    ("bit flips in the head", _flip_head),
    ("truncated", _truncate),
    ("splice", _splice),
    ("extreme numbers", _overwrite),
    ("repeated part", _repeat),
    ("blanked part", _blank),
)


def _junk(seed: int) -> Iterator[Hostile]:
    rng = np.random.Generator(np.random.Philox(key=[seed, 1 << 32]))
    heads = (b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"RIFF\x40\0\0\0WEBP")
    heads += (b"P5\n", b"\0\0\0\x18ftypavif\0\0\0\0avifmif1")
    for number, head in enumerate((*heads, b"II*\0", b"MM\0*", b"<html>404</html>", b"#!/bin/sh")):
        for length in (0, 1, 11, 400, 30_000):
            yield Hostile("junk", f"{number}-{length}", head + rng.bytes(length))


def _odd_sizes() -> Iterator[tuple[str, bytes]]:
    sizes = ((1, 1), (1, 65_535), (65_535, 1), (2, 30_000), (49, 51), (50, 60_000), (60_000, 50))
    for width, height in sizes:
        picture = Image.new("RGB", (width, height), (200, 10, 90))
        for kind in ("PNG", "BMP", "TIFF", "GIF", "JPEG", "WEBP", "PPM"):
            limit = {"JPEG": 65_500, "WEBP": 16_383}.get(kind, 65_535)
            small = picture.crop((0, 0, min(width, limit), min(height, limit)))
            yield f"{kind}-{width}x{height}", encoded(small, kind)
    yield "gray-float", encoded(Image.new("F", (60, 60)), "TIFF")
    yield "gray-32", encoded(Image.new("I", (60, 60)), "TIFF")
    for bits, colour, channels in ((16, 2, 3), (16, 6, 4), (16, 4, 2), (2, 0, 1), (4, 0, 1)):
        row = 1 + (64 * bits * channels + 7) // 8
        body = zlib.compress(b"".join(b"\0" + b"\x5a" * (row - 1) for _ in range(64)))
        yield f"png-{bits}-{colour}", containers.png(64, 64, bits, colour, body)


NAMES = (
    b"new\nline.jpg",
    b"back\\slash.jpg",
    b"tab\tand\rreturn.jpg",
    b"not-utf8-\xff\xfe.jpg",
    b"escape-\x1b[2Jcleared.jpg",
    b"..\\..\\up.jpg",
    b"-dash.jpg",
    b'comma,"quote".jpg',
    "bidi-\u202egpj.jpg".encode(),
    b"x" * 251 + b".jpg",
)


def odd_places(folder: Path, photo: bytes) -> Iterator[tuple[str, Path]]:
    """Make special files (links, pipes, folders) and files with odd names; yield (kind, path)."""
    folder.mkdir(parents=True, exist_ok=True)
    os.mkfifo(folder / "fifo.jpg")
    (folder / "folder.jpg").mkdir()
    links = {"dangling": "nowhere.jpg", "looping": "looping.jpg", "device": "/dev/zero",
             "terminal": "/dev/tty", "upward": ".."}  # fmt: skip
    for name, target in links.items():
        (folder / f"{name}.jpg").symlink_to(target)
    for name in ("fifo", "folder", *links):
        yield name, folder / f"{name}.jpg"
    yield "too long", folder / ("y" * 5000 + ".jpg")
    yield "NUL", folder / "null\0.jpg"
    for raw in NAMES:
        path = Path(os.fsdecode(os.fsencode(folder) + b"/" + raw))
        path.write_bytes(photo)
        yield "name", path
        damaged = path.with_name("d" + path.name[1:])
        damaged.write_bytes(photo[: len(photo) // 2])
        yield "name, damaged", damaged
