"""What a drawn face is made from: `Identity` is who it is, `Shot` is how it was photographed.

`Canvas` is what it is drawn on. Lengths are in pixels of the 250-pixel LFW frame, from the midpoint
of the eyes: x to the right, y down, z towards the camera. Everything is drawn at twice the size and
reduced.
"""

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

FRAME_PX = 250
EYES_AT = (125.0, 112.0)  # where LFW's aligned frames have the midpoint of the eyes, on average
SUPERSAMPLING = 2

Points = npt.NDArray[np.float64]
Colour = tuple[int, int, int]

SKIN = ((250, 218, 192), (236, 190, 158), (218, 164, 126), (188, 128, 90), (146, 94, 64))
HAIR = ((34, 28, 28), (62, 42, 30), (98, 64, 40), (132, 72, 42), (178, 134, 84), (214, 184, 130))
IRIS = ((66, 42, 28), (112, 78, 40), (98, 116, 66), (78, 120, 150), (112, 128, 142))
LIPS = ((196, 120, 108), (184, 92, 90), (158, 66, 70), (190, 78, 96))
FRAMES = ((30, 28, 30), (92, 54, 34), (60, 76, 108), (150, 144, 138))
WHITE: Colour = (240, 236, 232)
LASHES: Colour = (38, 28, 26)
PUPIL: Colour = (14, 12, 12)
MOUTH_INSIDE: Colour = (82, 30, 34)
GLOSS: Colour = (255, 236, 200)


def between(low: float, high: float, bell: bool = False) -> Any:
    """Declare a parameter drawn evenly from a range, or (`bell`) mostly from its middle."""
    return field(metadata={"low": low, "high": high, "bell": bell})


@dataclass(frozen=True)
class Identity:
    """What stays with a person from photo to photo; drawn in this order from the seed."""

    head_half_width: float = between(40.5, 49)
    skull_height: float = between(58, 68)
    chin_drop: float = between(68, 81)
    jaw_width: float = between(0.66, 0.92)  # of the head's, at the height of the mouth
    chin_half_width: float = between(9, 19)
    cheek_fullness: float = between(0.95, 1.04)
    skin_tone: float = between(0, 1, bell=True)  # place on the ramp SKIN
    skin_warmth: float = between(-1, 1, bell=True)
    eye_distance: float = between(18, 23)  # half of the distance between the pupils
    eye_half_width: float = between(9, 12)
    eye_opening: float = between(6.8, 10.8)
    eye_tilt: float = between(-1.8, 2.4)
    eye_height: float = between(-2.5, 2.5)
    iris_colour: float = between(0, 1)
    brow_height: float = between(12, 18.5)
    brow_thickness: float = between(1.6, 5.4)
    brow_arch: float = between(0, 4.5)
    brow_angle: float = between(-2.6, 2.6)
    brow_gap: float = between(6, 11)
    brow_darkness: float = between(0.25, 0.75)
    nose_length: float = between(25, 35)
    nose_half_width: float = between(6.5, 11.5)
    nose_bridge: float = between(2.8, 5.2)
    nose_relief: float = between(9, 17)
    mouth_height: float = between(43, 51)
    mouth_half_width: float = between(13.5, 21)
    upper_lip: float = between(2.2, 5.4)
    lower_lip: float = between(3.2, 7.2)
    lip_colour: float = between(0, 1)
    hair_colour: float = between(0, 1)
    grey: float = between(-2.2, 0.9)  # above 0: share of grey in the hair
    hair_line: float = between(34, 51)
    temple_recession: float = between(0.28, 0.75)
    hair_top: float = between(5, 22)
    hair_sides: float = between(1.5, 11)
    curl: float = between(-1.2, 1)  # above 0: how curly
    hair_length: float = between(-60, 125)  # below 20: short
    parting: float = between(-0.75, 0.75)
    fringe: float = between(-0.9, 1)  # above 0: how far it falls over the forehead
    baldness: float = between(-3.2, 0.5)  # above 0: no hair on top
    ear_size: float = between(8.5, 14)
    ear_set: float = between(1, 5)
    beard: float = between(-1.7, 1)  # above 0: how thick
    moustache: float = between(-2.2, 1)
    freckles: float = between(-2.5, 1)
    mole_x: float = between(-1, 1)
    mole_y: float = between(10, 62)
    mole_size: float = between(-2.2, 1.9)  # above 0: there is a mole
    glasses: float = between(-2.6, 1)  # above 0: wears them; how thick the frame
    glasses_height: float = between(8.5, 13)
    glasses_roundness: float = between(0.3, 1)
    glasses_colour: float = between(0, 1)
    asymmetry: float = between(-1, 1, bell=True)


