"""Files that are small on disk and take too long to read are refused without reading them."""

import io
import struct
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from drawn import photos
from hostile import containers
from PIL import ExifTags, Image

from facepairs.errors import BadImage, ImageProblem
from facepairs.photos.crop import CropSpec, load_crop
from facepairs.photos.decode import (
    EXIF_ORIENTATION,
    TURNS,
    DecodeBudget,
    decode_cost_px,
    exif_block,
    is_tf_decodable,
    turn_of,
    upright,
)
from facepairs.photos.formats import (
    SCAN,
    find_hazard,
    has_several_scans,
    jpeg_segments,
    png_chunks,
    tags_overclaim,
)
from facepairs.photos.photo import Photo, open_header, open_photo


def problem_of(data: bytes) -> str:
    with pytest.raises(ImageProblem) as caught:
        open_photo(data)
    return caught.value.problem


def encoded(kind: str, size: tuple[int, int] = (64, 64), **options: object) -> bytes:
    return photos.encoded(Image.new("RGB", size, (90, 20, 200)), kind, **options)


def repeated_scans(side: int, times: int) -> bytes:
    data = encoded("JPEG", (side, side), progressive=True)
    scan = data.rindex(b"\xff\xda")
    return data[:scan] + data[scan:-2] * times + data[-2:]


def run_length_bmp(width: int, height: int) -> bytes:
    head = struct.pack("<2sIIIIiiHHIIIIII", b"BM", 0, 0, 1078, 40, width, height, 1, 8, 1, *[0] * 5)
    return head + bytes(1024) + b"\1\1\0\0" * height


def many_parts(parts: int, length: int) -> bytes:
    """Return an item of an `iloc` box (version 0), all of whose parts are the same bytes."""
    return struct.pack(">HHH", 1, 0, parts) + struct.pack(">II", 0, length) * parts


SOUND = encoded("JPEG")
AVIF = encoded("AVIF")
PICTURE = containers.gif(60, 60)
HAZARDS = {
    "scans": (repeated_scans(2000, 600), "scans or more"),
    "comments": (SOUND[:2] + b"\xff\xfe\0\2" * 20_000 + SOUND[2:], "over 10,000 parts"),
    "fill bytes": (SOUND[:2] + b"\xff" * 200_000 + SOUND[2:], "bytes between its parts"),
    "fill bytes behind a part": (
        SOUND[:20] + b"\xff" * 200_000 + SOUND[20:],
        "bytes between its parts",
    ),
    "fill bytes without an end": (SOUND[:3] + b"\0" * 200_000, "bytes between its parts"),
    "EXIF": (
        SOUND[:2] + containers.exif(containers.shared_tags(20_000, 2000)) + SOUND[2:],
        "EXIF tags claim more",
    ),
    "EXIF behind XMP": (
        SOUND[:2]
        + (b"\xff\xe1\0\x08http:/" + containers.exif(containers.shared_tags(20_000, 2000)))
        + SOUND[2:],
        "EXIF tags claim more",
    ),
    "chunks": (
        containers.png(9, 9, 8, 0, b"", containers.chunk(b"abCd", b"") * 20_000),
        "a PNG of over 10,120 parts",
    ),
    "TIFF tags": (containers.shared_tags(100_000, 1000), "tags claim more"),
    "TIFF tags, the other byte order": (
        struct.pack(">4sIH", b"MM\0*", 8, 900)
        + b"".join(struct.pack(">HHII", n, 7, 60_000, 8) for n in range(900))
        + bytes(60_000),
        "tags claim more",
    ),
    "PNM comments": (b"P6\n" + b"#\n" * 20_000 + b"9 9 255 " + bytes(243), "header is over 4,096"),
    "AVIF items": (
        AVIF[:4] + b"ftypavif" + b"\0\0\0\0iloc\0\0\0\0\x44\0\0\2" + 2 * many_parts(60, 1_000_000),
        "items claim more",
    ),
    "AVIF parts": (
        AVIF[:4] + b"ftypavif" + b"\0\0\0\0iloc\0\0\0\0\x44\0\0\1" + many_parts(20_000, 1),
        "over 10,000 parts",
    ),
    "AVIF tables": (  # each walks over all that follow, as items without parts
        AVIF[:4] + b"ftypavif" + b"iloc\2\0\0\0\0\x60\0\1\0\0\0\0" * 4096,
        "over 10,000 parts",
    ),
    "GIF comments": (
        PICTURE[:19] + b"!\xfe\1x\0" * 6000 + PICTURE[19:],
        "a GIF of over 10,000 parts",
    ),
    "GIF comments without a palette": (
        PICTURE[:10] + b"\7" + PICTURE[11:13] + b"!\xfe\1x\0" * 6000 + PICTURE[19:],
        "a GIF of over 10,000 parts",
    ),
    "GIF comments behind 256 colours": (
        PICTURE[:10] + b"\x87" + PICTURE[11:13] + bytes(768) + b"!\xfe\1x\0" * 6000,
        "a GIF of over 10,000 parts",
    ),
}


