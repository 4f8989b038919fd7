"""Invented faces in LFW's layout, drawn from a seed: no photo of a real person is needed.

Photo `i` of person `p` is a function of (seed, p, i) alone, so asking for more people or photos
leaves the others as they were. The parameters are the same on every machine (raw Philox words,
mapped here); pixels may differ by rounding, and JPEG bytes with the version of libjpeg.
"""

import math
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from facepairs.data.synth.appearance import (
    FRAME_PX,
    SUPERSAMPLING,
    Canvas,
    Identity,
    Points,
    Shot,
    hue,
)
from facepairs.data.synth.drawing import draw, relief
from facepairs.errors import BadConfig, BadData
from facepairs.images.jpeg import write_jpeg
from facepairs.support.atomic import atomic_folder
from facepairs.support.platform import ignore_interrupts
from facepairs.support.random_streams import Stream, raw_words, unit

NAME_PARTS = tuple(
    text.split()
    for text in (
        "Alb Bren Cael Dor Els Fjor Gwen Hal Ing Jor Kal Lun Mar Nev Ols Per Quin Ros Sil Tam "
        "Ulr Ves Wyn Yor Zel Ard Bel Åsg",
        "a en io is une win eth or",
        "Ash Bram Corv Dall Eld Farn Grim Holt Isk Jarn Kest Lor Mord Nyb Ost Pell Quar Rav "
        "Sten Torm Ulv Vand Wend Yarr Zorn Hask Lind Thal Bjørn Müh",
        "und aker by dal feld gate hurst in ley mark nik os quist ran sby thorpe",
    )
)
MAX_PEOPLE = math.prod(map(len, NAME_PARTS))  # 107,520 different names
NAME_STEP = 66_449  # prime to MAX_PEOPLE: a step for each person meets every name once
MAX_PHOTOS = 9_999  # each
POOL_FROM_PHOTOS = 200  # starting processes costs as much as drawing about a hundred
SIZE_LIMITS_PX = 32, 1_000
BACKDROP_PX = 64  # it is out of focus

Plane = npt.NDArray[np.float32]
Parameters = TypeVar("Parameters", Identity, Shot)


def _drawn(
    kind: type[Parameters], seed: int, stream: Stream, person: int, photo: int
) -> Parameters:
    """Map one raw word to each parameter: evenly, or by the triangular distribution."""
    declared = fields(kind)
    values = {}
    words = raw_words(seed, stream, person, photo, len(declared))
    for entry, even in zip(declared, unit(words).tolist(), strict=True):
        low, high, bell = (entry.metadata[key] for key in ("low", "high", "bell"))
        # Square roots are exact to the last bit everywhere; normal quantiles are not.
        below, above = math.sqrt(even / 2), 1 - math.sqrt((1 - even) / 2)
        place = even if not bell else below if even < 0.5 else above
        values[entry.name] = low + place * (high - low)
    return kind(**values)


def identity_of(seed: int, person: int) -> Identity:
    """Give what stays the same in all photos of a person; `person` counts from 0.

    Raises BadConfig for a seed or a number that is out of range.
    """
    _check_number("person", person, 0, MAX_PEOPLE - 1)
    return _drawn(Identity, seed, Stream.FACE_IDENTITY, person, 0)


def shot_of(seed: int, person: int, photo: int) -> Shot:
    """Give pose, light, expression and camera of one photo; `person` and `photo` count from 0.

    Raises BadConfig for a seed or a number that is out of range.
    """
    _check_number("person", person, 0, MAX_PEOPLE - 1)
    _check_number("photo", photo, 0, MAX_PHOTOS - 1)
    return _drawn(Shot, seed, Stream.FACE_SHOT, person, photo)


def name_of(seed: int, person: int) -> str:
    """Give an invented person's name, such as `Alba_Tormund`; no two of a seed are alike.

    Raises BadConfig for a seed or a number that is out of range.
    """
    _check_number("person", person, 0, MAX_PEOPLE - 1)
    start = int(unit(raw_words(seed, Stream.FACE_NAMES, 0, 0, 1))[0] * MAX_PEOPLE)
    rest = (start + person * NAME_STEP) % MAX_PEOPLE
    syllables = []
    for part in reversed(NAME_PARTS):
        rest, at = divmod(rest, len(part))
        syllables.append(part[at])
    last_end, last, first_end, first = syllables
    return f"{first}{first_end}_{last}{last_end}"


