"""The canvas that synthetic faces are drawn on, curves to draw, and colours (RGB, 0 to 255).

Lengths and axes are those of `data.synth.parameters`.
"""

import colorsys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from facepairs.data.synth.parameters import Identity, Shot

FRAME_PX = 250
EYES_AT = (125.0, 112.0)  # mean midpoint of the eyes in LFW's aligned frames
SUPERSAMPLING = 2  # faces are drawn at this multiple of their size, then reduced

Points = npt.NDArray[np.float64]
Colour = tuple[int, int, int]


def ramp(colours: Sequence[Colour], at: float) -> Colour:
    """Return the colour at a position in [0, 1] along a row of colours."""
    place = min(max(at, 0.0), 1.0) * (len(colours) - 1)
    start = min(int(place), len(colours) - 2)
    return mix(colours[start], colours[start + 1], place - start)


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """Return `one` with a share of `other` mixed in.

    Args:
        one: RGB, 0 to 255.
        other: RGB, 0 to 255.
        share: Of `other`; the result is clipped to 0..255.
    """
    r, g, b = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return min(max(r, 0), 255), min(max(g, 0), 255), min(max(b, 0), 255)


def shade(colour: Colour, factor: float) -> Colour:
    """Return a darker (factor below 1) or lighter colour."""
    return mix((0, 0, 0), colour, factor)


def hue(turn: float, saturation: float, lightness: float) -> Colour:
    """Return a colour of the HSL model.

    Args:
        turn: Hue, 0 to 1.
        saturation: 0 to 1.
        lightness: 0 to 1.
    """
    r, g, b = (round(255 * c) for c in colorsys.hls_to_rgb(turn, lightness, saturation))
    return r, g, b


def _spline_weights(steps: int) -> Points:
    """Return the weights of four points, float64[steps, 4], along a Catmull-Rom segment."""
    t = np.arange(steps)[:, None] / steps
    return 0.5 * np.hstack(
        [-t + 2 * t**2 - t**3, 2 - 5 * t**2 + 3 * t**3, t + 4 * t**2 - 3 * t**3, t**3 - t**2]
    )


_WEIGHTS = _spline_weights(6)


def smooth(corners: npt.ArrayLike, closed: bool = True) -> Points:
    """Return a Catmull-Rom curve through points.

    Args:
        corners: float[N, 2].
        closed: Whether the curve returns to its first point.

    Returns:
        float64[6 N, 2], or float64[6 N - 5, 2] for an open curve.
    """
    p = np.asarray(corners, np.float64)
    padded = np.concatenate([p[-1:], p, p[:2]] if closed else [p[:1], p, p[-1:]])
    windows = np.stack([padded[i : len(padded) - 3 + i] for i in range(4)], 1)
    curve = np.einsum("sj,kjd->ksd", _WEIGHTS, windows).reshape(-1, 2)
    return curve if closed else np.concatenate([curve, p[-1:]])


