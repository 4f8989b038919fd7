"""Draws an invented face, feature by feature, as its `Identity` and `Shot` say.

Lengths and axes are those of `facepairs.data.synth.appearance`.
"""

import numpy as np
from PIL import Image, ImageDraw

from facepairs.data.synth.appearance import (
    FRAMES,
    GLOSS,
    HAIR,
    IRIS,
    LASHES,
    LIPS,
    MOUTH_INSIDE,
    PUPIL,
    SKIN,
    WHITE,
    Canvas,
    Colour,
    Identity,
    Points,
    Shot,
    hue,
    mirrored,
    mix,
    ramp,
    shade,
    smooth,
)

SHORT_HAIR = 20.0  # no longer than to the cheeks: it doesn't show below the ears


def draw(who: Identity, shot: Shot, backdrop: Image.Image, marks: Points) -> Canvas:
    """Draw a face over a backdrop, in even light.

    `marks` float64[M, 3] in [0, 1) says where freckles and strands of hair go.
    """
    canvas = Canvas(who, shot, backdrop)
    tint = (222, 120, 92) if who.skin_warmth > 0 else (196, 184, 124)
    skin = mix(ramp(SKIN, who.skin_tone), tint, 0.2 * abs(who.skin_warmth))
    hair = mix(ramp(HAIR, who.hair_colour), (172, 168, 164), max(who.grey, 0))
    if who.baldness < 0 and who.hair_length > SHORT_HAIR:
        _back_hair(canvas, who, shade(hair, 0.72))
    _body(canvas, who, shot, skin)
    _head(canvas, who, skin)
    _skin_marks(canvas, who, skin, marks)
    _beard(canvas, who, skin, mix(skin, shade(hair, 0.8), 0.85))
    _nose(canvas, who, skin)
    _mouth(canvas, who, shot, skin)
    for side in (-1, 1):
        _eye(canvas, who, shot, skin, side)
        _brow(canvas, who, shot, mix(skin, shade(hair, 0.75), 0.3 + who.brow_darkness), side)
    if who.baldness < 0:
        _front_hair(canvas, who, shot, hair, marks)
    if who.glasses > 0:
        _glasses(canvas, who)
    return canvas


def _body(canvas: Canvas, who: Identity, shot: Shot, skin: Colour) -> None:
    neck, dip = 0.68 * who.head_half_width, 92 + 34 * shot.collar**2
    sides = [(neck, 30), (neck, 80), (neck * 1.2, 98), (neck * 1.6, 150)]
    canvas.fill(canvas.body(mirrored(sides)), skin)
    for drop in (78, 86, 94):  # the chin's shadow
        under = mirrored([(neck, 30), (neck, drop - 8), (0, drop)])
        canvas.fill(canvas.body(under), shade(skin, 0.5), 0.2)
    cloth = hue(shot.clothing_hue, 0.45, shot.clothing_lightness)
    collar = mirrored([(neck * 1.02, 88), (neck * 0.6, 0.5 * (88 + dip)), (0, dip)])
    left = [(150, 190), (150, 150), (118, 118), (neck * 1.9, 98)]
    top = [*left, *collar, *((-x, y) for x, y in reversed(left))]
    canvas.fill(canvas.body(smooth(top)), cloth)
    canvas.stroke(canvas.body(smooth(collar, closed=False)), shade(cloth, 0.7), 1.6)


def _head_outline(who: Identity) -> tuple[Points, Points]:
    """Give the outline and how far before the ears each of its points is: the chin stands out."""
    w, top, chin = who.head_half_width, -who.skull_height, who.chin_drop
    jaw, tip = who.jaw_width * w, who.chin_half_width
    right = [(0, top), (0.66 * w, 0.85 * top), (0.97 * w, 0.42 * top), (w, -4)]
    right += [(0.97 * w * who.cheek_fullness, 0.32 * chin), (jaw, 0.64 * chin)]
    right += [(0.5 * (jaw + tip), 0.87 * chin), (0.6 * tip, 0.985 * chin), (0, chin)]
    outline = smooth(mirrored(right))
    return outline, 16 * np.clip(outline[:, 1] / chin, 0, 1) ** 2


