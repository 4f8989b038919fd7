"""Draw a synthetic face, feature by feature, from its `Identity` and `Shot`.

Lengths and axes are those of `data.synth.parameters`.
"""

import numpy as np
from PIL import Image, ImageDraw

from facepairs.data.synth.canvas import (
    Canvas,
    Colour,
    Points,
    hue,
    mirrored,
    mix,
    ramp,
    shade,
    smooth,
)
from facepairs.data.synth.parameters import Identity, Shot

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

SHORT_HAIR = 20.0  # at most as long as to the cheeks: not visible below the ears


def draw(face: Identity, shot: Shot, backdrop: Image.Image, marks: Points) -> Canvas:
    """Draw a face in even light.

    Args:
        face: Whose face it is.
        shot: Pose and expression.
        backdrop: The image to draw on.
        marks: float64[M, 3] in [0, 1), positions of freckles and strands of hair.

    Returns:
        The canvas with the drawn image and the mask of the head.
    """
    canvas = Canvas(face, shot, backdrop)
    tint = (222, 120, 92) if face.skin_warmth > 0 else (196, 184, 124)
    skin = mix(ramp(SKIN, face.skin_tone), tint, 0.2 * abs(face.skin_warmth))
    hair = mix(ramp(HAIR, face.hair_colour), (172, 168, 164), max(face.grey, 0))
    if face.baldness < 0 and face.hair_length > SHORT_HAIR:
        _back_hair(canvas, face, shade(hair, 0.72))
    _body(canvas, face, shot, skin)
    _head(canvas, face, skin)
    _skin_marks(canvas, face, skin, marks)
    _beard(canvas, face, skin, mix(skin, shade(hair, 0.8), 0.85))
    _nose(canvas, face, skin)
    _mouth(canvas, face, shot, skin)
    for side in (-1, 1):
        _eye(canvas, face, shot, skin, side)
        _brow(canvas, face, shot, mix(skin, shade(hair, 0.75), 0.3 + face.brow_darkness), side)
    if face.baldness < 0:
        _front_hair(canvas, face, shot, hair, marks)
    if face.glasses > 0:
        _glasses(canvas, face)
    return canvas


def _body(canvas: Canvas, face: Identity, shot: Shot, skin: Colour) -> None:
    """Draw neck, collar and shoulders."""
    neck, dip = 0.68 * face.head_half_width, 92 + 34 * shot.collar**2
    sides = [(neck, 30), (neck, 80), (neck * 1.2, 98), (neck * 1.6, 150)]
    canvas.fill(canvas.project_body(mirrored(sides)), skin)
    for drop in (78, 86, 94):  # the chin's shadow
        under = mirrored([(neck, 30), (neck, drop - 8), (0, drop)])
        canvas.fill(canvas.project_body(under), shade(skin, 0.5), 0.2)
    cloth = hue(shot.clothing_hue, 0.45, shot.clothing_lightness)
    collar = mirrored([(neck * 1.02, 88), (neck * 0.6, 0.5 * (88 + dip)), (0, dip)])
    left = [(150, 190), (150, 150), (118, 118), (neck * 1.9, 98)]
    top = [*left, *collar, *((-x, y) for x, y in reversed(left))]
    canvas.fill(canvas.project_body(smooth(top)), cloth)
    canvas.stroke(canvas.project_body(smooth(collar, closed=False)), shade(cloth, 0.7), 1.6)


def _head_outline(face: Identity) -> tuple[Points, Points]:
    """Return the outline, and how far in front of the ears each of its points is."""
    w, top, chin = face.head_half_width, -face.skull_height, face.chin_drop
    jaw, tip = face.jaw_width * w, face.chin_half_width
    right = [(0, top), (0.66 * w, 0.85 * top), (0.97 * w, 0.42 * top), (w, -4)]
    right += [(0.97 * w * face.cheek_fullness, 0.32 * chin), (jaw, 0.64 * chin)]
    right += [(0.5 * (jaw + tip), 0.87 * chin), (0.6 * tip, 0.985 * chin), (0, chin)]
    outline = smooth(mirrored(right))
    return outline, 16 * np.clip(outline[:, 1] / chin, 0, 1) ** 2