def _check_number(what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise BadConfig(f"{what} is {value}; use {low} to {high}")


def _backdrop(how: Shot, side_px: int, u: Points) -> Image.Image:
    """A plain or cluttered room, out of focus."""
    grid = np.linspace(-1, 1, BACKDROP_PX)
    angle = 2 * np.pi * how.backdrop_angle
    slope = how.backdrop_gradient * (grid * np.cos(angle) + grid[:, None] * np.sin(angle))
    base = np.array(hue(how.backdrop_hue, how.backdrop_saturation, how.backdrop_lightness))
    image = Image.fromarray(np.clip(base * (1 + slope[..., None]), 0, 255).astype(np.uint8))
    pen = ImageDraw.Draw(image, "RGBA")
    for number, (x, y, wide, tall, turn, light) in enumerate(u.tolist()):
        if light < 0.4:
            continue
        box = np.array([x - 0.3 * wide, y - 0.4 * tall, x + 0.3 * wide, y + 0.4 * tall])
        colour = (*hue(turn, 0.25, light), 130)
        (pen.rectangle if number % 2 else pen.ellipse)((box * BACKDROP_PX).tolist(), fill=colour)
    image = image.filter(ImageFilter.GaussianBlur(how.backdrop_blur))
    return image.resize((side_px, side_px), Image.Resampling.BILINEAR)


def _light(canvas: Canvas, who: Identity, how: Shot, side_px: int) -> Image.Image:
    """Light on a head of simple relief: float32[side, side], 1 where it would be on flat paper."""
    step = FRAME_PX / side_px
    x = (np.arange(side_px, dtype=np.float32) + np.float32(0.5)) * np.float32(step)
    y = x[:, None]
    ridge, bumps = relief(who)
    middle = (0.0, (who.chin_drop - who.skull_height) / 2)
    (cx, cy), bridge, tip = (canvas.at([middle, *ridge]) / canvas.px).tolist()
    wide, tall = 1.28 * who.head_half_width, 0.66 * (who.chin_drop + who.skull_height)
    dome = 1 - ((x - cx) / wide) ** 2 - ((y - cy) / tall) ** 2
    height = 0.95 * wide * np.sqrt(np.maximum(dome, 0.02))
    height += _nose_relief(x, y, bridge, tip, who)
    for (bx, by), (rise, spread) in zip(
        (canvas.at(bumps[:, :2]) / canvas.px).tolist(), bumps[:, 2:].tolist(), strict=True
    ):
        bell_x, bell_y = (np.exp(-((a - b) ** 2) / (2 * spread**2)) for a, b in ((x, bx), (y, by)))
        height += rise * bell_y * bell_x
    down, across = np.gradient(height, step)
    facing = 1 / np.sqrt(1 + down**2 + across**2)
    direct = (1 - across * how.light_x - down * how.light_y) * facing
    towards = (how.light_x**2 + how.light_y**2 + 4.84) ** 0.5  # half-way from light to camera
    gleam = (2.2 - across * how.light_x - down * how.light_y) * facing / towards
    light = how.ambient + (1 - how.ambient) * np.maximum(direct, 0.05)
    return Image.fromarray(light + 0.1 * np.maximum(gleam, 0) ** 24)


def _nose_relief(
    x: Plane, y: Plane, bridge: Sequence[float], tip: Sequence[float], who: Identity
) -> Plane:
    """A ridge that widens and rises from the bridge to the tip."""
    dx, dy = tip[0] - bridge[0], tip[1] - bridge[1]
    along = ((x - bridge[0]) * dx + (y - bridge[1]) * dy) / (dx * dx + dy * dy)
    along = np.clip(along, 0, 1)
    distance = (x - bridge[0] - along * dx) ** 2 + (y - bridge[1] - along * dy) ** 2
    width = who.nose_bridge + along * (0.45 * (who.nose_half_width - who.nose_bridge))
    ridge = (0.3 + 0.7 * along) * np.exp(-distance / (2 * width**2))
    return np.asarray(who.nose_relief * ridge, np.float32)


def _photograph(
    canvas: Canvas, who: Identity, how: Shot, size_px: int, noise: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint8]:
    sharp = canvas.image.reduce(SUPERSAMPLING)
    blurred = sharp.filter(ImageFilter.BoxBlur(how.blur_px * size_px / FRAME_PX))
    colours = np.asarray(blurred, np.float32)
    head = np.asarray(canvas.head_mask.reduce(SUPERSAMPLING), np.float32) / 255
    light = _light(canvas, who, how, max(8, round(0.4 * size_px)))
    relit = np.asarray(light.resize((size_px, size_px), Image.Resampling.BILINEAR)) - 1
    relit *= head
    across = np.linspace(-1, 1, size_px, dtype=np.float32)
    angle = 2 * np.pi * how.falloff_angle
    towards = across * math.cos(angle) + across[:, None] * math.sin(angle)
    far = how.brightness * how.contrast * (1 - 0.5 * how.falloff * (1 + towards))
    lit = np.empty_like(colours)
    # Light bleeds red in skin, so red varies the least with the relief.
    for c, (depth, balance) in enumerate(zip((0.92, 1.03, 1.1), (0.13, 0, -0.16), strict=True)):
        gain = (1 + depth * relit) * (far * (1 + balance * how.warmth))
        lit[..., c] = colours[..., c] * gain
    lit += 118.5 * (1 - how.contrast) + 0.5
    grain = noise.astype("<u8").view(np.uint8)[: lit.size].reshape(lit.shape).astype(np.float32)
    grain -= 127.5
    grain *= how.noise / 73.9  # the standard deviation of a uniform byte
    lit += grain
    return np.clip(lit, 0, 255, out=lit).astype(np.uint8)


def draw_face(seed: int, person: int, photo: int, size_px: int = FRAME_PX) -> npt.NDArray[np.uint8]:
    """Draw one photo: uint8[size_px, size_px, 3], RGB; `person` and `photo` count from 0.

    Eyes and mouth lie in the middle 112 pixels of a frame of 250, as in LFW.
    Raises BadConfig for a seed or a number that is out of range.
    """
    _check_number("size_px", size_px, *SIZE_LIMITS_PX)
    who, how = identity_of(seed, person), shot_of(seed, person, photo)
    marks = unit(raw_words(seed, Stream.FACE_MARKS, person, 0, 40 * 3)).reshape(40, 3)
    things = unit(raw_words(seed, Stream.FACE_BACKDROP, person, photo, 8 * 6)).reshape(8, 6)
    canvas = draw(who, how, _backdrop(how, SUPERSAMPLING * size_px, things), marks)
    noise = raw_words(seed, Stream.FACE_NOISE, person, photo, -(-size_px * size_px * 3 // 8))
    return _photograph(canvas, who, how, size_px, noise)


class _Album(NamedTuple):
    """One person's photos to draw, as a worker process gets them."""

    folder: Path
    seed: int
    person: int
    photos: int
    size_px: int


def _photos(album: _Album) -> Iterator[Path]:
    """Draw one person's photos, yielding the path of each."""
    name = name_of(album.seed, album.person)
    (album.folder / name).mkdir(exist_ok=True)
    for photo in range(album.photos):
        path = album.folder / name / f"{name}_{photo + 1:04d}.jpg"
        quality = round(shot_of(album.seed, album.person, photo).jpeg_quality)
        face = draw_face(album.seed, album.person, photo, album.size_px)
        write_jpeg(path, face, quality)
        yield path


def _fill(album: _Album) -> int:
    return sum(1 for _ in _photos(album))


def _fill_in_processes(albums: Sequence[_Album], workers: int) -> Iterator[int]:
    """Yield the number of photos of each person drawn, in order; end early if processes break."""
    start_fresh = multiprocessing.get_context("spawn")  # forking a process with threads is unsafe
    with ProcessPoolExecutor(workers, start_fresh, ignore_interrupts) as pool:
        try:
            yield from pool.map(_fill, albums, chunksize=4)
        except BrokenProcessPool:
            return
        finally:
            pool.shutdown(cancel_futures=True)


def synth_faces(
    out: Path,
    people: int,
    images: int | tuple[int, int],
    seed: int,
    size_px: int = FRAME_PX,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write a folder of invented people in LFW's layout, `out/Name/Name_0001.jpg`.

    `images`: photos a person, or a range (both ends included) that each person's number is drawn
    from. `progress(done, total)` counts photos. More than 200 photos are drawn in several
    processes, so a script must call this under `if __name__ == "__main__":`; the files are the
    same. Raises BadConfig for numbers out of range and BadData when `out` holds anything.
    """
    low, high = (images, images) if isinstance(images, int) else images
    _check_number("people", people, 1, MAX_PEOPLE)
    _check_number("size_px", size_px, *SIZE_LIMITS_PX)
    for number in (low, high):
        _check_number("images", number, 1, MAX_PHOTOS)
    if low > high:
        raise BadConfig(f"images is a range from {low} to {high}; give the smaller number first")
    counts = [_count(seed, person, low, high) for person in range(people)]
    with atomic_folder(_free_place(out)) as folder:
        albums = [_Album(folder, seed, p, count, size_px) for p, count in enumerate(counts)]
        _fill_all(albums, sum(counts), progress or (lambda done, total: None))


def _count(seed: int, person: int, low: int, high: int) -> int:
    even = unit(raw_words(seed, Stream.FACE_PHOTO_COUNT, person, 0, 1))[0]
    return low + int(even * (high - low + 1))


def _free_place(out: Path) -> Path:
    try:
        place = out.resolve()
        taken = place.exists() and (not place.is_dir() or any(place.iterdir()))
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, up to Python 3.12
        raise BadData(f"{out}: {error}; choose another folder") from None
    if taken:
        raise BadData(f"{out}: is not an empty folder; remove it or choose another name")
    return place


def _fill_all(albums: Sequence[_Album], total: int, progress: Callable[[int, int], None]) -> None:
    workers = min(os.cpu_count() or 1, len(albums)) if total > POOL_FROM_PHOTOS else 1
    done = filled = 0
    if workers > 1:
        for photos in _fill_in_processes(albums, workers):
            done, filled = done + photos, filled + 1
            progress(done, total)
    for album in albums[filled:]:
        for _ in _photos(album):
            done += 1
            progress(done, total)
