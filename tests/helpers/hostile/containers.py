"""Image containers written by hand: bombs, false headers and other things no encoder writes."""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator

from PIL import Image

Named = tuple[str, bytes]


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int, height: int, bits: int, colour: int, body: bytes, extra: bytes = b"") -> bytes:
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    ends = chunk(b"IDAT", body) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + ends


def zeros(count: int) -> bytes:
    """Return `count` zero bytes, compressed with deflate in constant memory."""
    packer = zlib.compressobj(9)
    block = bytes(1 << 20)
    parts = [packer.compress(block) for _ in range(count >> 20)]
    return b"".join(parts) + packer.compress(bytes(count & 0xFFFFF)) + packer.flush()


def png_bombs() -> Iterator[Named]:
    for width, height in ((2**31 - 1,) * 2, (2**31, 1), (65535, 65535), (100_000, 90_000), (0, 9)):
        yield f"header-{width}x{height}", png(width, height, 8, 2, zlib.compress(b"\0" * 99))
    for side, bits, colour in ((7000, 8, 2), (7000, 16, 6), (7000, 16, 0), (7000, 1, 0)):
        row = 1 + (side * bits * {0: 1, 2: 3, 6: 4}[colour] + 7) // 8
        yield f"deflate-{side}-{bits}-{colour}", png(side, side, bits, colour, zeros(row * side))
    yield "deflate-9900-8-6", png(9900, 9900, 8, 6, zeros(9900 * 39_601))
    yield "deflate-20000-1", png(20_000, 20_000, 1, 0, zeros(20_000 * 2501))
    yield "more-data-than-pixels", png(60, 60, 8, 0, zeros(400 << 20))
    small = zlib.compress(b"\0" * (61 * 60))
    text = zeros(300 << 20)
    for kind, head in ((b"zTXt", b"a\0\0"), (b"iTXt", b"a\0\1\0\0\0"), (b"iCCP", b"a\0\0")):
        name = kind.decode()
        yield f"{name}-bomb", png(60, 60, 8, 0, small, chunk(kind, head + text))
        yield f"{name}-broken", png(60, 60, 8, 0, small, chunk(kind, head + b"\xff" * 40))
        yield f"{name}-many", png(60, 60, 8, 0, small, chunk(kind, head + text[:4000]) * 2000)
    yield "eXIf-shared", png(60, 60, 8, 0, small, chunk(b"eXIf", shared_tags(4_000_000, 3000)))
    raw = b"Raw profile type exif\0\0\nexif\n0\n" + shared_tags(40_000, 3000).hex().encode()
    yield "raw-profile", png(60, 60, 8, 0, small, chunk(b"tEXt", raw.replace(b"\0\0\n", b"\0\n")))
    yield "many-chunks", png(60, 60, 8, 0, small, chunk(b"abCd", b"") * 200_000)
    yield "many-IDAT", png(60, 60, 8, 0, b"", chunk(b"IDAT", b"") * 200_000)
    control = struct.pack(">IIIIIHHBB", 0, 2**31, 2**31, 2**31, 2**31, 0, 0, 0, 0)
    frames = chunk(b"acTL", struct.pack(">II", 2**31, 0)) + chunk(b"fcTL", control)
    yield "animation-of-nowhere", png(60, 60, 8, 0, small, frames)


def gif(width: int, height: int, frames: int = 1, frame: tuple[int, int] | None = None) -> bytes:
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    size = frame or (width, height)
    one = b"," + struct.pack("<HHHHB", 0, 0, *size, 0) + b"\x02\x02\x44\x01\x00"
    return head + one * frames + b";"