def _head(canvas: Canvas, face: Identity, skin: Colour) -> None:
    """Draw the ears and the head."""
    size = face.ear_size
    ear = [(0, -0.9), (0.5, -1.0), (0.62, -0.15), (0.3, 1.2), (0, 1.5)]
    fold = [(-0.05, -0.65), (0.38, -0.72), (0.45, -0.1), (0.2, 0.85)]
    for side in (-1, 1):
        corner = (side * (face.head_half_width + face.ear_set - 2), 6)
        shell, crease = (np.array(c) * (side * size, size) + corner for c in (ear, fold))
        canvas.fill_head(canvas.project(smooth(shell), -8, flat=True), skin)
        path = canvas.project(smooth(crease, closed=False), -8, flat=True)
        canvas.stroke(path, shade(skin, 0.68), 1.4)
    outline, forward = _head_outline(face)
    canvas.fill_head(canvas.project(outline, forward, flat=True), skin)


def _skin_marks(canvas: Canvas, face: Identity, skin: Colour, marks: Points) -> None:
    """Draw freckles and a mole."""
    if face.freckles > 0:
        for x, y, size in marks[: 12 + round(28 * face.freckles)].tolist():
            spot = canvas.project([66 * x - 33, 4 + 32 * y])
            canvas.dot(spot, 0.5 + 0.7 * size, mix(skin, (120, 62, 34), 0.5), 0.8)
    if face.mole_size > 0:
        x = 22 * face.mole_x + (10 if face.mole_x > 0 else -10)  # not on the nose
        canvas.dot(canvas.project([x, face.mole_y]), 1 + 0.8 * face.mole_size, (74, 46, 38), 0.9)


def _beard(canvas: Canvas, face: Identity, skin: Colour, colour: Colour) -> None:
    """Draw beard and moustache."""
    w, mouth, half = face.head_half_width, face.mouth_height, face.mouth_half_width
    if face.beard > 0:
        outline, forward = _head_outline(face)
        jaw = outline[:, 1] > 8
        cheek = [(0.93 * w, 8), (0.84 * w, 24), (0.6 * w, mouth - 5), (half + 3, mouth - 3)]
        edge = mirrored([*cheek, (half * 0.6, mouth + 11)])
        below = canvas.project(outline[jaw], forward[jaw], flat=True)
        for fade in (0, 2.5, 5):
            above = canvas.project(np.add(smooth(edge[::-1], closed=False), (0, fade)), 1)
            canvas.fill(np.concatenate([below, above]), colour, 0.12 + 0.38 * face.beard)
    if face.moustache > 0:
        low = mouth - face.upper_lip - 1.2
        high = max(low - 3 - 3.5 * face.moustache, face.nose_length + 2)
        lip = [(0, high + 1), (half * 0.35, high), (half * 0.8, low - 1), (half, low + 2.5)]
        lip += [(half * 0.6, low + 0.5), (0, low - 0.5)]
        canvas.fill(canvas.project(smooth(mirrored(lip)), 2), colour, 0.5 + 0.45 * face.moustache)


def _nose(canvas: Canvas, face: Identity, skin: Colour) -> None:
    """Draw the nose's shadow, wings and nostrils."""
    wide, base, lift = face.nose_half_width, face.nose_length, 0.6 * face.nose_relief
    shadow = smooth(mirrored([(wide, base), (0.5 * wide, base + 6)]))
    canvas.fill(canvas.project(shadow, 2), shade(skin, 0.6), 0.3)
    under = [(-0.5 * wide, base + 0.5), (0, base + 2.6), (0.5 * wide, base + 0.5)]
    canvas.stroke(canvas.project(smooth(under, closed=False), lift), shade(skin, 0.66), 1.1)
    wing = [(0.74, -8), (1, -3.2), (0.9, 0.6), (0.62, 1)]
    for side in (-1, 1):
        path = smooth([(side * x * wide, base + y) for x, y in wing], closed=False)
        canvas.stroke(canvas.project(path, 0.6 * lift), shade(skin, 0.64), 1.1)
        nostril = canvas.project([side * 0.5 * wide, base], 0.8 * lift)
        canvas.dot(nostril, 0.24 * wide, shade(skin, 0.3), 0.9, flatness=0.55)