def _head(canvas: Canvas, who: Identity, skin: Colour) -> None:
    size = who.ear_size
    ear = [(0, -0.9), (0.5, -1.0), (0.62, -0.15), (0.3, 1.2), (0, 1.5)]
    fold = [(-0.05, -0.65), (0.38, -0.72), (0.45, -0.1), (0.2, 0.85)]
    for side in (-1, 1):
        corner = (side * (who.head_half_width + who.ear_set - 2), 6)
        shell, crease = (np.array(c) * (side * size, size) + corner for c in (ear, fold))
        canvas.fill_head(canvas.at(smooth(shell), -8, flat=True), skin)
        path = canvas.at(smooth(crease, closed=False), -8, flat=True)
        canvas.stroke(path, shade(skin, 0.68), 1.4)
    outline, forward = _head_outline(who)
    canvas.fill_head(canvas.at(outline, forward, flat=True), skin)


def _skin_marks(canvas: Canvas, who: Identity, skin: Colour, marks: Points) -> None:
    if who.freckles > 0:
        for x, y, size in marks[: 12 + round(28 * who.freckles)].tolist():
            spot = canvas.at([66 * x - 33, 4 + 32 * y])
            canvas.dot(spot, 0.5 + 0.7 * size, mix(skin, (120, 62, 34), 0.5), 0.8)
    if who.mole_size > 0:
        x = 22 * who.mole_x + (10 if who.mole_x > 0 else -10)  # not on the nose
        canvas.dot(canvas.at([x, who.mole_y]), 1 + 0.8 * who.mole_size, (74, 46, 38), 0.9)


def _beard(canvas: Canvas, who: Identity, skin: Colour, colour: Colour) -> None:
    w, mouth, half = who.head_half_width, who.mouth_height, who.mouth_half_width
    if who.beard > 0:
        outline, forward = _head_outline(who)
        jaw = outline[:, 1] > 8
        cheek = [(0.93 * w, 8), (0.84 * w, 24), (0.6 * w, mouth - 5), (half + 3, mouth - 3)]
        edge = mirrored([*cheek, (half * 0.6, mouth + 11)])
        below = canvas.at(outline[jaw], forward[jaw], flat=True)
        for fade in (0, 2.5, 5):
            above = canvas.at(np.add(smooth(edge[::-1], closed=False), (0, fade)), 1)
            canvas.fill(np.concatenate([below, above]), colour, 0.12 + 0.38 * who.beard)
    if who.moustache > 0:
        low = mouth - who.upper_lip - 1.2
        high = max(low - 3 - 3.5 * who.moustache, who.nose_length + 2)
        lip = [(0, high + 1), (half * 0.35, high), (half * 0.8, low - 1), (half, low + 2.5)]
        lip += [(half * 0.6, low + 0.5), (0, low - 0.5)]
        canvas.fill(canvas.at(smooth(mirrored(lip)), 2), colour, 0.5 + 0.45 * who.moustache)


def _nose(canvas: Canvas, who: Identity, skin: Colour) -> None:
    wide, base, lift = who.nose_half_width, who.nose_length, 0.6 * who.nose_relief
    shadow = smooth(mirrored([(wide, base), (0.5 * wide, base + 6)]))
    canvas.fill(canvas.at(shadow, 2), shade(skin, 0.6), 0.3)
    under = [(-0.5 * wide, base + 0.5), (0, base + 2.6), (0.5 * wide, base + 0.5)]
    canvas.stroke(canvas.at(smooth(under, closed=False), lift), shade(skin, 0.66), 1.1)
    wing = [(0.74, -8), (1, -3.2), (0.9, 0.6), (0.62, 1)]
    for side in (-1, 1):
        path = smooth([(side * x * wide, base + y) for x, y in wing], closed=False)
        canvas.stroke(canvas.at(path, 0.6 * lift), shade(skin, 0.64), 1.1)
        nostril = canvas.at([side * 0.5 * wide, base], 0.8 * lift)
        canvas.dot(nostril, 0.24 * wide, shade(skin, 0.3), 0.9, flatness=0.55)