def gif_bombs() -> Iterator[Named]:
    yield "screen-65535", gif(65535, 65535)
    yield "screen-7000", gif(7000, 7000)
    yield "frame-larger-than-screen", gif(10, 10, 1, (65535, 65535))
    yield "100000-frames", gif(60, 60, 100_000)
    yield "no-pixels", gif(0, 60)
    head = gif(60, 60)[:19]
    yield "comments", head + b"!\xfe" + (b"\xff" + b"x" * 255) * 100_000 + b"\0" + gif(60, 60)[19:]
    yield "tiny-comments", head + b"!\xfe\1x\0" * 2_000_000 + gif(60, 60)[19:]
    # LZW codes for ever longer strings: some 100 million pixels in a few kilobytes.
    out = io.BytesIO()
    Image.new("P", (7000, 7000)).save(out, "GIF")
    yield "lzw-7000", out.getvalue()


def bmp(width: int, height: int, bits: int, compression: int, body: bytes) -> bytes:
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, 0, 0, 0, 0, 0)
    palette = b"\0\0\0\0\xff\xff\xff\0" if bits <= 8 else b""
    start = 14 + len(head) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start) + head + palette + body


def bmp_bombs() -> Iterator[Named]:
    for width, height in ((60_000, 60_000), (2**31 - 1, 1), (-60, 60), (60, -(2**31)), (0, 60)):
        yield f"header-{width}x{height}", bmp(width, height, 24, 0, bytes(99))
    yield "rle8-7000", bmp(7000, 7000, 8, 1, b"\xff\0" * 7000 * 28 + b"\0\1")
    yield "rle8-short", bmp(7000, 7000, 8, 1, b"\0\1")
    yield "rle8-jumps", bmp(7000, 7000, 8, 1, b"\0\2\xff\xff" * 100_000)
    yield "rle4-7000", bmp(7000, 7000, 4, 2, b"\xff\0" * 1000 + b"\0\1")
    yield "bits-63", bmp(60, 60, 63, 0, bytes(60 * 60))
    yield "compression-99", bmp(60, 60, 24, 99, bytes(60 * 180))


def pnm_bombs() -> Iterator[Named]:
    for size in ("60000 60000", "7000 7000", "0 60", "-60 60", "99999999999 1"):
        for kind in "P4", "P5", "P6":
            yield f"header-{kind}-{size}", f"{kind}\n{size}\n255\n".encode() + bytes(99)
    yield "odd-depth", b"P6 4000 4000 254 " + bytes(48_000_000)
    yield "odd-depth-short", b"P5 7000 7000 4095 " + bytes(99)
    yield "comment", b"P5 #" + b"x" * 7_000_000 + b"\n9 9 255 " + bytes(81)
    yield "comments", b"P5 " + b"#\n" * 3_000_000 + b"9 9 255 " + bytes(81)
    yield "spaces", b"P5 " + b" " * 7_000_000 + b"9 9 255 " + bytes(81)
    yield "plain-text", b"P3 4000 4000 255 " + b"7 " * 3_000_000
    yield "plain-text-comments", b"P2 9 9 255 " + b"#\n" * 500_000


def box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", 8 + len(body)) + kind + body


def without_times(data: bytes) -> bytes:
    """Return an animated AVIF without the time at which it was made."""
    for found in re.finditer(rb"(?:mvhd|tkhd|mdhd)([\0\1])...", data, re.DOTALL):
        times = 8 * (1 + found[1][0])  # ISO 14496-12, 8.2.2: creation and modification
        data = data[: found.end()] + bytes(times) + data[found.end() + times :]
    return data


