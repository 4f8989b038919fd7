"""Invented faces in LFW's layout, drawn from a seed: no photo of a real person is needed."""

from collections.abc import Sequence
from dataclasses import fields
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from facepairs.data.drawing import (
    FRAME_PX,
    SUPERSAMPLING,
    Canvas,
    Identity,
    Points,
    Shot,
    bumps,
    draw,
    hue,
    ridge_points,
)
from facepairs.data.sampler import raw_words, unit

# Streams of the counter-based generator; PairSampler has stream 0.
IDENTITY_STREAM, SHOT_STREAM, MARKS_STREAM, BACKDROP_STREAM, NOISE_STREAM, NAME_STREAM = range(1, 7)

BACKDROP_PX = 64  # it is out of focus

Plane = npt.NDArray[np.float32]
Parameters = TypeVar("Parameters", Identity, Shot)


def _drawn(kind: type[Parameters], seed: int, stream: int, person: int, photo: int) -> Parameters:
    """Map one raw word to each parameter: evenly, or by the triangular distribution."""
    declared = fields(kind)
    values = {}
    for entry, u in zip(
        declared, unit(raw_words(seed, stream, person, photo, len(declared))).tolist(), strict=True
    ):
        low, high = entry.metadata["low"], entry.metadata["high"]
        if entry.metadata["bell"]:
            u = (u / 2) ** 0.5 if u < 0.5 else 1 - ((1 - u) / 2) ** 0.5
        values[entry.name] = low + u * (high - low)
    return kind(**values)


def identity(seed: int, person: int) -> Identity:
    return _drawn(Identity, seed, IDENTITY_STREAM, person, 0)


def shot(seed: int, person: int, photo: int) -> Shot:
    return _drawn(Shot, seed, SHOT_STREAM, person, photo)


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
    (cx, cy), bridge, tip = (canvas.at(ridge_points(who)) / canvas.px).tolist()
    wide, tall = 1.28 * who.head_half_width, 0.66 * (who.chin_drop + who.skull_height)
    relief = 0.95 * wide * np.sqrt(np.maximum(1 - ((x - cx) / wide) ** 2 - ((y - cy) / tall) ** 2, 0.02))
    relief += _nose_relief(x, y, bridge, tip, who)
    places, heights, sizes = bumps(who)
    for (bx, by), height, size in zip((canvas.at(places) / canvas.px).tolist(), heights, sizes, strict=True):
        bell_x, bell_y = (np.exp(-((a - b) ** 2) / (2 * size**2)) for a, b in ((x, bx), (y, by)))
        relief += height * bell_y * bell_x
    down, across = np.gradient(relief, step)
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
    colours = np.asarray(canvas.image.reduce(SUPERSAMPLING), np.float32)
    head = np.asarray(canvas.head_mask.reduce(SUPERSAMPLING), np.float32) / 255
    light = _light(canvas, who, how, max(8, round(0.4 * size_px)))
    relit = np.asarray(light.resize((size_px, size_px), Image.Resampling.BILINEAR)) - 1
    relit *= head
    across = np.linspace(-1, 1, size_px, dtype=np.float32)
    angle = 2 * np.pi * how.falloff_angle
    far = how.brightness * how.contrast * (1 - 0.5 * how.falloff * (
        1 + across * np.cos(angle) + across[:, None] * np.sin(angle)
    ))
    lit = np.empty_like(colours)
    # Light bleeds red in skin, so red varies the least with the relief.
    for c, (depth, balance) in enumerate(zip((0.92, 1.03, 1.1), (0.13, 0, -0.16), strict=True)):
        gain = (1 + depth * relit) * (far * (1 + balance * how.warmth))
        lit[..., c] = colours[..., c] * gain
    lit += 118 * (1 - how.contrast)
    image = Image.fromarray(np.clip(lit, 0, 255).astype(np.uint8))
    blur = how.blur_px * size_px / FRAME_PX
    if blur > 0.3:
        image = image.filter(ImageFilter.GaussianBlur(blur))
    grain = noise.astype("<u8").view(np.uint8)[: lit.size].reshape(lit.shape).astype(np.float32)
    grain -= 127.5
    grain *= how.noise / 73.9  # the standard deviation of a uniform byte
    grain += np.asarray(image)
    return np.clip(grain + 0.5, 0, 255).astype(np.uint8)


def draw_face(seed: int, person: int, photo: int, size_px: int = FRAME_PX) -> npt.NDArray[np.uint8]:
    who, how = identity(seed, person), shot(seed, person, photo)
    marks = unit(raw_words(seed, MARKS_STREAM, person, 0, 120)).reshape(40, 3)
    u = unit(raw_words(seed, BACKDROP_STREAM, person, photo, 6 * 8)).reshape(8, 6)
    canvas = draw(who, how, _backdrop(how, SUPERSAMPLING * size_px, u), marks)
    noise = raw_words(seed, NOISE_STREAM, person, photo, -(-size_px * size_px * 3 // 8))
    return _photograph(canvas, who, how, size_px, noise)