@pytest.mark.parametrize("name", HAZARDS)
def test_files_that_take_too_long_to_read_are_refused_at_once(name: str, tmp_path: Path) -> None:
    data, says = HAZARDS[name]
    path = tmp_path / "x.jpg"
    path.write_bytes(data)
    started = time.process_time()
    assert says in find_hazard(data)
    with pytest.raises(BadImage):
        load_crop(path, CropSpec(250, 112))
    assert problem_of(data) == "too_large"
    assert time.process_time() - started < 2


def gif_of_comments(count: int) -> bytes:
    return PICTURE[:19] + b"!\xfe\1x\0" * count + PICTURE[19:]


def avif_of_parts(count: int) -> bytes:
    box = b"\0\0\0\0iloc\0\0\0\0\x44\0\0\1"
    return AVIF[:4] + b"ftypavif" + box + many_parts(count, 1)


def scans_in(data: bytes) -> int:
    return sum(part.marker == SCAN for part in jpeg_segments(data))


@pytest.mark.parametrize("marker", [0x01, 0xD0, 0xD8])
def test_a_marker_without_a_length_hides_no_scan(marker: int) -> None:
    data = repeated_scans(64, 3)
    last = data.rindex(b"\xff\xda")
    assert scans_in(data[:last] + bytes((0xFF, marker)) + data[last:]) == scans_in(data)


def test_the_largest_numbers_that_are_allowed() -> None:
    segments = len(list(jpeg_segments(SOUND)))
    extra = scans_in(repeated_scans(2000, 1)) - 1
    limits = {
        "JPEG parts": (
            lambda count: SOUND[:2] + b"\xff\xfe\0\2" * (count - segments) + SOUND[2:],
            10_000,
        ),
        "fill bytes": (lambda count: SOUND[:2] + b"\xff" * count + SOUND[2:], 100_000),
        "scans": (
            lambda count: repeated_scans(2000, count - extra), 500
        ),
        "GIF parts": (gif_of_comments, 5_000),  # each has a block, and an empty one
        "AVIF parts": (avif_of_parts, 9_998),  # and the box and its item
    }  # fmt: skip
    for name, (made, most) in limits.items():
        assert find_hazard(made(most)) == "", name
        assert find_hazard(made(most + 1)), name


def test_a_png_may_have_more_parts_the_larger_it_is() -> None:
    def of_chunks(count: int) -> bytes:
        return containers.png(9, 9, 8, 0, b"", containers.chunk(b"abCd", b"") * count)

    counts = range(10_050, 10_070)
    most = max(count for count in counts if not find_hazard(of_chunks(count)))
    data = of_chunks(most + 1)
    parts = sum(kind != b"IEND" for kind, _, _ in png_chunks(data))
    assert parts == 10_000 + len(data) // 2_000 + 1


@pytest.mark.parametrize(
    "data",
    [
        b"P6 2000 2000 254 " + bytes(12_000_000),
        b"P5 1500 1500 255#\n0\n" + bytes(2 * 1500 * 1500),  # Pillow reads 2550
        run_length_bmp(5000, 5000),
    ],
)
def test_large_images_that_pillow_decodes_in_python_are_refused(data: bytes) -> None:
    with pytest.raises(ImageProblem):
        open_photo(data)


@pytest.mark.parametrize(
    "data",
    [
        SOUND,
        encoded("JPEG", (3000, 3000), progressive=True),
        repeated_scans(64, 900),
        SOUND[:-2] + b"\xff\xd0\xff\xd1" * 10_000 + SOUND[-2:],  # restart markers
        b"P4 9 9 " + bytes(18),
        b"P4 400 400 " + bytes(20_000),
        b"P6 9",
        b"P5#comment\n9 9 200 " + bytes(81),
        b"",
        b"\xff\xd8\xff",
        b"GIF89a",
        b"II*\0",
        b"II*\0\xff\xff\xff\xff",
    ],
)
def test_several_scans_and_merely_truncated_files_are_no_hazard(data: bytes) -> None:
    assert find_hazard(data) == ""


def test_a_million_pixels_may_be_decoded_in_python() -> None:
    data = b"P6 1000 1000 254 " + bytes(3_003_000)
    assert open_photo(data).width_px == 1000
    assert problem_of(data.replace(b"P6 1000", b"P6 1001")) == "too_large"