def avif_bombs() -> Iterator[Named]:
    out = io.BytesIO()
    image = Image.new("RGB", (64, 64), (90, 20, 200))
    image.save(out, "AVIF", exif=shared_tags(40_000, 1000), xmp=b"x" * 100_000)
    sound = out.getvalue()
    yield "exif", sound
    for width, height in ((65_535, 65_535), (16_384, 16_384), (7000, 7000), (0, 64)):
        size = struct.pack(">II", width, height)
        yield f"size-{width}", sound.replace(struct.pack(">II", 64, 64), size)
    # One item of many parts, each of which is the whole file.
    at = sound.index(b"iloc")
    head = b"\0\0\0\0\x44\0" + struct.pack(">HHHH", 1, 1, 0, 30_000)
    parts = struct.pack(">II", 0, len(sound)) * 30_000
    meta = sound.index(b"meta") - 4
    rest = sound[at - 4 :]
    (old,) = struct.unpack(">I", rest[:4])
    new = box(b"iloc", head + parts)
    (size,) = struct.unpack(">I", sound[meta : meta + 4])
    start = sound[:meta] + struct.pack(">I", size - old + len(new)) + sound[meta + 4 : at - 4]
    yield "parts", start + new + rest[old:]
    out = io.BytesIO()
    Image.new("RGB", (4990, 4990)).save(out, "AVIF", speed=10)
    yield "plain-4990", out.getvalue()
    out = io.BytesIO()
    small = [Image.new("RGB", (64, 64), (i, i, i)) for i in range(200)]
    small[0].save(out, "AVIF", save_all=True, append_images=small[1:], duration=1, speed=10)
    yield "200-frames", out.getvalue()
    yield "nested", box(b"ftyp", b"avif\0\0\0\0avifmif1") + b"\0\0\0\x08meta" * 100_000


def riff(*parts: Named) -> bytes:
    body = b"".join(
        name.encode() + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1)
        for name, data in parts
    )
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


def webp_bombs() -> Iterator[Named]:
    out = io.BytesIO()
    Image.new("RGB", (4990, 4990)).save(out, "WEBP", lossless=True, quality=0, method=0)
    yield "lossless-4990", out.getvalue()
    lossy = b"\x30\x01\x00\x9d\x01\x2a" + struct.pack("<HH", 16383, 16383) + bytes(40)
    yield "lossy-header", riff(("VP8 ", lossy))
    lossless = b"\x2f" + struct.pack("<I", 0x0FFFFFFF) + bytes(40)
    yield "lossless-header", riff(("VP8L", lossless))
    for side in (2**24 - 1, 30_000, 16_000):
        canvas = (side - 1).to_bytes(3, "little") * 2
        frame = bytes(6) + b"\x3b\0\0" * 2 + b"\x64\0\0\0"
        inner = b"VP8L" + struct.pack("<I", 24) + b"\x2f" + struct.pack("<I", 59 | 59 << 14)
        anim = frame + inner + bytes(19)
        header = ("VP8X", b"\x02\0\0\0" + canvas)
        loops = ("ANIM", bytes(6))
        yield f"canvas-{side}", riff(header, loops, ("ANMF", anim))
        yield f"canvas-{side}-still", riff(("VP8X", bytes(4) + canvas), ("VP8L", lossless))
    out = io.BytesIO()
    small = [Image.new("RGB", (64, 64), (i, i, i)) for i in range(200)]
    small[0].save(out, "WEBP", save_all=True, append_images=small[1:], duration=1)
    yield "200-frames", out.getvalue()


def tiff(entries: dict[int, tuple[int, int, int]], body: bytes = b"", loop: bool = False) -> bytes:
    """Return a TIFF with one directory of (type, count, value) at offset 8, followed by `body`."""
    rows = b"".join(
        struct.pack("<HHII", tag, *(v & 0xFFFFFFFF for v in e)) for tag, e in entries.items()
    )
    head = b"II*\0" + struct.pack("<IH", 8, len(entries))
    return head + rows + struct.pack("<I", 8 if loop else 0) + body


def tiff_image(
    side: int, body: bytes, compression: int = 1, bits: int = 8, **changes: tuple[int, int, int]
) -> bytes:
    entries = {256: (4, 1, side), 257: (4, 1, side), 258: (3, 1, bits), 259: (3, 1, compression),
               262: (3, 1, 1), 273: (4, 1, 0), 277: (3, 1, 1), 278: (4, 1, side),
               279: (4, 1, len(body))}  # fmt: skip
    entries |= {int(tag[1:]): value for tag, value in changes.items()}
    start = 8 + 2 + 12 * len(entries) + 4
    if entries[273] == (4, 1, 0):
        entries[273] = (4, 1, start)
    return tiff(dict(sorted(entries.items())), body)