def _mouth(canvas: Canvas, who: Identity, shot: Shot, skin: Colour) -> None:
    half, middle = who.mouth_half_width * (1 + 0.16 * shot.smile), who.mouth_height + shot.smile
    corner, gap = -0.6 - 3.2 * shot.smile, max(shot.mouth_open, 0)
    lips = mix(skin, ramp(LIPS, who.lip_colour), 0.8)
    across = np.array([-1, -0.62, -0.22, 0, 0.22, 0.62, 1])
    bent = np.array([corner, 0.4 * corner, 0, 0, 0, 0.4 * corner, corner])
    level = middle + bent + who.asymmetry * across

    def arc(quarter: float, near: float, centre: float) -> Points:
        drop = np.array([0, quarter, near, centre, near, quarter, 0])
        return smooth(np.column_stack([half * across, level + drop]), closed=False)

    def between_arcs(above: Points, below: Points) -> Points:
        return canvas.at(np.concatenate([above, below[::-1]]), 2.5)

    up, low = who.upper_lip, who.lower_lip * (1 - 0.15 * shot.smile)
    top = arc(-0.55 * up, -up, -0.78 * up)
    upper_edge = arc(0.4, 0.2 - 0.1 * gap, 0.6 - 0.1 * gap)
    lower_edge = arc(0.7 + 0.7 * gap, gap + 0.6, gap + 0.8)
    bottom = arc(0.75 * low + 0.8 * gap, low + gap, 1.04 * low + gap)
    canvas.fill(between_arcs(top, bottom), lips)
    canvas.fill(between_arcs(top, upper_edge), shade(lips, 0.82))
    canvas.fill(between_arcs(upper_edge, lower_edge), MOUTH_INSIDE)
    if gap > 1:
        canvas.fill(between_arcs(upper_edge, 0.45 * upper_edge + 0.55 * lower_edge), WHITE)
    canvas.stroke(canvas.at(upper_edge, 3), shade(lips, 0.45), 1)
    shine = canvas.at(0.5 * (lower_edge + bottom)[12:25], 3)
    canvas.stroke(shine, mix(lips, WHITE, 0.5), 1.4, 0.5)
    canvas.stroke(canvas.at(np.add(bottom[10:-10], (0, 2.2)), 1), shade(skin, 0.6), 2, 0.3)


def _eye(canvas: Canvas, who: Identity, shot: Shot, skin: Colour, side: int) -> None:
    centre = np.array([side * who.eye_distance, who.eye_height])
    t = np.linspace(-1, 1, 11)
    rise = who.eye_opening * shot.lids * (1 - np.abs(t) ** 2.3)
    middle = centre + np.column_stack([side * t * who.eye_half_width, -who.eye_tilt * t])
    upper, lower = middle.copy(), middle.copy()
    upper[:, 1] -= 0.58 * rise
    lower[:, 1] += 0.42 * rise
    dark = shade(skin, 0.58)
    for size, alpha in ((1.5, 0.1), (1.25, 0.12)):  # the socket
        socket = np.concatenate([np.add(upper, (0, -4 * size)), np.add(lower, (0, 3 * size))[::-1]])
        canvas.fill(canvas.at(centre + (socket - centre) * (size, 1)), dark, alpha)
    gaze = canvas.at(centre + np.array([shot.gaze_x, shot.gaze_y - 0.6]), 1)
    almond = canvas.at(np.concatenate([upper, lower[::-1]]), 1)
    _eyeball(canvas, almond, gaze[0], ramp(IRIS, who.iris_colour))
    canvas.stroke(canvas.at(lower, 1), dark, 0.8, 0.7)
    canvas.stroke(canvas.at(np.add(upper[2:-1], (0, -3)), 1), dark, 0.9, 0.6)
    canvas.stroke(canvas.at(upper, 1), LASHES, 1.5)


