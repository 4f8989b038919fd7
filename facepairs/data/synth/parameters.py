"""The parameters of a synthetic photo: `Identity` is who it shows, `Shot` how it was taken.

Lengths are in pixels of the 250-pixel LFW frame, measured from the midpoint of the eyes: x to the
right, y down, z towards the camera.
"""

from dataclasses import dataclass, field
from typing import Any


def between(low: float, high: float, bell: bool = False, changes: float = 0.0) -> Any:
    """Declare a random parameter of a dataclass.

    Args:
        low: The least value.
        high: The greatest value.
        bell: Distribute it triangularly instead of uniformly.
        changes: How much photos of one person differ in it at difficulty 1. Of an `Identity`: the
            share that is redrawn for each photo (age, hair style, beard, glasses). Of a `Shot`:
            by which share its range is wider.
    """
    return field(metadata={"low": low, "high": high, "bell": bell, "changes": changes})


@dataclass(frozen=True)
class Identity:
    """The parameters that all photos of a person share. Their order is part of a seed's meaning."""

    head_half_width: float = between(40.5, 49)
    skull_height: float = between(58, 68)
    chin_drop: float = between(68, 81)
    jaw_width: float = between(0.66, 0.92, changes=0.25)  # at the mouth, as a share of the head's
    chin_half_width: float = between(9, 19)
    cheek_fullness: float = between(0.95, 1.04, changes=0.6)
    skin_tone: float = between(0, 1, bell=True, changes=0.12)  # place on the ramp SKIN
    skin_warmth: float = between(-1, 1, bell=True, changes=0.4)
    eye_distance: float = between(18, 23)  # half of the distance between the pupils
    eye_half_width: float = between(9, 12)
    eye_opening: float = between(6.8, 10.8, changes=0.25)
    eye_tilt: float = between(-1.8, 2.4)
    eye_height: float = between(-2.5, 2.5)
    iris_colour: float = between(0, 1)
    brow_height: float = between(12, 18.5)
    brow_thickness: float = between(1.6, 5.4, changes=0.3)
    brow_arch: float = between(0, 4.5)
    brow_angle: float = between(-2.6, 2.6)
    brow_gap: float = between(6, 11)
    brow_darkness: float = between(0.25, 0.75, changes=0.4)
    nose_length: float = between(25, 35)
    nose_half_width: float = between(6.5, 11.5)
    nose_bridge: float = between(2.8, 5.2)
    nose_relief: float = between(9, 17)
    mouth_height: float = between(43, 51)
    mouth_half_width: float = between(13.5, 21)
    upper_lip: float = between(2.2, 5.4, changes=0.2)
    lower_lip: float = between(3.2, 7.2, changes=0.2)
    lip_colour: float = between(0, 1, changes=0.6)
    hair_colour: float = between(0, 1, changes=0.15)
    grey: float = between(-2.2, 0.9, changes=0.7)  # above 0: share of grey in the hair
    hair_line: float = between(34, 51, changes=0.35)
    temple_recession: float = between(0.28, 0.75, changes=0.4)
    hair_top: float = between(5, 22, changes=0.8)
    hair_sides: float = between(1.5, 11, changes=0.8)
    curl: float = between(-1.2, 1, changes=0.6)  # above 0: how curly
    hair_length: float = between(-60, 125, changes=0.7)  # below 20: short
    parting: float = between(-0.75, 0.75, changes=0.9)
    fringe: float = between(-0.9, 1, changes=0.9)  # above 0: how far it falls over the forehead
    baldness: float = between(-3.2, 0.5, changes=0.15)  # above 0: no hair on top
    ear_size: float = between(8.5, 14)
    ear_set: float = between(1, 5)
    beard: float = between(-1.7, 1, changes=0.6)  # above 0: how thick
    moustache: float = between(-2.2, 1, changes=0.6)
    freckles: float = between(-2.5, 1, changes=0.3)
    mole_x: float = between(-1, 1)
    mole_y: float = between(10, 62)
    mole_size: float = between(-2.2, 1.9)  # above 0: there is a mole
    glasses: float = between(-2.6, 1, changes=0.8)  # above 0: wears them; how thick the frame
    glasses_height: float = between(8.5, 13, changes=0.9)
    glasses_roundness: float = between(0.3, 1, changes=0.9)
    glasses_colour: float = between(0, 1, changes=0.9)
    asymmetry: float = between(-1, 1, bell=True)


@dataclass(frozen=True)
class Shot:
    """The parameters that differ between photos. Their order is part of a seed's meaning."""

    yaw_deg: float = between(-17, 17, bell=True, changes=0.6)
    pitch_deg: float = between(-9, 9, bell=True, changes=0.6)
    roll_deg: float = between(-5, 5, bell=True, changes=1.0)
    shift_x: float = between(-4, 4, bell=True)
    shift_y: float = between(-4, 4, bell=True)
    scale: float = between(0.94, 1.06, bell=True, changes=0.6)
    smile: float = between(-0.1, 1.3)
    mouth_open: float = between(-5, 6)
    brow_raise: float = between(-1.2, 2.6, changes=0.4)
    lids: float = between(0.72, 1.08, changes=0.3)
    gaze_x: float = between(-2, 2, bell=True, changes=0.5)
    gaze_y: float = between(-1, 1, bell=True)
    light_x: float = between(-1, 1, changes=0.4)
    light_y: float = between(-0.75, 0.25, changes=0.3)
    ambient: float = between(0.35, 0.75)
    brightness: float = between(0.72, 1.34, changes=0.25)
    warmth: float = between(-1, 1, changes=0.5)
    contrast: float = between(0.8, 1.15, changes=0.3)
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