@dataclass(frozen=True)
class Shot:
    """What changes from photo to photo; drawn in this order from the seed."""

    yaw_degrees: float = between(-17, 17, bell=True)
    pitch_degrees: float = between(-9, 9, bell=True)
    roll_degrees: float = between(-5, 5, bell=True)
    shift_x: float = between(-4, 4, bell=True)
    shift_y: float = between(-4, 4, bell=True)
    scale: float = between(0.94, 1.06, bell=True)
    smile: float = between(-0.1, 1.3)
    mouth_open: float = between(-5, 6)
    brow_raise: float = between(-1.2, 2.6)
    lids: float = between(0.72, 1.08)
    gaze_x: float = between(-2, 2, bell=True)
    gaze_y: float = between(-1, 1, bell=True)
    light_x: float = between(-1, 1)
    light_y: float = between(-0.75, 0.25)
    ambient: float = between(0.35, 0.75)
    brightness: float = between(0.72, 1.34)
    warmth: float = between(-1, 1)
    contrast: float = between(0.8, 1.15)
    falloff: float = between(0, 0.22)  # how much darker the far side of the frame is
    falloff_angle: float = between(0, 1)
    tousle: float = between(-1, 1, bell=True)
    clothing_hue: float = between(0, 1)
    clothing_lightness: float = between(0.15, 0.95)
    collar: float = between(0, 1)
    backdrop_hue: float = between(0, 1)
    backdrop_saturation: float = between(0, 0.35)
    backdrop_lightness: float = between(0.15, 0.9)
    backdrop_gradient: float = between(-0.3, 0.3)
    backdrop_angle: float = between(0, 1)
    backdrop_blur: float = between(0.8, 3)
    blur_px: float = between(0, 1.0)
    noise: float = between(1, 7)
    jpeg_quality: float = between(72, 95)


def ramp(colours: Sequence[Colour], at: float) -> Colour:
    """Give the colour at a place from 0 to 1 along a row of colours."""
    place = min(max(at, 0.0), 1.0) * (len(colours) - 1)
    start = min(int(place), len(colours) - 2)
    return mix(colours[start], colours[start + 1], place - start)


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """Give `one` with a share of `other` mixed in."""
    r, g, b = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return min(max(r, 0), 255), min(max(g, 0), 255), min(max(b, 0), 255)


def shade(colour: Colour, factor: float) -> Colour:
    """Give a colour darker (factor below 1) or lighter."""
    return mix((0, 0, 0), colour, factor)


def hue(turn: float, saturation: float, lightness: float) -> Colour:
    """Give a colour by its place on the colour wheel, all from 0 to 1."""
    r, g, b = (round(255 * c) for c in colorsys.hls_to_rgb(turn, lightness, saturation))
    return r, g, b


def _spline_weights(steps: int) -> Points:
    t = np.arange(steps)[:, None] / steps
    return 0.5 * np.hstack(
        [-t + 2 * t**2 - t**3, 2 - 5 * t**2 + 3 * t**3, t + 4 * t**2 - 3 * t**3, t**3 - t**2]
    )


_WEIGHTS = _spline_weights(6)


def smooth(corners: npt.ArrayLike, closed: bool = True) -> Points:
    """Lay a Catmull-Rom curve through points: float64[N, 2] to float64[6 N or so, 2]."""
    p = np.asarray(corners, np.float64)
    padded = np.concatenate([p[-1:], p, p[:2]] if closed else [p[:1], p, p[-1:]])
    windows = np.stack([padded[i : len(padded) - 3 + i] for i in range(4)], 1)
    curve = np.einsum("sj,kjd->ksd", _WEIGHTS, windows).reshape(-1, 2)
    return curve if closed else np.concatenate([curve, p[-1:]])


