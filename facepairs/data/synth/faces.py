"""Synthetic photos of faces, drawn from a seed.

Photo `i` of person `p` is a function of (seed, p, i) alone, so more people or photos leave the
others unchanged. The parameters are the same on every machine; pixels may differ by rounding.
"""

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from facepairs.data.synth.canvas import FRAME_PX, SUPERSAMPLING, Canvas, Points, hue
from facepairs.data.synth.drawing import draw, relief
from facepairs.data.synth.parameters import Identity, Shot
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
NAME_STEP = 66_449  # coprime to MAX_PEOPLE, so steps of this size meet every name once
MAX_PHOTOS = 9_999  # of a person
BACKDROP_PX = 64  # it is out of focus
MARKS = 40
RESEMBLANCE = 0.7  # of relatives: which share of what differs is their family's
LIKENESS = 0.5  # of unrelated people at difficulty 1: by which share they differ less
BACKDROP_OBJECTS = 8
AVERAGE = Identity(
    *((entry.metadata["low"] + entry.metadata["high"]) / 2 for entry in fields(Identity))
)

Plane = npt.NDArray[np.float32]
Parameters = TypeVar("Parameters", Identity, Shot)


def appearance(
    seed: int, person: int, photo: int, difficulty: float = 0.0, families: int = 0
) -> tuple[Identity, Shot]:
    """Return the parameters of a photo: the person; and pose, light, expression and camera.

    With a difficulty, people differ less, and their photos differ more: in age, hair, beard and
    glasses, pose, light and expression.

    Args:
        seed: From 0 to 2**63 - 1.
        person: From 0 to MAX_PEOPLE - 1.
        photo: From 0 to MAX_PHOTOS - 1.
        difficulty: From 0 to 1.
        families: Number of families of people who resemble each other; 0 for unrelated people.
            Person `p` belongs to family `p % families`.

    Raises:
        BadConfig: The seed is out of range.
    """
    own = _draw_parameters(Identity, seed, Stream.FACE_IDENTITY, person, 0)
    shot = _draw_parameters(Shot, seed, Stream.FACE_SHOT, person, photo)
    fresh = _draw_parameters(Identity, seed, Stream.FACE_CHANGES, person, photo)
    usual, share = AVERAGE, difficulty * LIKENESS
    if families:
        usual = _draw_parameters(Identity, seed, Stream.FACE_FAMILY, person % families, 0)
        share = RESEMBLANCE
    look, taken = {}, {}
    for entry in fields(Identity):
        mine, common, now = (getattr(who, entry.name) for who in (own, usual, fresh))
        mine += share * (common - mine)
        look[entry.name] = mine + difficulty * entry.metadata["changes"] * (now - mine)
    for entry in fields(Shot):
        value, low, high = getattr(shot, entry.name), entry.metadata["low"], entry.metadata["high"]
        excess = value - (low + high) / 2
        taken[entry.name] = value + difficulty * entry.metadata["changes"] * excess
    return Identity(**look), Shot(**taken)


def name_of(seed: int, person: int) -> str:
    """Return an invented name such as `Alba_Tormund`; people of one seed have different names.

    Arguments are those of `draw_face`.
    """
    start = int(unit(raw_words(seed, Stream.FACE_NAMES, 0, 0, 1))[0] * MAX_PEOPLE)
    number = (start + person * NAME_STEP) % MAX_PEOPLE
    syllables = []
    for part in reversed(NAME_PARTS):
        number, at = divmod(number, len(part))
        syllables.append(part[at])
    last_end, last, first_end, first = syllables
    return f"{first}{first_end}_{last}{last_end}"