def shared_tags(size: int, tags: int) -> bytes:
    """Return a TIFF with `tags` tags that all claim the same `size` bytes."""
    entries = {1000 + number: (7, size, 8) for number in range(tags)}
    return tiff({274: (3, 1, 6), **entries}, bytes(size))


def tiff_bombs() -> Iterator[Named]:
    shared = {f"t{1000 + n}": (7, 4_000_000, 8) for n in range(3000)}
    yield "shared-tags", tiff_image(60, bytes(4_000_000), **shared)
    for side in (2**31 - 1, 65_535, 2**32 - 1):
        yield f"header-{side}", tiff_image(side, bytes(99))
    for compression in (8, 5, 32773, 7, 34712, 34925, 50000, 50001, 4):
        yield f"side-7000-as-{compression}", tiff_image(7000, bytes(999), compression)
    yield "deflate-7000", tiff_image(7000, zeros(7000 * 7000), 8)
    rgba16 = {"bits": 16, "t277": (3, 1, 4), "t262": (3, 1, 2)}
    yield "deflate-7000-rgba16", tiff_image(7000, zeros(7000 * 7000 * 8), 8, **rgba16)
    yield "deflate-7000-16", tiff_image(7000, zeros(7000 * 7000 * 2), 8, 16)
    yield "packbits-7000", tiff_image(7000, b"\x81\0" * (7000 * 56), 32773)
    yield "more-strip-than-file", tiff_image(60, bytes(3600), t279=(4, 1, 2**31))
    yield "rows-per-strip", tiff_image(60, bytes(3600), t278=(4, 1, 2**32 - 1))
    yield "many-samples", tiff_image(60, bytes(3600), t277=(3, 1, 65535))
    yield "many-strips", tiff_image(60, bytes(3600), t273=(4, 2**28, 8), t279=(4, 2**28, 8))
    yield "bits-255", tiff_image(60, bytes(3600), bits=255)
    for side, at in ((2**30, 8), (20_000, 180)):
        tiles = {"t322": (4, 1, side), "t323": (4, 1, side), "t324": (4, 1, at)}
        yield f"tile-{side}", tiff_image(60, zeros(1 << 20), 8, **tiles)
    yield "looped", tiff({256: (4, 1, 60), 257: (4, 1, 60)}, loop=True)
    yield "exif-in-itself", tiff_image(60, bytes(3600), t34665=(4, 1, 8), t274=(3, 1, 6))
    yield "huge-tag", tiff_image(60, bytes(3600), t700=(1, 2**31, 8))


def exif(body: bytes) -> bytes:
    payload = b"Exif\0\0" + body
    return b"\xff\xe1" + struct.pack(">H", len(payload) + 2) + payload