def _mouth(canvas: Canvas, face: Identity, shot: Shot, skin: Colour) -> None:
    """Draw lips, teeth and the inside of the mouth."""
    half, middle = face.mouth_half_width * (1 + 0.16 * shot.smile), face.mouth_height + shot.smile
    corner, gap = -0.6 - 3.2 * shot.smile, max(shot.mouth_open, 0)
    lips = mix(skin, ramp(LIPS, face.lip_colour), 0.8)
    across = np.array([-1, -0.62, -0.22, 0, 0.22, 0.62, 1])
    bent = np.array([corner, 0.4 * corner, 0, 0, 0, 0.4 * corner, corner])
    level = middle + bent + face.asymmetry * across

    def arc(quarter: float, near: float, centre: float) -> Points:
        drop = np.array([0, quarter, near, centre, near, quarter, 0])
        return smooth(np.column_stack([half * across, level + drop]), closed=False)

    def between_arcs(above: Points, below: Points) -> Points:
        return canvas.project(np.concatenate([above, below[::-1]]), 2.5)

    up, low = face.upper_lip, face.lower_lip * (1 - 0.15 * shot.smile)
    top = arc(-0.55 * up, -up, -0.78 * up)
    upper_edge = arc(0.4, 0.2 - 0.1 * gap, 0.6 - 0.1 * gap)
    lower_edge = arc(0.7 + 0.7 * gap, gap + 0.6, gap + 0.8)
    bottom = arc(0.75 * low + 0.8 * gap, low + gap, 1.04 * low + gap)
    canvas.fill(between_arcs(top, bottom), lips)
    canvas.fill(between_arcs(top, upper_edge), shade(lips, 0.82))
    canvas.fill(between_arcs(upper_edge, lower_edge), MOUTH_INSIDE)
    if gap > 1:
        canvas.fill(between_arcs(upper_edge, 0.45 * upper_edge + 0.55 * lower_edge), WHITE)
    canvas.stroke(canvas.project(upper_edge, 3), shade(lips, 0.45), 1)
    shine = canvas.project(0.5 * (lower_edge + bottom)[12:25], 3)
    canvas.stroke(shine, mix(lips, WHITE, 0.5), 1.4, 0.5)
    canvas.stroke(canvas.project(np.add(bottom[10:-10], (0, 2.2)), 1), shade(skin, 0.6), 2, 0.3)


def _eye(canvas: Canvas, face: Identity, shot: Shot, skin: Colour, side: int) -> None:
    """Draw one eye with its socket and lids."""
    centre = np.array([side * face.eye_distance, face.eye_height])
    t = np.linspace(-1, 1, 11)
    rise = face.eye_opening * shot.lids * (1 - np.abs(t) ** 2.3)
    middle = centre + np.column_stack([side * t * face.eye_half_width, -face.eye_tilt * t])
    upper, lower = middle.copy(), middle.copy()
    upper[:, 1] -= 0.58 * rise
    lower[:, 1] += 0.42 * rise
    dark = shade(skin, 0.58)
    for size, alpha in ((1.5, 0.1), (1.25, 0.12)):  # the socket
        socket = np.concatenate([np.add(upper, (0, -4 * size)), np.add(lower, (0, 3 * size))[::-1]])
        canvas.fill(canvas.project(centre + (socket - centre) * (size, 1)), dark, alpha)
    gaze = canvas.project(centre + np.array([shot.gaze_x, shot.gaze_y - 0.6]), 1)
    almond = canvas.project(np.concatenate([upper, lower[::-1]]), 1)
    _eyeball(canvas, almond, gaze[0], ramp(IRIS, face.iris_colour))
    canvas.stroke(canvas.project(lower, 1), dark, 0.8, 0.7)
    canvas.stroke(canvas.project(np.add(upper[2:-1], (0, -3)), 1), dark, 0.9, 0.6)
    canvas.stroke(canvas.project(upper, 1), LASHES, 1.5)