def _eyeball(canvas: Canvas, almond: Points, gaze: Points, iris: Colour) -> None:
    corner = np.floor(almond.min(0)).astype(int)
    wide, tall = (np.ceil(almond.max(0)).astype(int) + 1 - corner).tolist()
    ball, opening = Image.new("RGB", (wide, tall), WHITE), Image.new("L", (wide, tall))
    ImageDraw.Draw(opening).polygon((almond - corner).ravel().tolist(), fill=255)
    pen = ImageDraw.Draw(ball, "RGBA")
    x, y = ((gaze - corner) / canvas.px).tolist()
    glint = (1.0, (255, 255, 255), -1.5)
    for radius, colour, off in (
        (4.9, shade(iris, 0.55), 0),
        (4.2, iris, 0),
        (2.1, PUPIL, 0),
        glint,
    ):
        box = (x + off - radius, y + off - radius, x + off + radius, y + off + radius)
        pen.ellipse([edge * canvas.px for edge in box], fill=colour)
    lid = (almond[: len(almond) // 2] - corner).ravel().tolist()
    pen.line(lid, fill=(*LASHES, 100), width=round(3.4 * canvas.px))  # the upper lid's shadow
    canvas.image.paste(ball, tuple(corner.tolist()), opening)


def _brow(canvas: Canvas, who: Identity, shot: Shot, colour: Colour, side: int) -> None:
    t = np.linspace(0, 1, 9)
    x = who.brow_gap + t * (who.eye_distance + who.eye_half_width + 2 - who.brow_gap)
    y = who.eye_height - who.brow_height - shot.brow_raise + who.brow_angle * (t - 0.5)
    y += 2 * t**3 - who.brow_arch * np.sin(np.pi * t**0.8)
    half = 0.5 * who.brow_thickness * (1 - 0.85 * t**2) * np.minimum(1, 0.6 + 2 * t)
    for grow, alpha in ((1.35, 0.4), (1.0, 0.9)):
        edge = np.concatenate([y - grow * half, (y + grow * half)[::-1]])
        both = np.column_stack([side * np.concatenate([x, x[::-1]]), edge])
        canvas.fill(canvas.at(both, 2), colour, alpha)


def _back_hair(canvas: Canvas, who: Identity, colour: Colour) -> None:
    wide, down = who.head_half_width + who.hair_sides, who.hair_length
    right = [(0, 6 - who.skull_height - who.hair_top), (wide, -20), (wide + 3, 0.3 * down)]
    right += [(wide + 6, 0.7 * down), (wide * 0.8, down), (0, down)]
    canvas.fill(canvas.at(smooth(mirrored(right)), -18, flat=True), colour)


def _cap(who: Identity, shot: Shot) -> tuple[Points, Points]:
    """Give the outer edge of the hair on the head and its edge on the forehead, left to right."""
    angle = np.linspace(0, np.pi, 33)
    u, rise = -np.cos(angle), np.sin(angle)
    curls = max(who.curl, 0) * 3 * np.abs(np.sin(6.5 * angle + shot.tousle))
    outer_x = np.sign(u) * np.abs(u) ** 0.8 * (who.head_half_width + who.hair_sides + curls)
    outer_y = -4 - rise**0.85 * (who.skull_height + who.hair_top + curls - 4)
    line = -4 - rise**who.temple_recession * (who.hair_line - 4)
    away = 1 - np.exp(-(((u - who.parting) / 0.45) ** 2))
    fall = max(who.fringe, 0) * (who.hair_line - 12) * away * np.sqrt(rise)
    inner_x = u * 0.93 * who.head_half_width
    return np.column_stack([outer_x, outer_y]), np.column_stack([inner_x, line + fall])


def _front_hair(canvas: Canvas, who: Identity, shot: Shot, colour: Colour, marks: Points) -> None:
    outer, inner = _cap(who, shot)
    burns = np.array([(0.99, 10), (0.93, 8)]) * (who.head_half_width, 1)
    edge = np.concatenate([outer, burns, inner[::-1], burns[::-1] * (-1, 1)])
    over = 24 * np.sin(np.linspace(0, np.pi, len(inner)))  # the forehead bulges
    lift = np.concatenate([np.zeros(len(outer) + 2), over, np.zeros(2)])
    shadow = [canvas.at(np.add(inner, (0, drop)), over, flat=True) for drop in (3, -1)]
    canvas.fill(np.concatenate([shadow[0], shadow[1][::-1]]), shade(colour, 0.5), 0.3)
    canvas.fill_head(canvas.at(edge, lift, flat=True), colour)
    _strands(canvas, who, outer, inner, colour, marks)
    if who.hair_length > SHORT_HAIR + 15:
        for side in (-1, 1):
            _lock(canvas, who, colour, side)


def _strands(
    canvas: Canvas, who: Identity, outer: Points, inner: Points, colour: Colour, marks: Points
) -> None:
    place, tone, bend = marks.T
    at = 1 + (np.arange(len(marks)) + place) / len(marks) * 30
    knots = np.arange(len(outer))
    out, into = (
        np.column_stack([np.interp(at, knots, axis) for axis in c.T]) for c in (outer, inner)
    )
    parting = outer[16] + np.array([who.parting * 0.5 * who.head_half_width, 3])
    root = 0.45 * parting + 0.53 * out
    tip = into + (0.34 * bend[:, None] - 0.05) * (out - into)
    middle = 2 * (0.72 * out + 0.28 * into) - 0.5 * (root + tip)
    t = np.linspace(0, 1, 9)[:, None, None]
    paths = (1 - t) ** 2 * root + 2 * t * (1 - t) * middle + t**2 * tip
    paths[..., 0] += max(who.curl, 0) * 2.5 * np.sin(14 * t[..., 0] + 7 * place)
    placed = canvas.at(paths.reshape(-1, 2), 14, flat=True).reshape(paths.shape)
    tones = shade(colour, 0.72), mix(colour, GLOSS, 0.16)
    for number, light in enumerate(tone.tolist()):
        canvas.stroke(placed[:, number], tones[light > 0.5], 1 + light, 0.3)


def _lock(canvas: Canvas, who: Identity, colour: Colour, side: int) -> None:
    w, wide, down = who.head_half_width, who.head_half_width + who.hair_sides, who.hair_length
    inside = np.array([(0.8 * w, -34), (0.93 * w, -8), (0.95 * w, 24), (0.86 * w, 0.75 * down)])
    outside = np.array([(wide, -18), (wide + 3, 20), (wide + 4, 0.75 * down), (0.9 * w, down - 2)])
    inside[:, 0] *= side
    outside[:, 0] *= side
    outline = smooth(np.concatenate([inside, outside[::-1]]))
    canvas.fill_head(canvas.at(outline, 4, flat=True), colour)
    for share in (0.25, 0.5, 0.75):
        path = smooth(share * inside + (1 - share) * outside, closed=False)
        tone = shade(colour, 0.7) if share == 0.5 else mix(colour, GLOSS, 0.2)
        canvas.stroke(canvas.at(path, 4, flat=True), tone, 0.9, 0.5)


def _glasses(canvas: Canvas, who: Identity) -> None:
    colour, width = ramp(FRAMES, who.glasses_colour), 1.2 + 1.8 * who.glasses
    turn = np.linspace(0, 2 * np.pi, 29)
    x, y = (np.sign(c) * np.abs(c) ** who.glasses_roundness for c in (np.cos(turn), np.sin(turn)))
    rim = np.column_stack([(who.eye_half_width + 5.5) * x, who.glasses_height * y])
    level, reach = who.eye_height - 2, who.eye_distance + who.eye_half_width + 6
    for side in (-1, 1):
        around = canvas.at(np.add(rim, (side * (who.eye_distance + 0.5), level + 4)), 6)
        canvas.fill(around, (236, 242, 248), 0.12)
        canvas.stroke(around, colour, width)
        hinge = canvas.at([side * reach, level], 6)
        ear = canvas.at([side * who.head_half_width, level - 1], -6, flat=True)
        canvas.stroke(np.concatenate([hinge, ear]), colour, width)
    inner = who.eye_distance - who.eye_half_width - 5
    bridge = [(-inner, level + 2), (0, level - 0.5), (inner, level + 2)]
    canvas.stroke(canvas.at(smooth(bridge, closed=False), 8), colour, width)


def relief(who: Identity) -> tuple[Points, Points]:
    """Give what stands out of the head, or back: [bridge, tip] of the nose, and float64[8, 4].

    The rows are bell-shaped bumps: x, y, height (dents below 0) and spread.
    """
    cheek, brow = who.nose_length - 4, -who.brow_height
    half = [(who.eye_distance, who.eye_height, -4, 8), (who.eye_distance + 4, cheek, 2.5, 9)]
    half += [(who.eye_distance, brow, 2, 6)]
    middle = [(0, who.mouth_height + 1, 3, 9), (0, who.chin_drop - 9, 4.5, 8)]
    bumps = np.array([*middle, *half, *((-x, *rest) for x, *rest in half)])
    return np.array([(0, -4), (0, who.nose_length - 3)]), bumps