def jpeg_oddities(sound: bytes) -> Iterator[Named]:
    """Yield variants of a valid JPEG: false headers, EXIF, ICC, endless segments and scans."""

    def behind_soi(segments: bytes) -> bytes:
        return sound[:2] + segments + sound[2:]

    frame = sound.index(b"\xff\xc0") + 5
    for width, height in ((65535, 65535), (65535, 1), (1, 65535), (0, 60), (60, 0), (7000, 7000)):
        size = struct.pack(">HH", height, width)
        yield f"header-{width}x{height}", sound[:frame] + size + sound[frame + 4 :]
    first = b"II*\0\x08\0\0\0"
    entry = struct.pack("<H", 1) + struct.pack("<HHII", 274, 3, 1, 9)
    for name, body in {
        "empty": b"",
        "cut": first[:5],
        "orientation-9": first + entry + bytes(4),
        "orientation-text": first + struct.pack("<HHHII", 1, 274, 2, 400, 8) + bytes(4),
        "endless": first + struct.pack("<H", 65535) + b"\xff" * 900,
        "loop": first + struct.pack("<H", 1) + struct.pack("<HHII", 34665, 4, 1, 8) + b"\x08\0\0\0",
        "far": first + struct.pack("<HHHII", 1, 271, 2, 2**31, 2**31) + bytes(4),
        "negative": first + struct.pack("<HHHII", 1, 274, 9, 1, 2**32 - 6) + bytes(4),
        "rational": first + struct.pack("<HHHII", 1, 282, 5, 1, 8) + bytes(4),
    }.items():
        yield f"exif-{name}", behind_soi(exif(body))
    profile = b"ICC_PROFILE\0\1\1" + b"\xff" * 65_000
    icc = b"\xff\xe2" + struct.pack(">H", len(profile) + 2) + profile
    yield "icc-many", behind_soi(icc * 400)
    numbered = profile[:12] + b"\xff\xff" + profile[14:]
    yield "icc-numbered", behind_soi(b"\xff\xe2" + struct.pack(">H", len(numbered) + 2) + numbered)
    yield "endless-comments", behind_soi(b"\xff\xfe\x00\x02" * 500_000)
    yield "fill-bytes-to-nothing", sound + b"\xff" * 3_000_000 + b"\0"
    yield "fill-bytes-before-nothing", sound[:2] + (b"\xff" * 1_000_000 + b"\0")
    yield "exif-shared", behind_soi(exif(shared_tags(20_000, 2000)))
    yield "exif-in-parts", behind_soi(exif(shared_tags(20_000, 3000)) + exif(bytes(65_000)) * 40)
    yield "fill-bytes", behind_soi(b"\xff" * 5_000_000)
    yield "short-segment", behind_soi(b"\xff\xfe\x00\x01")
    yield "two-starts", sound[:2] * 1000 + sound
    yield "mpo-of-nothing", behind_soi(b"\xff\xe2\x00\x12MPF\0II*\0" + b"\xff" * 8)
    photoshop = b"Photoshop 3.0\0" + b"8BIM\x04\x04\0\0" + b"\xff\xff\xff\xff"
    yield "photoshop", behind_soi(b"\xff\xed" + struct.pack(">H", len(photoshop) + 2) + photoshop)


def jpeg_bombs() -> Iterator[Named]:
    """Yield JPEGs with real pixels: large uniform ones, and a progressive one of many scans."""
    for mode in ("L", "RGB", "CMYK"):
        out = io.BytesIO()
        Image.new(mode, (7000, 7000)).save(out, "JPEG", quality=30)
        yield f"side-7000-{mode}", out.getvalue()
    for side, repeats in ((7000, 15), (7000, 300), (4000, 3000), (300, 9000)):
        out = io.BytesIO()
        Image.new("L", (side, side)).save(out, "JPEG", quality=30, progressive=True)
        data = out.getvalue()
        scan = data.rindex(b"\xff\xda")
        yield f"scans-{side}x{repeats}", data[:scan] + data[scan:-2] * repeats + data[-2:]


def polyglots(sound: dict[str, bytes]) -> Iterator[Named]:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr(zipfile.ZipInfo("evil.py"), "print('hello')")
    html = b"<html><script>alert(1)</script></html>"
    for name, data in sound.items():
        yield f"{name}-zip", data + archive.getvalue()
        yield f"{name}-html", data + html
        yield f"html-{name}", html + data
        yield f"pdf-{name}", b"%PDF-1.4\n" + data
        for other, more in sound.items():
            if other != name:
                yield f"{name}-{other}", data + more
    picture = sound["PNG"]
    yield "png-html-inside", picture[:33] + chunk(b"tEXt", b"a\0" + html) + picture[33:]