def mirrored(right: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return a closed outline from its right half, which runs from the top down."""
    return [*right, *((-x, y) for x, y in reversed(right))]


class Canvas:
    """An image to draw on, and the projection from the head's coordinates to its pixels.

    Args:
        face: Whose head it is.
        shot: Pose and position of the head.
        backdrop: The image to draw on.
    """

    def __init__(self, face: Identity, shot: Shot, backdrop: Image.Image) -> None:
        self.image = backdrop
        self._pen = ImageDraw.Draw(backdrop, "RGBA")
        self.head_mask = Image.new("L", backdrop.size)
        self._mask_pen = ImageDraw.Draw(self.head_mask)
        self.px = backdrop.width / FRAME_PX
        self._middle_y = (face.chin_drop - face.skull_height) / 2
        self._radii = (face.head_half_width, (face.chin_drop + face.skull_height) / 2)
        self._depth = 0.92 * face.head_half_width
        yaw, pitch, roll = np.radians([shot.yaw_deg, shot.pitch_deg, shot.roll_deg])
        x_axis = [np.cos(yaw), 0, np.sin(yaw)]
        y_axis = [np.sin(yaw) * np.sin(pitch), np.cos(pitch), -np.cos(yaw) * np.sin(pitch)]
        rotation = np.array([x_axis, y_axis])
        roll_rotation = np.array([[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]])
        self._projection = (roll_rotation @ rotation * shot.scale * self.px).T
        # LFW's frames are aligned by facial features, so most of the eyes' movement is undone.
        eyes = np.array([[0.0, -self._middle_y, 0.8 * self._depth]]) @ self._projection
        centre = np.add(EYES_AT, (shot.shift_x, shot.shift_y))
        aligned = 0.85 * eyes[0] + 0.15 * np.array([0, -self._middle_y * self.px])
        self._origin = centre * self.px - aligned
        self._body_scale = shot.scale * self.px
        self._body_origin = centre * self.px

    def project(
        self, points: npt.ArrayLike, lift: float | Points = 0.0, flat: bool = False
    ) -> Points:
        """Project points of the face.

        Args:
            points: float[N, 2] or float[2], x and y on the head.
            lift: How much nearer to the camera they are than the head; float or float64[N].
            flat: The points are on the outline of the face, which does not bulge.

        Returns:
            float64[N, 2], canvas pixels.
        """
        position = np.empty((np.size(points) // 2, 3))
        position[:, :2] = points
        position[:, 1] -= self._middle_y
        position[:, 2] = lift
        if not flat:
            distance = ((position[:, :2] / self._radii) ** 2).sum(1)
            position[:, 2] += self._depth * np.sqrt(np.maximum(1 - distance, 0))
        return np.asarray(position @ self._projection + self._origin)

    def project_body(self, points: npt.ArrayLike) -> Points:
        """Project points of the neck and shoulders, which do not turn with the head."""
        return np.asarray(points, np.float64) * self._body_scale + self._body_origin

    def fill(self, outline: Points, colour: Colour, alpha: float = 1.0) -> None:
        """Fill an outline.

        Args:
            outline: float64[N, 2], in canvas pixels.
            colour: RGB, 0 to 255.
            alpha: Opacity, 0 to 1.
        """
        self._pen.polygon(outline.ravel().tolist(), fill=(*colour, round(255 * alpha)))

    def fill_head(self, outline: Points, colour: Colour) -> None:
        """Fill an outline that belongs to the head, which the light models."""
        self.fill(outline, colour)
        self._mask_pen.polygon(outline.ravel().tolist(), fill=255)

    def stroke(self, path: Points, colour: Colour, width: float, alpha: float = 1.0) -> None:
        """Draw a line.

        Args:
            path: float64[N, 2], in canvas pixels.
            colour: RGB, 0 to 255.
            width: In pixels of the 250-pixel frame.
            alpha: Opacity, 0 to 1.
        """
        # A polygon, since the pen's lines overlap at their joints, which is visible if translucent.
        along = np.empty_like(path)
        along[1:-1] = path[2:] - path[:-2]
        along[0], along[-1] = path[1] - path[0], path[-1] - path[-2]
        length = np.sqrt((along * along).sum(1)) + 1e-9
        edge = along[:, ::-1] * (-1, 1) * (max(width * self.px / 2, 0.5) / length)[:, None]
        self.fill(np.concatenate([path - edge, (path + edge)[::-1]]), colour, alpha)

    def dot(
        self, centre: Points, radius: float, colour: Colour, alpha: float = 1.0, flatness: float = 1
    ) -> None:
        """Fill an ellipse.

        Args:
            centre: float64[2] or [1, 2], in canvas pixels.
            radius: Horizontal, in pixels of the 250-pixel frame.
            colour: RGB, 0 to 255.
            alpha: Opacity, 0 to 1.
            flatness: Height divided by width.
        """
        (x, y), r = centre.ravel(), radius * self.px
        self._pen.ellipse(
            [x - r, y - r * flatness, x + r, y + r * flatness], fill=(*colour, round(255 * alpha))
        )