@pytest.mark.parametrize(
    ("frame", "expected"), [(0xC0, True), (0xC1, True), (0xC9, False), (0xCD, False)]
)
def test_tensorflow_decodes_huffman_coding_alone(frame: int, expected: bool) -> None:
    photo = open_photo(SOUND)
    photo.content = SOUND.replace(b"\xff\xc0", bytes((0xFF, frame)), 1)
    assert is_tf_decodable(photo) == expected


def test_a_run_of_fill_bytes_takes_linear_time() -> None:
    # In and behind a scan they cost nothing; before it Pillow reads them one by one.
    filled = open_photo(SOUND[:-2] + b"\xff" * 1_000_000 + b"\0" * 9)
    started = time.process_time()
    with upright(filled):
        pass
    assert not is_tf_decodable(filled)
    assert time.process_time() - started < 2


def test_overclaiming_exif_in_a_png_is_ignored() -> None:
    extra = containers.chunk(b"eXIf", containers.shared_tags(2_000_000, 1000))
    picture = np.zeros((64, 65), np.uint8)
    picture[:, 1:20] = 255
    body = containers.zlib.compress(picture.tobytes())
    started = time.process_time()
    crop = load_crop(containers.png(64, 64, 8, 0, body, extra), CropSpec(64, 64))
    assert crop.shape == (64, 64, 3)
    assert time.process_time() - started < 1


@pytest.mark.filterwarnings("ignore:Tag data larger than file")  # Pillow 13 skips such tags
def test_hexadecimal_exif_in_a_png_is_checked_before_it_is_parsed() -> None:
    block = containers.shared_tags(40_000, 1000)
    hexadecimal = b"\nexif\n" + str(len(block)).encode() + b"\n" + block.hex().encode()
    text = containers.chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(hexadecimal))
    data = containers.png(64, 64, 8, 0, zlib.compress(bytes(64 * 65)), text)
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        assert exif_block(image.info) == block
        assert image.getexif()[EXIF_ORIENTATION] == 6  # Pillow reads all tags
    with upright(open_photo(data)) as (image, _):
        assert image.size == (64, 64)
    assert turn_of(open_header(data, "turned.png")) is None
    assert exif_block({"exif": b"II*", "Raw profile type exif": hexadecimal.decode()}) == b"II*"
    assert exif_block({}) == b""