def draw_face(
    seed: int,
    person: int,
    photo: int,
    size_px: int = FRAME_PX,
    difficulty: float = 0.0,
    families: int = 0,
) -> npt.NDArray[np.uint8]:
    """Draw one photo.

    Args:
        seed: From 0 to 2**63 - 1.
        person: From 0 to MAX_PEOPLE - 1.
        photo: From 0 to MAX_PHOTOS - 1.
        size_px: Width and height, 32 or more.
        difficulty: As for `appearance`.
        families: As for `appearance`.

    Returns:
        uint8[size_px, size_px, 3], RGB. Eyes and mouth lie in the middle 112 pixels of a frame of
        250, as in LFW.

    Raises:
        BadConfig: The seed is out of range.
    """
    face, shot = appearance(seed, person, photo, difficulty, families)
    marks = unit(raw_words(seed, Stream.FACE_MARKS, person, 0, MARKS * 3)).reshape(MARKS, 3)
    words = raw_words(seed, Stream.FACE_BACKDROP, person, photo, BACKDROP_OBJECTS * 6)
    objects = unit(words).reshape(BACKDROP_OBJECTS, 6)
    canvas = draw(face, shot, _backdrop(shot, SUPERSAMPLING * size_px, objects), marks)
    noise = raw_words(seed, Stream.FACE_NOISE, person, photo, -(-size_px * size_px * 3 // 8))
    return _photograph(canvas, face, shot, size_px, noise)


def _draw_parameters(
    kind: type[Parameters], seed: int, stream: Stream, person: int, photo: int
) -> Parameters:
    """Draw each parameter from one raw word, by a uniform or a triangular distribution."""
    values = {}
    words = raw_words(seed, stream, person, photo, len(fields(kind)))
    for field, u in zip(fields(kind), unit(words).tolist(), strict=True):
        # Square roots are exact to the last bit everywhere; normal quantiles are not.
        bell = math.sqrt(u / 2) if u < 0.5 else 1 - math.sqrt((1 - u) / 2)
        low, high = field.metadata["low"], field.metadata["high"]
        values[field.name] = low + (bell if field.metadata["bell"] else u) * (high - low)
    return kind(**values)


def _backdrop(shot: Shot, side_px: int, objects: Points) -> Image.Image:
    """Return a plain or cluttered background, out of focus; `objects` float64[N, 6] in [0, 1)."""
    grid = np.linspace(-1, 1, BACKDROP_PX)
    angle = 2 * np.pi * shot.backdrop_angle
    slope = shot.backdrop_gradient * (grid * np.cos(angle) + grid[:, None] * np.sin(angle))
    base = np.array(hue(shot.backdrop_hue, shot.backdrop_saturation, shot.backdrop_lightness))
    image = Image.fromarray(np.clip(base * (1 + slope[..., None]), 0, 255).astype(np.uint8))
    pen = ImageDraw.Draw(image, "RGBA")
    for number, (x, y, width, height, turn, light) in enumerate(objects.tolist()):
        if light < 0.4:
            continue
        box = np.array([x - 0.3 * width, y - 0.4 * height, x + 0.3 * width, y + 0.4 * height])
        colour = (*hue(turn, 0.25, light), 130)
        (pen.rectangle if number % 2 else pen.ellipse)((box * BACKDROP_PX).tolist(), fill=colour)
    image = image.filter(ImageFilter.GaussianBlur(shot.backdrop_blur))
    return image.resize((side_px, side_px), Image.Resampling.BILINEAR)


def _light(canvas: Canvas, face: Identity, shot: Shot, side_px: int) -> Image.Image:
    """Return the light on the relief of the head, float32[side, side]; 1 on a flat surface."""
    step = FRAME_PX / side_px
    x = (np.arange(side_px, dtype=np.float32) + np.float32(0.5)) * np.float32(step)
    y = x[:, None]
    ridge, bumps = relief(face)
    middle = (0.0, (face.chin_drop - face.skull_height) / 2)
    (cx, cy), bridge, tip = (canvas.project([middle, *ridge]) / canvas.px).tolist()
    wide, tall = 1.28 * face.head_half_width, 0.66 * (face.chin_drop + face.skull_height)
    dome = 1 - ((x - cx) / wide) ** 2 - ((y - cy) / tall) ** 2
    height = 0.95 * wide * np.sqrt(np.maximum(dome, 0.02))
    height += _nose_relief(x, y, bridge, tip, face)
    for (bx, by), (rise, spread) in zip(
        (canvas.project(bumps[:, :2]) / canvas.px).tolist(), bumps[:, 2:].tolist(), strict=True
    ):
        bell_x, bell_y = (np.exp(-((a - b) ** 2) / (2 * spread**2)) for a, b in ((x, bx), (y, by)))
        height += rise * bell_y * bell_x
    down, across = np.gradient(height, step)
    facing = 1 / np.sqrt(1 + down**2 + across**2)
    diffuse = (1 - across * shot.light_x - down * shot.light_y) * facing
    half_way = (shot.light_x**2 + shot.light_y**2 + 4.84) ** 0.5  # between light and camera
    specular = (2.2 - across * shot.light_x - down * shot.light_y) * facing / half_way
    light = shot.ambient + (1 - shot.ambient) * np.maximum(diffuse, 0.05)
    return Image.fromarray(light + 0.1 * np.maximum(specular, 0) ** 24)


def _nose_relief(
    x: Plane, y: Plane, bridge: Sequence[float], tip: Sequence[float], face: Identity
) -> Plane:
    """Return the height of a ridge that widens and rises from the bridge to the tip."""
    dx, dy = tip[0] - bridge[0], tip[1] - bridge[1]
    along = ((x - bridge[0]) * dx + (y - bridge[1]) * dy) / (dx * dx + dy * dy)
    along = np.clip(along, 0, 1)
    distance = (x - bridge[0] - along * dx) ** 2 + (y - bridge[1] - along * dy) ** 2
    width = face.nose_bridge + along * (0.45 * (face.nose_half_width - face.nose_bridge))
    ridge = (0.3 + 0.7 * along) * np.exp(-distance / (2 * width**2))
    return np.asarray(face.nose_relief * ridge, np.float32)


def _photograph(
    canvas: Canvas, face: Identity, shot: Shot, size_px: int, noise: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint8]:
    """Return the drawn face as a camera sees it: lit, blurred and noisy."""
    sharp = canvas.image.reduce(SUPERSAMPLING)
    blurred = sharp.filter(ImageFilter.BoxBlur(shot.blur_px * size_px / FRAME_PX))
    colours = np.asarray(blurred, np.float32)
    head = np.asarray(canvas.head_mask.reduce(SUPERSAMPLING), np.float32) / 255
    light = _light(canvas, face, shot, max(8, round(0.4 * size_px)))
    relit = np.asarray(light.resize((size_px, size_px), Image.Resampling.BILINEAR)) - 1
    relit *= head
    across = np.linspace(-1, 1, size_px, dtype=np.float32)
    angle = 2 * np.pi * shot.falloff_angle
    towards = across * math.cos(angle) + across[:, None] * math.sin(angle)
    exposure = shot.brightness * shot.contrast * (1 - 0.5 * shot.falloff * (1 + towards))
    lit = np.empty_like(colours)
    # Light is scattered red in skin, so red varies the least with the relief.
    for c, (depth, balance) in enumerate(zip((0.92, 1.03, 1.1), (0.13, 0, -0.16), strict=True)):
        gain = (1 + depth * relit) * (exposure * (1 + balance * shot.warmth))
        lit[..., c] = colours[..., c] * gain
    lit += 118.5 * (1 - shot.contrast) + 0.5
    grain = noise.astype("<u8").view(np.uint8)[: lit.size].reshape(lit.shape).astype(np.float32)
    grain -= 127.5
    grain *= shot.noise / 73.9  # the standard deviation of a uniform byte
    lit += grain
    return np.clip(lit, 0, 255, out=lit).astype(np.uint8)