def mirrored(right: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Close an outline whose right half is given from the top down."""
    return [*right, *((-x, y) for x, y in reversed(right))]


class Canvas:
    """The picture being drawn, and the way from the head's coordinates to its pixels."""

    def __init__(self, who: Identity, shot: Shot, backdrop: Image.Image) -> None:
        self.image = backdrop
        self._pen = ImageDraw.Draw(backdrop, "RGBA")
        self.head_mask = Image.new("L", backdrop.size)
        self._mask_pen = ImageDraw.Draw(self.head_mask)
        self.px = backdrop.width / FRAME_PX
        self._middle = (who.chin_drop - who.skull_height) / 2
        self._reach = (who.head_half_width, (who.chin_drop + who.skull_height) / 2)
        self._depth = 0.92 * who.head_half_width
        yaw, pitch, roll = np.radians([shot.yaw_degrees, shot.pitch_degrees, shot.roll_degrees])
        turn = np.array(
            [
                [np.cos(yaw), 0, np.sin(yaw)],
                [np.sin(yaw) * np.sin(pitch), np.cos(pitch), -np.cos(yaw) * np.sin(pitch)],
            ]
        )
        tilt = np.array([[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]])
        self._turn = (tilt @ turn * shot.scale * self.px).T
        # LFW's frames are aligned by the features, so most of the way the eyes go is taken back.
        eyes = np.array([[0.0, -self._middle, 0.8 * self._depth]]) @ self._turn
        centre = np.add(EYES_AT, (shot.shift_x, shot.shift_y))
        aligned = 0.85 * eyes[0] + 0.15 * np.array([0, -self._middle * self.px])
        self._origin = centre * self.px - aligned
        self._body = shot.scale * self.px
        self._body_at = centre * self.px

    def at(self, points: npt.ArrayLike, lift: float | Points = 0.0, flat: bool = False) -> Points:
        """Project points of the face (`flat`: of its outline, not bulging) to canvas pixels.

        `lift` brings them nearer to the camera, which shows when the head is turned.
        """
        spot = np.empty((np.size(points) // 2, 3))
        spot[:, :2] = points
        spot[:, 1] -= self._middle
        spot[:, 2] = lift
        if not flat:
            reach = ((spot[:, :2] / self._reach) ** 2).sum(1)
            spot[:, 2] += self._depth * np.sqrt(np.maximum(1 - reach, 0))
        placed: Points = spot @ self._turn + self._origin
        return placed

    def body(self, points: npt.ArrayLike) -> Points:
        """Place points of the neck and shoulders, which do not turn with the head."""
        return np.asarray(points, np.float64) * self._body + self._body_at

    def fill(self, outline: Points, colour: Colour, alpha: float = 1.0) -> None:
        """Fill an outline given in canvas pixels."""
        self._pen.polygon(outline.ravel().tolist(), fill=(*colour, round(255 * alpha)))

    def fill_head(self, outline: Points, colour: Colour) -> None:
        """Fill an outline that belongs to the head, as the light sees it."""
        self.fill(outline, colour)
        self._mask_pen.polygon(outline.ravel().tolist(), fill=255)

    def stroke(self, path: Points, colour: Colour, width: float, alpha: float = 1.0) -> None:
        """Draw a line through canvas pixels; `width` is in pixels of the 250-pixel frame."""
        # One polygon: the pen's own lines overlap at their joints, which shows when translucent.
        along = np.empty_like(path)
        along[1:-1] = path[2:] - path[:-2]
        along[0], along[-1] = path[1] - path[0], path[-1] - path[-2]
        length = np.sqrt((along * along).sum(1)) + 1e-9
        edge = along[:, ::-1] * (-1, 1) * (max(width * self.px / 2, 0.5) / length)[:, None]
        self.fill(np.concatenate([path - edge, (path + edge)[::-1]]), colour, alpha)

    def dot(
        self, centre: Points, radius: float, colour: Colour, alpha: float = 1.0, flatness: float = 1
    ) -> None:
        """Fill an ellipse about a canvas point; `radius` in pixels of the 250-pixel frame."""
        (x, y), r = centre.ravel(), radius * self.px
        self._pen.ellipse(
            [x - r, y - r * flatness, x + r, y + r * flatness], fill=(*colour, round(255 * alpha))
        )