def test_the_largest_images_are_decoded_one_at_a_time() -> None:
    budget = DecodeBudget()
    inside: list[int] = []
    most: list[int] = []

    def decode(pixels: int) -> None:
        with budget.acquire(pixels):
            inside.append(pixels)
            most.append(sum(inside))
            time.sleep(0.01)
            inside.remove(pixels)

    sizes = [100_000_000, *[25_000_000] * 4, 10, 20]
    threads = [threading.Thread(target=decode, args=(size,)) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(most) == len(sizes)
    assert sorted(most)[-2] <= 50_000_000
    assert max(most) == 100_000_000


def test_images_that_fill_the_budget_are_decoded_together() -> None:
    budget, entered = DecodeBudget(), [threading.Event() for _ in range(2)]

    def decode(pixels: int, event: threading.Event) -> None:
        with budget.acquire(pixels):
            event.set()

    sizes = 25_000_000, 25_000_001
    with budget.acquire(25_000_000):
        threads = [
            threading.Thread(target=decode, args=row) for row in zip(sizes, entered, strict=True)
        ]
        for thread in threads:
            thread.start()
        assert entered[0].wait(10)
        assert not entered[1].wait(0.05)
    assert entered[1].wait(10)
    for thread in threads:
        thread.join(10)


def test_a_jpeg_of_several_scans_costs_its_stored_size() -> None:
    assert has_several_scans(encoded("JPEG", progressive=True))
    assert not has_several_scans(SOUND)
    assert has_several_scans(SOUND[:-2] + SOUND[SOUND.index(b"\xff\xda") :])
    thumbnail = SOUND[:2] + containers.exif(SOUND + b"\xff\xda") + SOUND[2:]
    assert not has_several_scans(thumbnail)
    assert not has_several_scans(encoded("PNG"))

    def cost(content: bytes | Image.Image, width: int = 10, height: int = 10) -> int:
        return decode_cost_px(Photo(content, "x", width, height), 100)

    assert cost(SOUND, 2_000, 8_000) == 100
    progressive = encoded("JPEG", progressive=True)
    assert [cost(progressive, 4_000, side) for side in (2_000, 2_001)] == [100, 8_004_000]
    costs = {"WEBP": 400, "AVIF": 400, "TIFF": 200, "BMP": 100, "PNG": 100}
    assert {kind: cost(encoded(kind)) for kind in costs} == costs
    assert cost(Image.new("RGB", (10, 10))) == 100


TAG_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2}
TAG_BYTES |= {9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("kind", TAG_BYTES)
def test_tags_may_claim_twice_the_block_and_16_mebibytes(order: str, kind: int) -> None:
    def block(*claims: int) -> bytes:
        head = struct.pack(order + "2sHIH", b"II" if order == "<" else b"MM", 42, 8, len(claims))
        rows = (struct.pack(order + "HHII", 9, kind, c // TAG_BYTES[kind], 8) for c in claims)
        return (head + b"".join(rows)).ljust(1_000_000, b"\0")

    beyond = 1_000_000 + TAG_BYTES[kind]  # larger than the block: decoders ignore it
    claims = [*[1_000_000] * 18, 2_000_000 + 2**24 - 18_000_000, beyond]
    assert not tags_overclaim(block(*claims))
    assert tags_overclaim(block(*claims, TAG_BYTES[kind]))
    assert not tags_overclaim(block(*claims, TAG_BYTES[kind])[1:])  # no such block
    assert tags_overclaim(b"Exif\0\0" + block(*claims, 10 * TAG_BYTES[kind]))


@pytest.mark.parametrize("kind", [0, 14, 15, 17])
def test_tags_of_unknown_kinds_claim_nothing(kind: int) -> None:
    rows = struct.pack("<HHII", 9, kind, 1_000_000, 8) * 20
    assert not tags_overclaim(struct.pack("<2sHIH", b"II", 42, 8, 20) + rows + bytes(1_000_000))


def test_what_follows_the_tags_claims_nothing() -> None:
    tag, follows = (struct.pack("<HHII", 9, 7, size, 8) * 240 for size in (0, 1_000_000))
    data = struct.pack("<2sHIH", b"II", 42, 8, 240) + tag + follows + bytes(1_000_000)
    assert not tags_overclaim(data)
    assert not tags_overclaim(data[:40])


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(("offset", "length", "base", "index"), [(4, 4, 0, 0), (8, 4, 4, 4)])
def test_items_may_claim_twice_the_file_and_16_mebibytes(
    version: int, offset: int, length: int, base: int, index: int
) -> None:
    def image(*items: tuple[int, ...]) -> bytes:
        wide = 4 if version == 2 else 2
        box = b"iloc" + bytes([version, 0, 0, 0, offset << 4 | length, base << 4 | index])
        box += len(items).to_bytes(wide)
        for parts in items:
            box += b"\1" * (wide + (4 if version else 2) + base) + len(parts).to_bytes(2)
            for part in parts:
                box += b"\2" * (offset + (index if version else 0)) + part.to_bytes(length)
        return (b"\0\0\0\x18ftypavif" + box).ljust(1_000_000, b"\0")

    items = [(9_000_000, 1), (), (0, 2_000_000 + 2**24 - 10_000_001)]  # 0 is the whole file
    assert find_hazard(image(*items)) == ""
    assert "items claim more" in find_hazard(image(*items, (1,)))


def test_the_header_of_a_pnm_may_have_comments_of_4096_bytes() -> None:
    for gap, says in ((4_080, ""), (4_089, "header is over 4,096")):
        data = b"P6\n#" + b"x" * gap + b"\n" + b"9 9 255 " + bytes(243)
        assert says in find_hazard(data)
        assert bool(says) == bool(find_hazard(data))


def test_the_exif_item_of_an_avif_is_not_parsed() -> None:
    exif = Image.Exif()
    exif[EXIF_ORIENTATION], exif[ExifTags.Base.Make] = 6, "a camera"
    data = encoded("AVIF", exif=exif)
    photo = open_photo(data)
    assert Image.open(io.BytesIO(data)).getexif()[ExifTags.Base.Make] == "a camera"
    assert photo.opened
    assert ExifTags.Base.Make not in photo.opened.getexif()
    assert turn_of(photo.opened) is TURNS[6]  # from another box


TILES = {"t322": (4, 1, 20_000)}
RGB = {"t262": (3, 1, 2), "t277": (3, 1, 3)}


@pytest.mark.parametrize(
    ("bits", "tag", "rows", "others"),
    [(8, "t323", 10_000, TILES), (16, "t323", 5_000, TILES), (16, "t278", 5_555, RGB)],
)
def test_a_tiff_may_have_tiles_and_strips_of_200_megabytes(bits, tag, rows, others):
    def photo(rows: int) -> bytes:
        return containers.tiff_image(6_000, bytes(99), bits=bits, **others, **{tag: (4, 1, rows)})

    assert open_photo(photo(rows)).width_px == 6_000
    assert problem_of(photo(rows + 1)) == "too_large"