def _eyeball(canvas: Canvas, almond: Points, gaze: Points, iris: Colour) -> None:
    """Draw iris, pupil and highlight in the opening of the lids."""
    corner = np.floor(almond.min(0)).astype(int)
    wide, tall = (np.ceil(almond.max(0)).astype(int) + 1 - corner).tolist()
    ball, opening = Image.new("RGB", (wide, tall), WHITE), Image.new("L", (wide, tall))
    ImageDraw.Draw(opening).polygon((almond - corner).ravel().tolist(), fill=255)
    pen = ImageDraw.Draw(ball, "RGBA")
    x, y = ((gaze - corner) / canvas.px).tolist()
    discs = [(4.9, shade(iris, 0.55), 0.0), (4.2, iris, 0.0), (2.1, PUPIL, 0.0)]
    discs += [(1.0, (255, 255, 255), -1.5)]  # the highlight
    for radius, colour, offset in discs:
        box = (x + offset - radius, y + offset - radius, x + offset + radius, y + offset + radius)
        pen.ellipse([edge * canvas.px for edge in box], fill=colour)
    lid = (almond[: len(almond) // 2] - corner).ravel().tolist()
    pen.line(lid, fill=(*LASHES, 100), width=round(3.4 * canvas.px))  # the upper lid's shadow
    canvas.image.paste(ball, tuple(corner.tolist()), opening)


def _brow(canvas: Canvas, face: Identity, shot: Shot, colour: Colour, side: int) -> None:
    """Draw one eyebrow."""
    t = np.linspace(0, 1, 9)
    x = face.brow_gap + t * (face.eye_distance + face.eye_half_width + 2 - face.brow_gap)
    y = face.eye_height - face.brow_height - shot.brow_raise + face.brow_angle * (t - 0.5)
    y += 2 * t**3 - face.brow_arch * np.sin(np.pi * t**0.8)
    half = 0.5 * face.brow_thickness * (1 - 0.85 * t**2) * np.minimum(1, 0.6 + 2 * t)
    for grow, alpha in ((1.35, 0.4), (1.0, 0.9)):
        edge = np.concatenate([y - grow * half, (y + grow * half)[::-1]])
        both = np.column_stack([side * np.concatenate([x, x[::-1]]), edge])
        canvas.fill(canvas.project(both, 2), colour, alpha)


def _back_hair(canvas: Canvas, face: Identity, colour: Colour) -> None:
    """Draw the hair behind the head."""
    wide, down = face.head_half_width + face.hair_sides, face.hair_length
    right = [(0, 6 - face.skull_height - face.hair_top), (wide, -20), (wide + 3, 0.3 * down)]
    right += [(wide + 6, 0.7 * down), (wide * 0.8, down), (0, down)]
    canvas.fill(canvas.project(smooth(mirrored(right)), -18, flat=True), colour)


def _cap(face: Identity, shot: Shot) -> tuple[Points, Points]:
    """Return the outer edge of the hair and its edge on the forehead, from left to right."""
    angle = np.linspace(0, np.pi, 33)
    u, rise = -np.cos(angle), np.sin(angle)
    curls = max(face.curl, 0) * 3 * np.abs(np.sin(6.5 * angle + shot.tousle))
    outer_x = np.sign(u) * np.abs(u) ** 0.8 * (face.head_half_width + face.hair_sides + curls)
    outer_y = -4 - rise**0.85 * (face.skull_height + face.hair_top + curls - 4)
    line = -4 - rise**face.temple_recession * (face.hair_line - 4)
    away = 1 - np.exp(-(((u - face.parting) / 0.45) ** 2))
    fall = max(face.fringe, 0) * (face.hair_line - 12) * away * np.sqrt(rise)
    inner_x = u * 0.93 * face.head_half_width
    return np.column_stack([outer_x, outer_y]), np.column_stack([inner_x, line + fall])


def _front_hair(canvas: Canvas, face: Identity, shot: Shot, colour: Colour, marks: Points) -> None:
    """Draw the hair on the head."""
    outer, inner = _cap(face, shot)
    burns = np.array([(0.99, 10), (0.93, 8)]) * (face.head_half_width, 1)
    edge = np.concatenate([outer, burns, inner[::-1], burns[::-1] * (-1, 1)])
    over = 24 * np.sin(np.linspace(0, np.pi, len(inner)))  # the forehead bulges
    lift = np.concatenate([np.zeros(len(outer) + 2), over, np.zeros(2)])
    shadow = [canvas.project(np.add(inner, (0, drop)), over, flat=True) for drop in (3, -1)]
    canvas.fill(np.concatenate([shadow[0], shadow[1][::-1]]), shade(colour, 0.5), 0.3)
    canvas.fill_head(canvas.project(edge, lift, flat=True), colour)
    _strands(canvas, face, outer, inner, colour, marks)
    if face.hair_length > SHORT_HAIR + 15:
        for side in (-1, 1):
            _lock(canvas, face, colour, side)


def _strands(
    canvas: Canvas, face: Identity, outer: Points, inner: Points, colour: Colour, marks: Points
) -> None:
    """Draw single strands, which give the hair texture."""
    place, tone, bend = marks.T
    at = 1 + (np.arange(len(marks)) + place) / len(marks) * 30
    knots = np.arange(len(outer))
    out, into = (
        np.column_stack([np.interp(at, knots, axis) for axis in c.T]) for c in (outer, inner)
    )
    parting = outer[16] + np.array([face.parting * 0.5 * face.head_half_width, 3])
    root = 0.45 * parting + 0.53 * out
    tip = into + (0.34 * bend[:, None] - 0.05) * (out - into)
    middle = 2 * (0.72 * out + 0.28 * into) - 0.5 * (root + tip)
    t = np.linspace(0, 1, 9)[:, None, None]
    paths = (1 - t) ** 2 * root + 2 * t * (1 - t) * middle + t**2 * tip
    paths[..., 0] += max(face.curl, 0) * 2.5 * np.sin(14 * t[..., 0] + 7 * place)
    placed = canvas.project(paths.reshape(-1, 2), 14, flat=True).reshape(paths.shape)
    tones = shade(colour, 0.72), mix(colour, GLOSS, 0.16)
    for number, light in enumerate(tone.tolist()):
        canvas.stroke(placed[:, number], tones[light > 0.5], 1 + light, 0.3)


def _lock(canvas: Canvas, face: Identity, colour: Colour, side: int) -> None:
    """Draw the long hair beside one cheek."""
    w, wide, down = face.head_half_width, face.head_half_width + face.hair_sides, face.hair_length
    inside = np.array([(0.8 * w, -34), (0.93 * w, -8), (0.95 * w, 24), (0.86 * w, 0.75 * down)])
    outside = np.array([(wide, -18), (wide + 3, 20), (wide + 4, 0.75 * down), (0.9 * w, down - 2)])
    inside[:, 0] *= side
    outside[:, 0] *= side
    outline = smooth(np.concatenate([inside, outside[::-1]]))
    canvas.fill_head(canvas.project(outline, 4, flat=True), colour)
    for share in (0.25, 0.5, 0.75):
        path = smooth(share * inside + (1 - share) * outside, closed=False)
        tone = shade(colour, 0.7) if share == 0.5 else mix(colour, GLOSS, 0.2)
        canvas.stroke(canvas.project(path, 4, flat=True), tone, 0.9, 0.5)


def _glasses(canvas: Canvas, face: Identity) -> None:
    """Draw glasses."""
    colour, width = ramp(FRAMES, face.glasses_colour), 1.2 + 1.8 * face.glasses
    turn = np.linspace(0, 2 * np.pi, 29)
    x, y = (np.sign(c) * np.abs(c) ** face.glasses_roundness for c in (np.cos(turn), np.sin(turn)))
    rim = np.column_stack([(face.eye_half_width + 5.5) * x, face.glasses_height * y])
    level, reach = face.eye_height - 2, face.eye_distance + face.eye_half_width + 6
    for side in (-1, 1):
        around = canvas.project(np.add(rim, (side * (face.eye_distance + 0.5), level + 4)), 6)
        canvas.fill(around, (236, 242, 248), 0.12)
        canvas.stroke(around, colour, width)
        hinge = canvas.project([side * reach, level], 6)
        ear = canvas.project([side * face.head_half_width, level - 1], -6, flat=True)
        canvas.stroke(np.concatenate([hinge, ear]), colour, width)
    inner = face.eye_distance - face.eye_half_width - 5
    bridge = [(-inner, level + 2), (0, level - 0.5), (inner, level + 2)]
    canvas.stroke(canvas.project(smooth(bridge, closed=False), 8), colour, width)


def relief(face: Identity) -> tuple[Points, Points]:
    """Return the relief of the head, which the light models.

    Returns:
        float64[2, 2], bridge and tip of the nose; and float64[8, 4], Gaussian bumps with x, y,
        height (dents below 0) and standard deviation.
    """
    cheek, brow = face.nose_length - 4, -face.brow_height
    half = [(face.eye_distance, face.eye_height, -4, 8), (face.eye_distance + 4, cheek, 2.5, 9)]
    half += [(face.eye_distance, brow, 2, 6)]
    middle = [(0, face.mouth_height + 1, 3, 9), (0, face.chin_drop - 9, 4.5, 8)]
    bumps = np.array([*middle, *half, *((-x, *rest) for x, *rest in half)])
    return np.array([(0, -4), (0, face.nose_length - 3)]), bumps
